// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/wire_objects.h"

#include <algorithm>
#include <cstring>

#include "model/roce/types.h"
#include "sim/bench/made.h"

namespace rnicsim::sim::wire_workload {
namespace {

using bench::made;
using bench::must;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kLine = 64;
constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kGidIndex = 1;  // GID of the host's IPv4 address
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint8_t kMostReads = 16;  // READs and atomics in flight for each queue pair
constexpr std::uint32_t kMostDepth = 4096;
constexpr std::uint32_t kCqEntries = 1 << 20;
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

ibv_qp_type type_of(roce::Transport transport) {
  if (transport == roce::Transport::rc) return IBV_QPT_RC;
  return transport == roce::Transport::uc ? IBV_QPT_UC : IBV_QPT_UD;
}

ibv_gid verbs_gid(const roce::Gid& gid) {
  ibv_gid copy{};
  std::ranges::copy(gid, copy.raw);
  return copy;
}

}  // namespace

bool brings(nic::SendOpcode opcode) {
  return opcode == nic::SendOpcode::read || opcode == nic::SendOpcode::fetch_add ||
         opcode == nic::SendOpcode::compare_swap;
}

bool is_ud(const QueuePair& qp) { return qp.transport == roce::Transport::ud; }

WireObjects::WireObjects(const Workload& workload, std::uint32_t host) : workload_(workload), host_(host) {
  for (std::size_t i = 0; i < workload.qps.size(); ++i)
    if (workload.qps[i].host == host) numbers_.push_back(i);
  plan_memory();
}

void WireObjects::plan_memory() {
  std::uint64_t at = 0;
  for (const auto& region : workload_.hosts[host_].regions) {
    region_at_.push_back(at);
    at += region.length;
  }
  local_begin_ = at;
  for (const auto number : numbers_) {
    const auto& qp = workload_.qps[number];
    for (std::size_t i = 0; i < qp.requests.size(); ++i) {
      local_at_[{number, i}] = at;
      at += rounded_up(qp.requests[i].length, kLine);
    }
    std::uint32_t largest = 0;
    for (const auto& receive : qp.receives) largest = std::max(largest, receive.bytes);
    receives_at_[number] = at;
    at += rounded_up(largest + (is_ud(qp) ? roce::kGrhBytes : 0), kLine);
  }
  local_end_ = rounded_up(at + 1, kPageBytes);
}

// Entries of a queue pair's ring, limited so that the completions of all rings fit into the CQ.
std::uint32_t WireObjects::share(std::size_t count) const {
  const auto most = std::min<std::size_t>(kMostDepth, kCqEntries / (2 * std::max<std::size_t>(1, numbers_.size())));
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(count, 1, std::max<std::size_t>(1, most)));
}

std::uint32_t WireObjects::send_depth(std::size_t number) const { return share(workload_.qps[number].requests.size()); }

std::uint32_t WireObjects::receive_depth(std::size_t number) const {
  return share(workload_.qps[number].receives.size());
}

void WireObjects::make(std::span<std::byte> memory) {
  memory_ = memory;
  ibv_device** list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
  context_ = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  made(context_, "ibv_open_device");
  pd_ = made(ibv_alloc_pd(context_), "ibv_alloc_pd");
  must(ibv_query_gid(context_, kPort, kGidIndex, &gid_), "ibv_query_gid");
  register_memory(memory);
  std::size_t entries = 1;
  for (const auto number : numbers_) entries += send_depth(number) + receive_depth(number);
  cq_ = made(ibv_create_cq(context_, static_cast<int>(entries), nullptr, nullptr, 0), "ibv_create_cq");
  for (const auto number : numbers_) qps_[number] = make_qp(number);
}

void WireObjects::register_memory(std::span<std::byte> memory) {
  const auto& host = workload_.hosts[host_];
  for (std::size_t i = 0; i < host.regions.size(); ++i) {
    const auto& captured = host.regions[i];
    auto* mr = made(ibv_reg_mr(pd_, memory.data() + region_at_[i], captured.length, kAccess), "ibv_reg_mr");
    regions_.push_back({captured, reinterpret_cast<std::uint64_t>(mr->addr), mr->rkey});
  }
  for (const auto& known : host.contents)
    for (std::size_t i = 0; i < host.regions.size(); ++i)
      if (host.regions[i].has(known.rkey, known.address, known.bytes.size()))
        std::ranges::copy(known.bytes, memory.data() + region_at_[i] + (known.address - host.regions[i].address));
  for (const auto& [place, at] : local_at_)
    std::ranges::copy(workload_.qps[place.first].requests[place.second].payload, memory.data() + at);
  local_ = made(ibv_reg_mr(pd_, memory.data() + local_begin_, local_end_ - local_begin_, kAccess), "ibv_reg_mr");
}

