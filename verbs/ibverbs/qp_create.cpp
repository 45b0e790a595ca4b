// SPDX-License-Identifier: Apache-2.0
// Creating queue pairs.
#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

// The table of operations and transports in ibv_post_send(3).
constexpr std::uint64_t kRawOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO;
constexpr std::uint64_t kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUcOperations = kUdOperations | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kRcOperations =
    kUcOperations | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr std::uint32_t kKnownMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                                     IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE |
                                     IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint32_t kSupportedMask =
    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
constexpr std::uint32_t kScalingMask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
constexpr std::uint32_t kRawMask = kScalingMask | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
constexpr std::uint32_t kKnownCreateFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                                            IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                                            IBV_QP_CREATE_PCI_WRITE_END_PADDING;
constexpr std::uint32_t kFrameFlags = IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING;
constexpr std::uint32_t kMaxRingEntries = 1u << 15;  // indices have 16 bits; a full ring must differ from an empty one

// Sizes of a QP's rings, and the capabilities granted to the program.
struct Sizes {
  ibv_qp_cap granted{};
  std::uint32_t send_wqe_blocks = 0;  // blocks of the longest WQE
  std::uint8_t log_send_blocks = 0;
  std::uint8_t log_receive_wqes = 0;
  std::uint8_t log_receive_stride = 0;
};

int check_type(const Context& context, ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC: return 0;
    case IBV_QPT_UC: return context.has_feature(abi::feature::kUc) ? 0 : EOPNOTSUPP;
    case IBV_QPT_UD: return context.has_feature(abi::feature::kUd) ? 0 : EOPNOTSUPP;
    case IBV_QPT_RAW_PACKET: return context.has_feature(abi::feature::kRaw) ? 0 : EOPNOTSUPP;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV: return context.has_feature(abi::feature::kXrc) ? 0 : EOPNOTSUPP;
    case IBV_QPT_DRIVER: return EOPNOTSUPP;
  }
  return EINVAL;
}

// Operations of the transport that the device supports. UC has no packet for SEND with invalidate.
std::uint64_t send_operations(const Context& context, ibv_qp_type type) {
  const bool invalidates = context.has_feature(abi::feature::kInvalidate);
  const std::uint64_t local = (invalidates ? IBV_QP_EX_WITH_LOCAL_INV : 0) |
                              (context.has_feature(abi::feature::kWindows) ? IBV_QP_EX_WITH_BIND_MW : 0);
  switch (type) {
    case IBV_QPT_RAW_PACKET: return kRawOperations;
    case IBV_QPT_UD: return kUdOperations;
    case IBV_QPT_UC: return kUcOperations | local;
    case IBV_QPT_XRC_RECV: return 0;
    default:
      return kRcOperations | local | (invalidates ? IBV_QP_EX_WITH_SEND_WITH_INV : 0) |
             (type == IBV_QPT_RC && context.has_feature(abi::feature::kAtomicWrite) ? IBV_QP_EX_WITH_ATOMIC_WRITE : 0);
  }
}

// Operations of all transports: RC has all but those of raw packets.
std::uint64_t known_operations(const Context& context) {
  const bool has_frames = context.has_feature(abi::feature::kRaw);
  return send_operations(context, IBV_QPT_RC) | (has_frames ? send_operations(context, IBV_QPT_RAW_PACKET) : 0);
}

std::uint32_t create_flags_of(const ibv_qp_init_attr_ex& attributes) {
  return attributes.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attributes.create_flags : 0;
}

std::uint32_t max_tso_header_of(const ibv_qp_init_attr_ex& attributes) {
  return attributes.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER ? attributes.max_tso_header : 0;
}

// A create flag is valid if the device has the feature and the QP is of the right kind.
int check_flag(const Context& context, std::uint64_t feature, bool has_it) {
  if (!context.has_feature(feature)) return EOPNOTSUPP;
  return has_it ? 0 : EINVAL;
}

