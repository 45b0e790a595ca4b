// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/agents/station.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>

#include "sim/bench/made.h"
#include "verbs/ibverbs/context_options.h"

namespace rnicsim::sim::bench {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kLocalGidIndex = 0;
constexpr int kEcnBits = 2;            // bits of a traffic class below the DSCP
constexpr std::uint8_t kGidIndex = 1;  // the GID of the host's IPv4 address
// Lower limit of a CQ: the device often reads the doorbell record of a small CQ.
constexpr std::uint64_t kLeastEntries = 255;
constexpr std::uint8_t kRetryForEver = 7;  // for RNR NAKs: no limit of retries

ibv_qp_type type_of(Transport transport, bool sends) {
  switch (transport) {
    case Transport::uc: return IBV_QPT_UC;
    case Transport::ud: return IBV_QPT_UD;
    case Transport::raw: return IBV_QPT_RAW_PACKET;
    case Transport::xrc: return sends ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
    default: return IBV_QPT_RC;
  }
}

// MAC address from the link-local GID, which has it as EUI-64.
Mac mac_of(const ibv_gid& gid) {
  const auto& raw = gid.raw;
  return {static_cast<std::uint8_t>(raw[8] ^ 2), raw[9], raw[10], raw[13], raw[14], raw[15]};
}

ibv_mtu mtu_of(std::uint32_t bytes) { return static_cast<ibv_mtu>(std::bit_width(bytes) - 8); }

std::uint64_t stride_of(const PlannedAgent& agent) {
  return (agent.region.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

std::uint64_t memory_of(const Plan& plan, std::uint32_t number, const Flow& flow) {
  const auto& agent = plan.agents[number];
  return agent.lender == number ? stride_of(agent) * flow.mrs : 0;
}

OpenDevice& Devices::of(const PlannedAgent& agent, const Flow& flow) {
  const bool own = has_own_context(agent, flow);
  auto& device = open_[{agent.flow, own ? agent.thread : 0, own && agent.sends}];
  if (device.context) return device;
  ibv_device** list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
  device.context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  made(device.context, "ibv_open_device");
  verbs::use_blue_flame(device.context, flow.doorbell == Doorbell::blueflame);
  verbs::use_inline_receive(device.context, static_cast<std::uint32_t>(flow.recv_inline.bytes));
  device.pd = made(ibv_alloc_pd(device.context), "ibv_alloc_pd");
  if (flow.transport == Transport::xrc) {
    ibv_xrcd_init_attr own{};
    own.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    own.fd = -1;
    own.oflags = O_CREAT;
    device.xrcd = made(ibv_open_xrcd(device.context, &own), "ibv_open_xrcd");
  }
  must(ibv_query_gid(device.context, kPort, kGidIndex, &device.gid), "ibv_query_gid");
  ibv_gid local{};
  must(ibv_query_gid(device.context, kPort, kLocalGidIndex, &local), "ibv_query_gid");
  device.mac = mac_of(local);
  return device;
}

void Devices::close() {
  for (auto& [key, device] : open_)
    if (device.context) ibv_close_device(device.context);
  open_.clear();
}

void Station::make(OpenDevice& device, std::span<std::byte> memory, const Station& lender) {
  device_ = &device;
  memory_ = memory;
  if (flow_.registers()) return;
  if (flow_.churns()) {
    cq_ = made(ibv_create_cq(device.context, kLeastEntries, nullptr, nullptr, 0), "ibv_create_cq");
    return;
  }
  const auto stride = stride_of(plan_);
  if (&lender != this) regions_ = lender.regions_;
  for (std::uint32_t i = 0; &lender == this && i < flow_.mrs; ++i) {
    const int access = kAccess | (flow_.odp ? int{IBV_ACCESS_ON_DEMAND} : 0);
    auto* mr = made(ibv_reg_mr(device.pd, memory.data() + i * stride, plan_.region.bytes, access), "ibv_reg_mr");
    mrs_.push_back(mr);
    regions_.push_back({reinterpret_cast<std::uint64_t>(mr->addr), mr->lkey, mr->rkey});
  }
  const bool one_queue = has_frames() || (flow_.srq && !posts());
  const std::uint64_t each = posts() ? flow_.window : flow_.takes_receives() ? flow_.receives() : 0;
  const auto entries = static_cast<int>(std::max(each * (one_queue ? 1 : plan_.qps.size()) + 1, kLeastEntries));
  cq_ = made(ibv_create_cq(device.context, entries, nullptr, nullptr, 0), "ibv_create_cq");
  if (flow_.srq && !posts()) srq_ = make_srq();
  for (std::size_t i = 0; i < plan_.qps.size(); ++i) qps_.push_back(make_qp());
  if (has_frames()) frames_.make(device.pd, cq_, flow_);
}

ibv_srq* Station::make_srq() {
  ibv_srq_init_attr_ex wanted{};
  wanted.attr.max_wr = flow_.receives();
  wanted.attr.max_sge = 1;
  wanted.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  wanted.srq_type = IBV_SRQT_BASIC;
  wanted.pd = device_->pd;
  if (flow_.transport == Transport::xrc) {
    wanted.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    wanted.srq_type = IBV_SRQT_XRC;
    wanted.xrcd = device_->xrcd;
    wanted.cq = cq_;
  }
  return made(ibv_create_srq_ex(device_->context, &wanted), "ibv_create_srq_ex");
}

ibv_qp* Station::make_qp() {
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_type = type_of(flow_.transport, plan_.sends);
  if (attributes.qp_type == IBV_QPT_XRC_RECV) {
    attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attributes.xrcd = device_->xrcd;
    return made(ibv_create_qp_ex(device_->context, &attributes), "ibv_create_qp_ex");
  }
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
  attributes.pd = device_->pd;
  if (flow_.raw.tso_mss) {
    attributes.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    attributes.max_tso_header = RawOptions::kHeaderBytes;
  }
  attributes.send_cq = attributes.recv_cq = cq_;
  if (posts()) {
    attributes.cap.max_send_wr = flow_.window;
    attributes.cap.max_send_sge = 1;
    attributes.cap.max_inline_data = static_cast<std::uint32_t>(flow_.inline_most.bytes);
  } else if (srq_ != nullptr) {
    attributes.srq = srq_;
  } else if (flow_.takes_receives()) {
    attributes.cap.max_recv_wr = flow_.receives();
    attributes.cap.max_recv_sge = 1;
  }
  return made(ibv_create_qp_ex(device_->context, &attributes), "ibv_create_qp_ex");
}

void Station::connect(const std::vector<std::unique_ptr<Station>>& all) {
  if (flow_.transport == Transport::raw) {
    for (auto* qp : qps_) start_frames(qp);
    if (has_frames() && plan_.thread == 0) lead_frames(all);
    return;
  }
  for (std::size_t i = 0; i < qps_.size(); ++i) {
    const Station& peer = *all[plan_.qps[i].agent];
    if (flow_.transport == Transport::ud)
      start_datagrams(qps_[i], peer.device_->gid);
    else
      connect_qp(qps_[i], peer.qps_[plan_.qps[i].qp]->qp_num, peer.device_->gid);
  }
}

ibv_ah_attr Station::path_to(const ibv_gid& gid) const {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = kPort;
  path.grh.dgid = gid;
  path.grh.sgid_index = kGidIndex;
  path.grh.hop_limit = 64;
  path.grh.traffic_class = static_cast<std::uint8_t>(flow_.dscp << kEcnBits);
  path.sl = static_cast<std::uint8_t>(flow_.sl);
  return path;
}

void Station::start_datagrams(ibv_qp* qp, const ibv_gid& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = kQkey;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
       "ibv_modify_qp to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), "ibv_modify_qp to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp to RTS");
  if (!posts()) return;
  auto path = path_to(peer);
  address_handles_.push_back(made(ibv_create_ah(device_->pd, &path), "ibv_create_ah"));
}

void Station::start_frames(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PORT), "ibv_modify_qp to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), "ibv_modify_qp to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE), "ibv_modify_qp to RTS");
}

