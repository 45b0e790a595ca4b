// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/datagrams/datagram_port.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>

#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets {

namespace {

constexpr std::uint8_t kDefaultHops = 64;

}  // namespace

bool SendSlots::make(std::uint32_t count) {
  bytes_.reset(new (std::nothrow) std::byte[std::size_t(count) * kLowWater]());
  if (bytes_ == nullptr) return false;
  count_ = count;
  free_.resize(count);
  std::iota(free_.rbegin(), free_.rend(), 0u);
  return true;
}
std::uint32_t SendSlots::take() {
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}
std::byte* SendSlots::bytes(std::uint32_t slot) const { return bytes_.get() + std::size_t(slot) * kLowWater; }
std::size_t SendSlots::size() const { return std::size_t(count_) * kLowWater; }

DatagramPort::~DatagramPort() {
  if (connection_.id() != nullptr && connection_.id()->qp != nullptr) rdma_destroy_qp(connection_.id());
  if (send_region_ != nullptr) ibv_dereg_mr(send_region_);
}

int DatagramPort::make_queue_pair(Sizes& sizes) {
  if (const int error = completions_.make(connection_.id()->verbs, sizes.send_queue + sizes.receive_queue))
    return error;
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_.get();
  attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_UD;
  attributes.sq_sig_all = 1;
  attributes.cap.max_send_wr = sizes.send_queue;
  attributes.cap.max_recv_wr = sizes.receive_queue;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 2;
  attributes.cap.max_inline_data = sizes.inline_bytes;
  if (rdma_create_qp(connection_.id(), nullptr, &attributes) != 0) return errno;
  inline_bytes_ = attributes.cap.max_inline_data;
  return 0;
}

int DatagramPort::make(const SocketAddress& local, Sizes& sizes, const SendSlots& slots) {
  address_ = local;
  header_ = datagram_header(local);
  if (const int error = connection_.create(RDMA_PS_UDP)) return error;
  if (rdma_bind_addr(connection_.id(), &address_.any) != 0) return errno;
  if (connection_.id()->verbs == nullptr) return EADDRNOTAVAIL;
  ibv_port_attr port{};
  if (const int error = ibv_query_port(connection_.id()->verbs, connection_.id()->port_num, &port)) return error;
  longest_ = std::min(kLowWater, 128u << port.active_mtu);
  if (const int error = make_queue_pair(sizes)) return error;
  ibv_pd* pd = connection_.id()->qp->pd;
  grh_offset_ = std::size_t(sizes.receive_queue) * kLowWater;
  if (const int error = receive_.make(pd, grh_offset_ + sizeof(ibv_grh), IBV_ACCESS_LOCAL_WRITE)) return error;
  send_region_ = ibv_reg_mr(pd, slots.all(), slots.size(), IBV_ACCESS_LOCAL_WRITE);
  if (send_region_ == nullptr) return errno;
  for (std::uint32_t slot = 0; slot < sizes.receive_queue; ++slot) {
    if (const int error = post_receive(slot)) return error;
  }
  return 0;
}

const std::byte* DatagramPort::received(std::uint32_t slot) const {
  return receive_.data() + std::size_t(slot) * kLowWater;
}

// All receives share one place for the GRH, which is not used.
int DatagramPort::post_receive(std::uint32_t slot) {
  ibv_sge pieces[2] = {{receive_.address() + grh_offset_, sizeof(ibv_grh), receive_.lkey()},
                       {receive_.address() + std::size_t(slot) * kLowWater, kLowWater, receive_.lkey()}};
  ibv_recv_wr request{};
  request.wr_id = kReceiveWork | slot;
  request.sg_list = pieces;
  request.num_sge = 2;
  ibv_recv_wr* bad;
  return ibv_post_recv(connection_.id()->qp, &request, &bad);
}

int DatagramPort::post_send(std::uint32_t slot, const std::byte* bytes, std::uint32_t length, ibv_ah* to,
                            std::uint32_t qp_number) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes), length, send_region_->lkey};
  ibv_send_wr request{};
  request.wr_id = slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = length <= inline_bytes_ ? unsigned(IBV_SEND_INLINE) : 0;
  request.wr.ud.ah = to;
  request.wr.ud.remote_qpn = qp_number;
  request.wr.ud.remote_qkey = RDMA_UDP_QKEY;
  ibv_send_wr* bad;
  return ibv_post_send(connection_.id()->qp, &request, &bad);
}

std::optional<std::uint8_t> DatagramPort::gid_index(const ibv_gid& gid) const {
  const rdma_cm_id& id = *connection_.id();
  ibv_port_attr port{};
  if (ibv_query_port(id.verbs, id.port_num, &port) != 0) return std::nullopt;
  std::optional<std::uint8_t> found;
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(id.verbs, id.port_num, std::uint32_t(index), &entry, 0) != 0) continue;
    if (std::memcmp(&entry.gid, &gid, sizeof gid) != 0) continue;
    if (entry.gid_type == IBV_GID_TYPE_ROCE_V2) return std::uint8_t(index);
    if (!found) found = std::uint8_t(index);
  }
  return found;
}

ibv_ah* DatagramPort::make_handle(const rdma_route& route) const {
  const rdma_ib_addr& ends = route.addr.addr.ibaddr;
  const auto index = gid_index(ends.sgid);
  if (!index) {
    errno = EADDRNOTAVAIL;
    return nullptr;
  }
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.grh.dgid = ends.dgid;
  attributes.grh.sgid_index = *index;
  attributes.grh.hop_limit = kDefaultHops;
  attributes.port_num = connection_.id()->port_num;
  if (route.num_paths != 0) {
    const ibv_sa_path_rec& path = route.path_rec[0];
    attributes.grh.flow_label = ntohl(path.flow_label);
    attributes.grh.traffic_class = path.traffic_class;
    attributes.grh.hop_limit = std::max<std::uint8_t>(path.hop_limit, 1);
    attributes.dlid = ntohs(path.dlid);
    attributes.sl = path.sl;
    attributes.static_rate = path.rate;
  }
  return ibv_create_ah(connection_.id()->qp->pd, &attributes);
}

}  // namespace rnicsim::rsockets