int check_create_flags(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  const std::uint32_t flags = create_flags_of(attributes);
  if (flags & ~kKnownCreateFlags) return EINVAL;
  const bool raw = attributes.qp_type == IBV_QPT_RAW_PACKET;
  if (flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) {
    const auto feature = raw ? abi::feature::kRaw : abi::feature::kMulticast;
    if (const int error = check_flag(context, feature, raw || attributes.qp_type == IBV_QPT_UD)) return error;
  }
  if (flags & IBV_QP_CREATE_SOURCE_QPN)
    if (const int error = check_flag(context, abi::feature::kSourceQpn, attributes.qp_type == IBV_QPT_UD)) return error;
  // With a table, the work queues have these flags, not the QP.
  const bool receives_frames = raw && !(attributes.comp_mask & kScalingMask);
  if (flags & IBV_QP_CREATE_PCI_WRITE_END_PADDING)
    if (const int error = check_flag(context, abi::feature::kWritePadding, receives_frames)) return error;
  return flags & kFrameFlags ? check_flag(context, abi::feature::kRaw, receives_frames) : 0;
}

int check_operations(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  const std::uint64_t asked = attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attributes.send_ops_flags : 0;
  if (asked & ~send_operations(context, attributes.qp_type)) return EOPNOTSUPP;
  return (asked & IBV_QP_EX_WITH_TSO) && max_tso_header_of(attributes) == 0 ? EINVAL : 0;
}

int check_mask(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  const std::uint32_t mask = attributes.comp_mask;
  if (mask & ~kKnownMask) return EINVAL;
  const bool is_raw = attributes.qp_type == IBV_QPT_RAW_PACKET;
  const bool receives_for_domain = attributes.qp_type == IBV_QPT_XRC_RECV;
  if ((mask & IBV_QP_INIT_ATTR_XRCD) && !receives_for_domain) return EINVAL;
  if (mask & ~(kSupportedMask | IBV_QP_INIT_ATTR_XRCD | (is_raw ? kRawMask : 0))) return EOPNOTSUPP;
  const bool has_pd = (mask & IBV_QP_INIT_ATTR_PD) && attributes.pd != nullptr;
  if (!has_pd && !receives_for_domain) return EINVAL;
  if (const int error = check_create_flags(context, attributes)) return error;
  if (max_tso_header_of(attributes) > context.capabilities.max_tso_header) return EINVAL;
  return check_operations(context, attributes);
}

int check_srq(Context& context, const ibv_qp_init_attr_ex& attributes) {
  if (attributes.srq == nullptr) return 0;
  if (attributes.qp_type != IBV_QPT_RC && attributes.qp_type != IBV_QPT_UD) return EINVAL;
  if (attributes.srq->context != &context.context) return EINVAL;
  return context.srqs.holds(attributes.srq->handle, &Srq::of(attributes.srq)) ? 0 : ENOENT;
}

int check_pd(const Context& context, const ibv_qp_init_attr_ex& attributes) {
  if (attributes.pd->context != &context.context) return EINVAL;
  return context.pds.holds(attributes.pd->handle, &Pd::of(attributes.pd)) ? 0 : ENOENT;
}

int check_objects(Context& context, const ibv_qp_init_attr_ex& attributes) {
  if (const int error = check_pd(context, attributes)) return error;
  const bool receives = attributes.qp_type != IBV_QPT_XRC_SEND;
  for (ibv_cq* cq : {attributes.send_cq, receives ? attributes.recv_cq : attributes.send_cq}) {
    if (cq == nullptr) return EINVAL;
    if (!context.cqs.holds(cq->handle, &Cq::of(cq))) return ENOENT;
  }
  return check_srq(context, attributes);
}

int check_capabilities(const abi::DeviceCapabilities& limits, const ibv_qp_cap& asked) {
  const bool within = asked.max_send_wr <= limits.max_qp_wr && asked.max_recv_wr <= limits.max_qp_wr &&
                      asked.max_send_sge <= limits.max_send_sge && asked.max_recv_sge <= limits.max_receive_sge &&
                      asked.max_inline_data <= limits.max_inline;
  return within ? 0 : EINVAL;
}

std::uint32_t send_wqe_blocks(abi::Transport transport, std::uint32_t sges, std::uint32_t inline_bytes,
                              std::uint32_t tso_header = 0) {
  const std::size_t with_sges =
      provider::wqe_bytes_with_sges(transport, sges) + provider::wqe_bytes_of_segmentation(tso_header);
  const std::size_t bytes = std::max(with_sges, provider::wqe_bytes_with_inline(transport, inline_bytes));
  return std::uint32_t((bytes + abi::kSendBlock - 1) / abi::kSendBlock);
}

std::uint32_t most_send_blocks(const abi::DeviceCapabilities& limits) {
  return std::min(std::bit_ceil(std::uint32_t(limits.max_qp_wr)), kMaxRingEntries);
}

