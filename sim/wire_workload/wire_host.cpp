// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/wire_host.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/adapter.h"
#include "sim/bench/made.h"
#include "sim/config/config.h"
#include "sim/system.h"

namespace rnicsim::sim::wire_workload {
namespace {

using bench::must;

constexpr std::uint64_t kReceive = std::uint64_t{1} << 63;
constexpr int kQueueShift = 32;

ibv_wr_opcode opcode_of(nic::SendOpcode opcode) {
  switch (opcode) {
    case nic::SendOpcode::write: return IBV_WR_RDMA_WRITE;
    case nic::SendOpcode::write_with_imm: return IBV_WR_RDMA_WRITE_WITH_IMM;
    case nic::SendOpcode::read: return IBV_WR_RDMA_READ;
    case nic::SendOpcode::compare_swap: return IBV_WR_ATOMIC_CMP_AND_SWP;
    case nic::SendOpcode::fetch_add: return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case nic::SendOpcode::send_with_imm: return IBV_WR_SEND_WITH_IMM;
    default: return IBV_WR_SEND;
  }
}

// Sets the peer's memory that the request names.
void aim(ibv_send_wr& wr, const Request& request, const WireObjects& peer) {
  const auto* region = peer.region(request);
  const auto rkey = region == nullptr ? kNoKey : region->rkey;
  const auto address =
      region == nullptr ? request.address : region->address + (request.address - region->captured.address);
  const bool is_atomic = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (!is_atomic) {
    wr.wr.rdma = {address, rkey};
    return;
  }
  const bool swaps = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic = {address, swaps ? request.compare : request.swap_add, swaps ? request.swap_add : 0, rkey};
}

}  // namespace

WireHost::WireHost(System& system, const Workload& workload, std::uint32_t host, std::uintptr_t memory_at, Stage& stage,
                   std::vector<WireObjects*>& all)
    : workload_(workload),
      host_(host),
      stage_(stage),
      all_(all),
      objects_(workload, host),
      memory_(objects_.memory(), memory_at) {
  std::size_t requests = 0;
  for (const auto number : objects_.numbers()) {
    auto& queue = queues_[number];
    queue.number = number;
    queue.completions.resize(workload.qps[number].requests.size());
    requests += queue.completions.size();
  }
  stage_.expect(requests);
  auto& adapter = system.adapter(host);
  process_ = std::make_unique<host::SoftwareProcess>(
      fmt::format("wire_host{}", host).c_str(), system.config().host_of(host), adapter.agent(), [this] { body(); });
  process_->port().trust(memory_.bytes());
}

void WireHost::body() {
  auto& port = process_->port();
  try {
    objects_.make(memory_.bytes());
    port.settle();
    stage_.meet();
    objects_.connect(all_);
    for (auto& [number, queue] : queues_) {
      const auto& receives = workload_.qps[number].receives;
      const auto first = std::ranges::find_if(receives, [](const Receive& receive) { return receive.at.has_value(); });
      queue.receives_due = static_cast<std::size_t>(first - receives.begin());
      post_due(queue);
    }
    port.settle();
    stage_.meet();
    process_->spawn(fmt::format("wire_completions{}", host_), [this] { take_completions(); });
    for (const auto& [at, queue, is_receive] : steps()) {
      port.wait_until(stage_.begin() + at);
      ++(is_receive ? queue->receives_due : queue->requests_due);
      post_due(*queue);
    }
  } catch (const std::runtime_error& error) {
    stage_.fail(fmt::format("h{}: {}", host_, error.what()));
  }
  port.leave();
}

std::vector<WireHost::Step> WireHost::steps() {
  std::vector<Step> steps;
  for (auto& [number, queue] : queues_) {
    for (const auto& receive : workload_.qps[number].receives)
      if (receive.at) steps.push_back({*receive.at, &queue, true});
    for (const auto& request : workload_.qps[number].requests) steps.push_back({request.at, &queue, false});
  }
  std::ranges::stable_sort(steps, {}, &Step::at);
  return steps;
}

// Posts all requests and receives that are due and have room in their ring.
void WireHost::post_due(Queue& queue) {
  if (queue.is_posting) return;
  queue.is_posting = true;
  const auto receive_depth = objects_.receive_depth(queue.number), send_depth = objects_.send_depth(queue.number);
  while (queue.receives_posted < queue.receives_due && queue.receives_posted - queue.receives_done < receive_depth)
    post_receive(queue);
  while (queue.requests_posted < queue.requests_due && queue.requests_posted - queue.requests_done < send_depth)
    post_request(queue);
  queue.is_posting = false;
}

void WireHost::post_request(Queue& queue) {
  const auto& qp = workload_.qps[queue.number];
  const auto number = queue.requests_posted++;
  const auto& request = qp.requests[number];
  ibv_sge sge = objects_.local(queue.number, number);
  ibv_send_wr wr{};
  wr.wr_id = std::uint64_t{queue.number} << kQueueShift | number;
  wr.sg_list = &sge;
  wr.num_sge = request.length == 0 ? 0 : 1;
  wr.opcode = opcode_of(request.opcode);
  wr.imm_data = __builtin_bswap32(request.immediate);
  if (is_ud(qp)) {
    wr.wr.ud.ah = objects_.address_handle(queue.number, request.destination);
    wr.wr.ud.remote_qpn = receiver_of(request);
    wr.wr.ud.remote_qkey = request.qkey;
  } else {
    aim(wr, request, *all_[workload_.qps[*qp.peer].host]);
  }
  ibv_send_wr* bad = nullptr;
  must(ibv_post_send(objects_.qp(queue.number), &wr, &bad), "ibv_post_send");
}

// Queue pair number of the datagram's receiver in the simulation.
std::uint32_t WireHost::receiver_of(const Request& request) const {
  for (std::size_t i = 0; i < workload_.qps.size(); ++i) {
    const auto& qp = workload_.qps[i];
    if (is_ud(qp) && !qp.group && qp.number == request.destination_qp &&
        workload_.hosts[qp.host].address == request.destination)
      return all_[qp.host]->qp(i)->qp_num;
  }
  return roce::kMulticastQpn;
}

void WireHost::post_receive(Queue& queue) {
  const auto number = queue.receives_posted++;
  const auto bytes = workload_.qps[queue.number].receives[number].bytes;
  ibv_sge sge = objects_.receive(queue.number, bytes);
  ibv_recv_wr wr{};
  wr.wr_id = kReceive | std::uint64_t{queue.number} << kQueueShift | number;
  wr.sg_list = &sge;
  wr.num_sge = sge.length == 0 ? 0 : 1;
  ibv_recv_wr* bad = nullptr;
  must(ibv_post_recv(objects_.qp(queue.number), &wr, &bad), "ibv_post_recv");
}

void WireHost::take_completions() {
  try {
    std::array<ibv_wc, kPollMost> completions{};
    while (stage_.failure().empty()) {
      const int count = ibv_poll_cq(objects_.cq(), kPollMost, completions.data());
      if (count < 0) throw std::runtime_error("ibv_poll_cq failed");
      for (int i = 0; i < count; ++i) take(completions[static_cast<std::size_t>(i)]);
    }
  } catch (const std::runtime_error& error) {
    stage_.fail(fmt::format("h{}: {}", host_, error.what()));
  }
}

void WireHost::take(const ibv_wc& completion) {
  const auto number = static_cast<std::size_t>((completion.wr_id & ~kReceive) >> kQueueShift);
  const auto index = static_cast<std::size_t>(static_cast<std::uint32_t>(completion.wr_id));
  auto& queue = queues_.at(number);
  if ((completion.wr_id & kReceive) != 0) {
    ++queue.receives_done;
    return post_due(queue);
  }
  const auto& request = workload_.qps[number].requests[index];
  Completion ended{.status = static_cast<roce::Status>(completion.status)};
  if (brings(request.opcode) && completion.status == IBV_WC_SUCCESS && request.brought.size() == request.length)
    ended.same_bytes = std::ranges::equal(objects_.local_bytes(number, index), request.brought);
  queue.completions[index] = ended;
  ++queue.requests_done;
  stage_.complete();
  post_due(queue);
}

}  // namespace rnicsim::sim::wire_workload
