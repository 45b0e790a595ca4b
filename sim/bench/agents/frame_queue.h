// SPDX-License-Identifier: Apache-2.0
// A receive queue of raw packets. The first queue of a host also directs the frames to all queues of the host: by an
// indirection table, a queue pair with this table and the hash, and a flow rule for this queue pair.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <span>

#include "sim/bench/workload.h"

namespace rnicsim::sim::bench {

using Mac = std::array<std::uint8_t, 6>;

class FrameQueue {
 public:
  // UDP's destination port of a flow's frames.
  static std::uint16_t udp_port(std::uint32_t flow) { return static_cast<std::uint16_t>(10000 + flow); }

  // Throws std::runtime_error, as lead_to(). Receives may be posted afterwards.
  void make(ibv_pd* pd, ibv_cq* cq, const Flow& flow);
  // Directs the frames to this MAC address and UDP port to `queues`, which are in one context.
  void lead_to(std::span<FrameQueue* const> queues, const RawOptions& options, const Mac& mac, std::uint16_t port);
  void destroy();

  ibv_wq* wq() const { return wq_; }

 private:
  void make_table(std::span<FrameQueue* const> queues);
  void make_qp(const RawOptions& options);
  void make_flow(const Mac& mac, std::uint16_t port);

  ibv_wq* wq_ = nullptr;
  ibv_rwq_ind_table* table_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_flow* rule_ = nullptr;
};

}  // namespace rnicsim::sim::bench
