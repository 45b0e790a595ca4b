// SPDX-License-Identifier: Apache-2.0
// Verbs objects of a host for its part of a workload: context, CQ, queue pairs, memory. A thread of the host makes
// them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/wire_workload/workload.h"

namespace rnicsim::sim::wire_workload {

// A region of the capture, placed in the memory of its simulated host.
struct PlacedRegion {
  Region captured;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
};

class WireObjects {
 public:
  WireObjects(const Workload& workload, std::uint32_t host);

  // Bytes of memory that make() needs.
  std::uint64_t memory() const { return local_end_; }

  // --- Each of these throws std::runtime_error.
  void make(std::span<std::byte> memory);
  void connect(const std::vector<WireObjects*>& all);

  const std::vector<std::size_t>& numbers() const { return numbers_; }  // queue pairs of this host
  ibv_qp* qp(std::size_t number) const { return qps_.at(number); }
  ibv_cq* cq() const { return cq_; }
  std::uint32_t send_depth(std::size_t number) const;
  std::uint32_t receive_depth(std::size_t number) const;
  // nullptr: the real NIC refused the request's memory, or has no such memory.
  const PlacedRegion* region(const Request& request) const;

  // Local memory of a request: its payload, or the target of the bytes that it brings.
  ibv_sge local(std::size_t number, std::size_t request) const;
  std::span<const std::byte> local_bytes(std::size_t number, std::size_t request) const;
  ibv_sge receive(std::size_t number, std::uint32_t bytes) const;
  // For UD only.
  ibv_ah* address_handle(std::size_t number, const roce::Gid& destination) const {
    return handles_.at({number, destination});
  }

 private:
  std::uint32_t share(std::size_t count) const;
  void plan_memory();
  void register_memory(std::span<std::byte> memory);
  ibv_qp* make_qp(std::size_t number);
  void connect_qp(std::size_t number, std::uint32_t peer_qpn, const ibv_gid& peer) const;
  void start_datagrams(std::size_t number, const std::vector<WireObjects*>& all);
  ibv_ah_attr path_to(const QueuePair& qp, const ibv_gid& gid) const;

  const Workload& workload_;
  const std::uint32_t host_;
  std::vector<std::size_t> numbers_;
  // Offsets in the memory: by region; by queue pair and request; by queue pair, of the buffer that all receives share.
  std::vector<std::uint64_t> region_at_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> local_at_;
  std::map<std::size_t, std::uint64_t> receives_at_;
  std::uint64_t local_begin_ = 0, local_end_ = 0;

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* local_ = nullptr;
  ibv_gid gid_{};
  std::span<std::byte> memory_;
  std::vector<PlacedRegion> regions_;
  std::map<std::size_t, ibv_qp*> qps_;
  std::map<std::pair<std::size_t, roce::Gid>, ibv_ah*> handles_;
};

// A key that the device never assigns.
inline constexpr std::uint32_t kNoKey = 0xffffff00;

bool brings(nic::SendOpcode opcode);  // READs and atomics
bool is_ud(const QueuePair& qp);

}  // namespace rnicsim::sim::wire_workload