int size_send_ring(const abi::DeviceCapabilities& limits, const ibv_qp_init_attr_ex& attributes, Sizes& sizes) {
  const auto transport = abi::Transport(attributes.qp_type);
  const ibv_qp_cap& asked = attributes.cap;
  sizes.granted.max_send_sge = asked.max_send_sge;
  sizes.granted.max_inline_data = asked.max_inline_data;
  if (asked.max_send_wr == 0) return 0;
  const std::uint32_t wqe_blocks =
      send_wqe_blocks(transport, asked.max_send_sge, asked.max_inline_data, max_tso_header_of(attributes));
  sizes.send_wqe_blocks = wqe_blocks;
  if (wqe_blocks > abi::kMaxWqeBlocks) return EINVAL;
  sizes.log_send_blocks = provider::log_send_blocks(asked.max_send_wr, wqe_blocks);
  const std::uint32_t blocks = 1u << sizes.log_send_blocks;
  if (blocks > most_send_blocks(limits)) return EINVAL;
  sizes.granted.max_send_wr = std::min<std::uint32_t>(blocks / wqe_blocks, limits.max_qp_wr);
  const std::uint32_t room = provider::inline_capacity(transport, wqe_blocks);
  sizes.granted.max_inline_data = std::min<std::uint32_t>(room, limits.max_inline);
  return 0;
}

int size_receive_ring(const abi::DeviceCapabilities& limits, const ibv_qp_cap& asked, Sizes& sizes) {
  sizes.granted.max_recv_sge = asked.max_recv_sge;
  if (asked.max_recv_wr == 0) return 0;
  const std::uint32_t entries = std::bit_ceil(asked.max_recv_wr);
  if (entries > kMaxRingEntries) return EINVAL;
  sizes.log_receive_wqes = std::uint8_t(std::bit_width(entries) - 1);
  sizes.log_receive_stride = provider::log_receive_stride(asked.max_recv_sge);
  const std::uint32_t segments = (1u << sizes.log_receive_stride) / sizeof(abi::DataSegment);
  sizes.granted.max_recv_wr = entries;
  sizes.granted.max_recv_sge = std::min<std::uint32_t>(segments, limits.max_receive_sge);
  return 0;
}

// Short rings share a page. They are aligned so that a read crosses no more boundaries than in a page of its own.
DmaMemory allocate_ring(Context& context, const Qp& qp, MemoryUse use, std::size_t bytes) {
  constexpr std::size_t kLeast = 64, kPage = 4096;
  return allocate_for(context, qp.qp_base.pd, use, bytes, std::clamp(bytes, kLeast, kPage));
}

bool allocate(Context& context, Qp& qp, const Sizes& sizes) {
  qp.record = allocate_for(context, qp.qp_base.pd, MemoryUse::doorbell_record, 64, 64);
  bool complete = bool(qp.record);
  if (sizes.granted.max_send_wr > 0) {
    const std::size_t bytes = std::size_t(abi::kSendBlock) << sizes.log_send_blocks;
    qp.send_memory = allocate_ring(context, qp, MemoryUse::send_ring, bytes);
    complete = complete && qp.send_memory;
  }
  if (sizes.granted.max_recv_wr > 0) {
    const int log_bytes = sizes.log_receive_wqes + sizes.log_receive_stride;
    qp.receive_memory = allocate_ring(context, qp, MemoryUse::receive_ring, std::size_t(1) << log_bytes);
    complete = complete && qp.receive_memory;
  }
  return complete;
}

std::uint8_t context_flags(const Qp& qp) {
  const std::uint32_t asked = qp.create_flags;
  return std::uint8_t((qp.send_memory ? abi::Qpc::kHasSend : 0) | (qp.receive_memory ? abi::Qpc::kHasReceive : 0) |
                      (qp.shared() != nullptr ? abi::Qpc::kHasSrq : 0) |
                      (asked & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ? abi::Qpc::kBlockSelfMulticast : 0) |
                      (asked & IBV_QP_CREATE_CVLAN_STRIPPING ? abi::Qpc::kStripVlan : 0) |
                      (asked & IBV_QP_CREATE_SCATTER_FCS ? abi::Qpc::kScatterFcs : 0) |
                      (asked & IBV_QP_CREATE_PCI_WRITE_END_PADDING ? abi::Qpc::kPadWrites : 0));
}

