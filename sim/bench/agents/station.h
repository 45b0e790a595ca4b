// SPDX-License-Identifier: Apache-2.0
// Verbs objects of an agent: context, CQ, QPs, memory regions. A thread of the agent's host makes and connects them.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "sim/bench/agents/frame_queue.h"
#include "sim/bench/plan.h"

namespace rnicsim::sim::bench {

// Q_Key of the datagrams of a run.
inline constexpr std::uint32_t kQkey = 0x11111111;

struct Region {
  std::uint64_t address;
  std::uint32_t lkey;
  std::uint32_t rkey;
};

// Objects that the agents of one doorbell page share.
struct OpenDevice {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_xrcd* xrcd = nullptr;  // for flows with transport = "xrc"
  ibv_gid gid{};
  Mac mac{};
};

// Contexts of a host. A context is opened at its first use.
class Devices {
 public:
  // std::runtime_error: the device or one of its objects is not available.
  OpenDevice& of(const PlannedAgent& agent, const Flow& flow);
  void close();

 private:
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, OpenDevice> open_;
};

class Station {
 public:
  // Access flags of the memory regions; on-demand regions have IBV_ACCESS_ON_DEMAND besides.
  static constexpr int kAccess =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  Station(const PlannedAgent& plan, const Flow& flow) : plan_(plan), flow_(flow) {}

  // --- Called by a thread of the host; each throws std::runtime_error.
  // `memory`: for the agent's regions, plan.region rounded up to pages, times flow.mrs. If `lender` is another station,
  // its regions are used; make() of that station was called before.
  void make(OpenDevice& device, std::span<std::byte> memory, const Station& lender);
  void connect(const std::vector<std::unique_ptr<Station>>& all);
  void destroy();
  // Makes an RC queue pair, connects it to itself and destroys it.
  void connect_and_destroy();

  const PlannedAgent& plan() const { return plan_; }
  const Flow& flow() const { return flow_; }
  ibv_cq* cq() const { return cq_; }
  const std::vector<ibv_qp*>& qps() const { return qps_; }
  ibv_srq* srq() const { return srq_; }  // nullptr: each QP has its own receives
  const std::vector<Region>& regions() const { return regions_; }
  // For an agent that registers this memory repeatedly.
  std::span<std::byte> memory() const { return memory_; }
  ibv_pd* pd() const { return device_->pd; }
  const ibv_gid& gid() const { return device_->gid; }
  const Mac& mac() const { return device_->mac; }
  // True: the agent receives raw packets.
  bool has_frames() const { return flow_.transport == Transport::raw && !plan_.sends; }
  const FrameQueue& frames() const { return frames_; }
  // Address handle for the peer of a UD QP.
  ibv_ah* address_handle(std::size_t qp) const { return address_handles_[qp]; }

 private:
  bool posts() const { return posts_wrs(plan_, flow_); }
  ibv_qp* make_qp();
  ibv_srq* make_srq();
  void connect_qp(ibv_qp* qp, std::uint32_t peer, const ibv_gid& gid) const;
  void start_datagrams(ibv_qp* qp, const ibv_gid& peer);
  static void start_frames(ibv_qp* qp);
  void lead_frames(const std::vector<std::unique_ptr<Station>>& all);
  ibv_ah_attr path_to(const ibv_gid& gid) const;

  const PlannedAgent& plan_;
  const Flow& flow_;
  OpenDevice* device_ = nullptr;
  std::span<std::byte> memory_;
  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  std::vector<ibv_qp*> qps_;
  FrameQueue frames_;
  std::vector<ibv_ah*> address_handles_;
  std::vector<ibv_mr*> mrs_;
  std::vector<Region> regions_;
};

// Bytes of memory for the agent's own regions; 0 if another agent lends its regions.
std::uint64_t memory_of(const Plan& plan, std::uint32_t number, const Flow& flow);

}  // namespace rnicsim::sim::bench
