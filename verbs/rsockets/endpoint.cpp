// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace rnicsim::rsockets {

namespace {

constexpr std::uint16_t kSmallestQueue = 16;
constexpr std::uint16_t kLongestQueue = 0xfffe;
constexpr std::size_t kTargetBytes = sizeof(WireExtent) * Targets::kEntries;

}  // namespace

RegisteredMemory::~RegisteredMemory() {
  if (region_ != nullptr) ibv_dereg_mr(region_);
}

int RegisteredMemory::make(ibv_pd* pd, std::size_t length, int access) {
  data_.reset(new (std::nothrow) std::byte[length]());
  if (data_ == nullptr) return ENOMEM;
  region_ = ibv_reg_mr(pd, data_.get(), length, access);
  return region_ == nullptr ? errno : 0;
}

void limit_queues(ibv_context* context, Sizes& sizes) {
  ibv_device_attr attributes{};
  std::uint16_t most = kLongestQueue;
  if (ibv_query_device(context, &attributes) == 0) most = std::uint16_t(std::min<int>(attributes.max_qp_wr, most));
  const auto possible = [&](std::uint16_t wanted) { return std::min(std::max(wanted, kSmallestQueue), most); };
  sizes.send_queue = possible(sizes.send_queue);
  sizes.receive_queue = possible(sizes.receive_queue);
}

Endpoint::~Endpoint() {
  if (id_->qp != nullptr) rdma_destroy_qp(id_);
}

int Endpoint::make_queue_pair(Sizes& sizes) {
  if (const int error = completions_.make(id_->verbs, sizes.send_queue + sizes.receive_queue)) return error;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_.get();
  attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.sq_sig_all = 1;
  attributes.cap.max_send_wr = sizes.send_queue;
  attributes.cap.max_recv_wr = sizes.receive_queue;
  attributes.cap.max_send_sge = 2;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = sizes.inline_bytes;
  if (rdma_create_qp(id_, nullptr, &attributes) != 0) return errno;
  sizes.inline_bytes = std::uint16_t(std::min<std::uint32_t>(attributes.cap.max_inline_data, kLongestQueue));
  return 0;
}

int Endpoint::make(Sizes& sizes) {
  limit_queues(id_->verbs, sizes);
  if (const int error = make_queue_pair(sizes)) return error;
  constexpr int kReached = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  sizes.receive_bytes &= ~1u;
  control_offset_ = sizes.send_bytes;
  mapping_entries_ = sizes.iomap_entries;
  const std::size_t controls = sizeof(WireExtent) * kControlPlaces;
  if (const int error = send_.make(pd(), sizes.send_bytes + controls, IBV_ACCESS_LOCAL_WRITE)) return error;
  if (const int error = lists_.make(pd(), kTargetBytes + sizeof(WireMapping) * mapping_entries_, kReached))
    return error;
  if (const int error = receive_.make(pd(), sizes.receive_bytes, kReached)) return error;
  return post_receives(sizes.receive_queue);
}

ConnectionData Endpoint::describe(const Sizes& sizes) const {
  ConnectionData data;
  data.credits = sizes.receive_queue;
  data.iomap_entries = sizes.iomap_entries;
  data.targets = {lists_.address(), lists_.rkey(), Targets::kEntries};
  data.buffer = receive_extent(0, sizes.receive_bytes / 2);
  return data;
}

std::span<WireExtent, Targets::kEntries> Endpoint::targets() const {
  return std::span<WireExtent, Targets::kEntries>(reinterpret_cast<WireExtent*>(lists_.data()), Targets::kEntries);
}
std::span<WireMapping> Endpoint::mappings() const {
  return {reinterpret_cast<WireMapping*>(lists_.data() + kTargetBytes), mapping_entries_};
}

int Endpoint::post_receives(std::uint32_t count) {
  // Receives without buffers: messages arrive as immediate data.
  ibv_recv_wr request{};
  request.wr_id = kReceiveWork;
  for (; count != 0; --count) {
    ibv_recv_wr* bad;
    if (const int error = ibv_post_recv(id_->qp, &request, &bad)) return error;
  }
  return 0;
}

int Endpoint::post(Message message, bool immediate, std::span<ibv_sge> pieces, bool inlined, const Extent& target) {
  ibv_send_wr request{};
  request.wr_id = encode(message);
  request.sg_list = pieces.data();
  request.num_sge = int(pieces.size());
  request.opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.send_flags = inlined ? unsigned(IBV_SEND_INLINE) : 0;
  request.imm_data = htonl(encode(message));
  request.wr.rdma.remote_addr = target.address;
  request.wr.rdma.rkey = target.key;
  ibv_send_wr* bad;
  return ibv_post_send(id_->qp, &request, &bad);
}

void Endpoint::stop() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(id_->qp, &attributes, IBV_QP_STATE);
}

}  // namespace rnicsim::rsockets