abi::Qpc context_of(const Qp& qp, const Sizes& sizes) {
  abi::Qpc qpc;
  // Not inline if the PD is imported: a receive may name another process's memory, into which the library cannot copy.
  // The CQE of a raw packet has no room for inline data.
  const bool may_be_inline = !is_imported(*qp.qp_base.pd) && qp.qp_base.qp_type != IBV_QPT_RAW_PACKET;
  if (may_be_inline) qpc.inline_receive = std::uint8_t(qp.owner().inline_receive);
  qpc.transport = abi::Transport(qp.qp_base.qp_type);
  qpc.log_send_blocks = sizes.log_send_blocks;
  qpc.log_receive_wqes = sizes.log_receive_wqes;
  qpc.log_receive_stride = sizes.log_receive_stride;
  qpc.flags = context_flags(qp);
  if (qp.shared() != nullptr) qpc.srqn = qp.shared()->handle;
  qpc.source_qpn = qp.source_qpn;
  qpc.uar_page = std::uint16_t(qp.page->uar.page());
  qpc.pd = qp.qp_base.pd->handle;
  qpc.send_cqn = qp.qp_base.send_cq->handle;
  const ibv_cq& receives = qp.qp_base.recv_cq != nullptr ? *qp.qp_base.recv_cq : *qp.qp_base.send_cq;
  qpc.receive_cqn = receives.handle;
  qpc.send_ring = qp.send_memory.bus_address();
  qpc.receive_ring = qp.receive_memory.bus_address();
  qpc.doorbell_record = qp.record.bus_address();
  return qpc;
}

void make_rings(Context& context, Qp& qp, const Sizes& sizes) {
  auto* record = qp.record.as<abi::QpDoorbellRecord>();
  if (qp.send_memory) {
    const provider::SendRing::Layout layout{
        .qpn = qp.qp_base.qp_num,
        .log_blocks = sizes.log_send_blocks,
        .capacity = sizes.granted.max_send_wr,
        .blue_flame = context.blue_flame && context.has_feature(abi::feature::kBlueFlame)};
    qp.send.emplace(layout, qp.send_memory.buffer(), record, &qp.page->uar);
    qp.builder = provider::WqeBuilder(sizes.send_wqe_blocks);
  }
  if (qp.receive_memory) {
    const provider::ReceiveRing::Layout layout{.log_entries = sizes.log_receive_wqes,
                                               .log_stride = sizes.log_receive_stride};
    qp.receive.emplace(layout, qp.receive_memory.buffer(), record);
  }
}

void fill_object(Context& context, const ibv_qp_init_attr_ex& attributes, const Sizes& sizes, Qp& qp) {
  ibv_qp& base = qp.qp_base;
  base.context = &context.context;
  base.qp_context = attributes.qp_context;
  base.pd = attributes.pd;
  base.send_cq = attributes.send_cq;
  base.recv_cq = attributes.recv_cq;
  base.srq = attributes.srq;
  base.state = IBV_QPS_RESET;
  base.qp_type = attributes.qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  qp.capabilities = sizes.granted;
  qp.signal_all = attributes.sq_sig_all != 0;
  qp.create_flags = create_flags_of(attributes);
  if (qp.create_flags & IBV_QP_CREATE_SOURCE_QPN) qp.source_qpn = attributes.source_qpn;
  qp.max_tso_header = max_tso_header_of(attributes);
  qp.operations = send_operations(context, base.qp_type);
  if (qp.max_tso_header == 0) qp.operations &= ~std::uint64_t{IBV_QP_EX_WITH_TSO};
  qp.known_operations = known_operations(context);
  qp.extended = attributes.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  fill_work_request_api(qp, qp.extended ? attributes.send_ops_flags : 0);
}

// A receiving QP of an XRC domain, whose SRQs may belong to other processes.
int make_receiver(Context& context, ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made) {
  if (const int error = check_domain_qp(context, attributes)) return error;
  attributes.cap = {};
  auto qp = std::make_unique<Qp>();
  fill_object(context, attributes, {}, *qp);
  if (!(attributes.comp_mask & IBV_QP_INIT_ATTR_PD)) qp->qp_base.pd = nullptr;
  if (const int error = make_domain_qp(context, *qp, attributes.xrcd)) return error;
  made = std::move(qp);
  return 0;
}