void Station::lead_frames(const std::vector<std::unique_ptr<Station>>& all) {
  std::vector<FrameQueue*> queues;
  for (const auto& other : all)
    if (other->has_frames() && other->plan_.flow == plan_.flow && other->plan_.host == plan_.host)
      queues.push_back(&other->frames_);
  frames_.lead_to(queues, flow_.raw, mac(), FrameQueue::udp_port(plan_.flow));
}

void Station::connect_qp(ibv_qp* qp, std::uint32_t peer, const ibv_gid& gid) const {
  const bool reliable = flow_.transport != Transport::uc;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = kAccess;
  must(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
       "ibv_modify_qp to INIT");

  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = mtu_of(*flow_.mtu);
  attributes.dest_qp_num = peer;
  attributes.max_dest_rd_atomic = static_cast<std::uint8_t>(*flow_.max_rd_atomic);
  attributes.min_rnr_timer = static_cast<std::uint8_t>(flow_.rnr_timer);
  attributes.ah_attr = path_to(gid);
  must(ibv_modify_qp(qp, &attributes,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
       "ibv_modify_qp to RTR");

  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = static_cast<std::uint8_t>(flow_.timeout);
  attributes.retry_cnt = static_cast<std::uint8_t>(flow_.retry);
  attributes.rnr_retry = kRetryForEver;
  attributes.max_rd_atomic = static_cast<std::uint8_t>(*flow_.max_rd_atomic);
  must(ibv_modify_qp(
           qp, &attributes,
           IBV_QP_STATE | IBV_QP_SQ_PSN |
               (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)),
       "ibv_modify_qp to RTS");
}

void Station::connect_and_destroy() {
  ibv_qp* qp = make_qp();
  connect_qp(qp, qp->qp_num, device_->gid);
  must(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

void Station::destroy() {
  // Errors are ignored: closing the context destroys the remaining objects.
  for (auto* qp : qps_) ibv_destroy_qp(qp);
  qps_.clear();
  if (srq_) ibv_destroy_srq(srq_);
  srq_ = nullptr;
  frames_.destroy();
  for (auto* handle : address_handles_) ibv_destroy_ah(handle);
  address_handles_.clear();
  if (cq_) ibv_destroy_cq(cq_);
  cq_ = nullptr;
  for (auto* mr : mrs_) ibv_dereg_mr(mr);
  mrs_.clear();
}

}  // namespace rnicsim::sim::bench