ibv_qp* WireObjects::make_qp(std::size_t number) {
  const auto& qp = workload_.qps[number];
  ibv_qp_init_attr attributes{};
  attributes.qp_type = type_of(qp.transport);
  attributes.send_cq = attributes.recv_cq = cq_;
  attributes.sq_sig_all = 1;
  attributes.cap.max_send_wr = send_depth(number);
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_wr = receive_depth(number);
  attributes.cap.max_recv_sge = 1;
  return made(ibv_create_qp(pd_, &attributes), "ibv_create_qp");
}

void WireObjects::connect(const std::vector<WireObjects*>& all) {
  for (const auto number : numbers_) {
    const auto& qp = workload_.qps[number];
    if (is_ud(qp)) {
      start_datagrams(number, all);
    } else if (qp.peer) {
      const auto& peer = *all[workload_.qps[*qp.peer].host];
      connect_qp(number, peer.qps_.at(*qp.peer)->qp_num, peer.gid_);
    }
  }
}

ibv_ah_attr WireObjects::path_to(const QueuePair& qp, const ibv_gid& gid) const {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.port_num = kPort;
  path.grh.dgid = gid;
  path.grh.sgid_index = kGidIndex;
  path.grh.hop_limit = kHopLimit;
  path.grh.traffic_class = qp.traffic_class;
  return path;
}

void WireObjects::connect_qp(std::size_t number, std::uint32_t peer_qpn, const ibv_gid& peer) const {
  const auto& qp = workload_.qps[number];
  const bool reliable = qp.transport == roce::Transport::rc;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags = kAccess;
  must(
      ibv_modify_qp(qps_.at(number), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
      "ibv_modify_qp to INIT");

  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(qp.path_mtu);
  attributes.dest_qp_num = peer_qpn;
  attributes.rq_psn = qp.rq_psn.value();
  attributes.max_dest_rd_atomic = kMostReads;
  attributes.min_rnr_timer = qp.min_rnr_timer;
  attributes.ah_attr = path_to(qp, peer);
  must(ibv_modify_qp(qps_.at(number), &attributes,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
       "ibv_modify_qp to RTR");

  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = qp.sq_psn.value();
  attributes.timeout = qp.timeout;
  attributes.retry_cnt = qp.retry_count;
  attributes.rnr_retry = qp.rnr_retry;
  attributes.max_rd_atomic = kMostReads;
  must(ibv_modify_qp(
           qps_.at(number), &attributes,
           IBV_QP_STATE | IBV_QP_SQ_PSN |
               (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)),
       "ibv_modify_qp to RTS");
}

void WireObjects::start_datagrams(std::size_t number, const std::vector<WireObjects*>& all) {
  const auto& qp = workload_.qps[number];
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qkey = qp.qkey;
  must(ibv_modify_qp(qps_.at(number), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
       "ibv_modify_qp to INIT");
  attributes.qp_state = IBV_QPS_RTR;
  must(ibv_modify_qp(qps_.at(number), &attributes, IBV_QP_STATE), "ibv_modify_qp to RTR");
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = qp.sq_psn.value();
  must(ibv_modify_qp(qps_.at(number), &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp to RTS");
  if (qp.group) {
    const auto group = verbs_gid(*qp.group);
    must(ibv_attach_mcast(qps_.at(number), &group, 0), "ibv_attach_mcast");
  }
  for (const auto& request : qp.requests) {
    auto& handle = handles_[{number, request.destination}];
    if (handle != nullptr) continue;
    const auto host = std::ranges::find(workload_.hosts, request.destination, &Host::address);
    auto path = path_to(qp, host == workload_.hosts.end()
                                ? verbs_gid(request.destination)  // a group
                                : all[static_cast<std::size_t>(host - workload_.hosts.begin())]->gid_);
    handle = made(ibv_create_ah(pd_, &path), "ibv_create_ah");
  }
}

const PlacedRegion* WireObjects::region(const Request& request) const {
  const bool refused = request.outcome == roce::Status::remote_access_error;
  const auto found = std::ranges::find_if(regions_, [&](const PlacedRegion& region) {
    return region.captured.has(request.rkey, request.address, std::max(request.length, 1u));
  });
  return refused || found == regions_.end() ? nullptr : &*found;
}

ibv_sge WireObjects::local(std::size_t number, std::size_t request) const {
  return {reinterpret_cast<std::uint64_t>(memory_.data()) + local_at_.at({number, request}),
          workload_.qps[number].requests[request].length, local_->lkey};
}

std::span<const std::byte> WireObjects::local_bytes(std::size_t number, std::size_t request) const {
  return memory_.subspan(local_at_.at({number, request}), workload_.qps[number].requests[request].length);
}

ibv_sge WireObjects::receive(std::size_t number, std::uint32_t bytes) const {
  return {reinterpret_cast<std::uint64_t>(memory_.data()) + receives_at_.at(number),
          bytes + (is_ud(workload_.qps[number]) ? roce::kGrhBytes : 0), local_->lkey};
}

}  // namespace rnicsim::sim::wire_workload
