// A receive queue of raw packets; the first of a host's leads frames to all of them: a table, a queue pair that names
// it and how to hash, and a flow to that.
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

  // Each throws std::runtime_error. Receives may be posted from then on.
  void make(ibv_pd* pd, ibv_cq* cq, const Flow& flow);
  // What comes to this address and port; `queues` are in one context.
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