// A QP through which flows use a table of work queues; it has no queues of its own.
int make_scaling_qp(Context& context, const ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made) {
  if (const int error = check_pd(context, attributes)) return error;
  if (const int error = check_scaling(context, attributes)) return error;
  auto qp = std::make_unique<Qp>();
  fill_object(context, attributes, {}, *qp);
  qp->table = &IndirectionTable::of(attributes.rwq_ind_tbl);
  if (const int error = create_scaling(context, attributes.rx_hash_conf, *qp)) return error;
  made = std::move(qp);
  return 0;
}

int create_qp(Context& context, ibv_qp_init_attr_ex& attributes, Qp*& created) {
  if (const int error = check_type(context, attributes.qp_type)) return error;
  if (const int error = check_mask(context, attributes)) return error;
  std::unique_ptr<Qp> qp;
  if (attributes.comp_mask & kScalingMask) {
    if (const int error = make_scaling_qp(context, attributes, qp)) return error;
  } else if (attributes.qp_type == IBV_QPT_XRC_RECV) {
    if (const int error = make_receiver(context, attributes, qp)) return error;
  } else {
    if (const int error = check_objects(context, attributes)) return error;
    if (const int error = make_qp(context, attributes, qp)) return error;
  }
  created = qp.get();
  context.qps.add(qp->qp_base.handle, std::move(qp));
  return 0;
}

ibv_qp* create(ibv_context* context, ibv_qp_init_attr_ex& attributes) {
  return guarded_object<ibv_qp>([&](ibv_qp*& made) {
    Qp* qp = nullptr;
    const int error = create_qp(Context::of(context), attributes, qp);
    if (error == 0) made = &qp->qp_base;
    return error;
  });
}

}  // namespace

int make_qp(Context& context, ibv_qp_init_attr_ex& attributes, std::unique_ptr<Qp>& made) {
  // A QP with a shared receive queue has no receive ring.
  const bool sends_only = attributes.qp_type == IBV_QPT_XRC_SEND;
  if (attributes.srq != nullptr || sends_only) attributes.cap.max_recv_wr = attributes.cap.max_recv_sge = 0;
  if (sends_only) attributes.recv_cq = nullptr;
  if (const int error = check_capabilities(context.capabilities, attributes.cap)) return error;
  Sizes sizes;
  if (const int error = size_send_ring(context.capabilities, attributes, sizes)) return error;
  if (const int error = size_receive_ring(context.capabilities, attributes.cap, sizes)) return error;

  auto qp = std::make_unique<Qp>();
  fill_object(context, attributes, sizes, *qp);
  if (!allocate(context, *qp, sizes)) return ENOMEM;
  qp->page = &doorbell_page_for(context, attributes.pd);
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_qp(0, context_of(*qp, sizes)), result)) return error;
  qp->qp_base.handle = qp->qp_base.qp_num = result.object;
  make_rings(context, *qp, sizes);
  attach_user(Cq::of(attributes.send_cq), *qp);
  if (!sends_only) attach_user(Cq::of(attributes.recv_cq), *qp);
  attributes.cap = sizes.granted;
  made = std::move(qp);
  return 0;
}

std::uint32_t most_work_requests(const abi::DeviceCapabilities& limits) {
  const std::uint32_t sges = std::min(std::uint32_t(limits.max_send_sge), std::uint32_t(limits.max_receive_sge));
  std::uint32_t largest = 1;
  for (const auto transport : {abi::Transport::rc, abi::Transport::uc, abi::Transport::ud, abi::Transport::xrc_send})
    largest = std::max(largest, send_wqe_blocks(transport, sges, limits.max_inline));
  if (limits.max_tso_header != 0)
    largest = std::max(largest, send_wqe_blocks(abi::Transport::raw, sges, limits.max_inline, limits.max_tso_header));
  return std::min<std::uint32_t>(most_send_blocks(limits) / largest, limits.max_qp_wr);
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) { return create(context, *attributes); }

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

// The header's inline ibv_create_qp_ex calls this function, too, with any PD.
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (pd == nullptr) return errno = EINVAL, nullptr;
  ibv_qp_init_attr_ex extended{};
  std::memcpy(static_cast<void*>(&extended), attributes, offsetof(ibv_qp_init_attr, sq_sig_all) + sizeof(int));
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  ibv_qp* qp = create(pd->context, extended);
  if (qp != nullptr) attributes->cap = extended.cap;
  return qp;
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return Qp::of(qp).extended ? &Qp::of(qp) : nullptr; }

}  // extern "C"
