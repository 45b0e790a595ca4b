// A cable between two ports: a latency each way. The ports account for the bit rate.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "model/base/params.h"
#include "model/base/stream.h"
#include "model/fabric/fault_injector.h"
#include "model/fabric/link_params.h"

namespace rnicsim::fabric {

class Link : public sc_core::sc_module {
 public:
  static constexpr std::size_t kEnds = 2;

  // With the fault rules of the frames that each end sends. `shown`: the frames pass a fault injector's trace point,
  // even where there are no rules.
  Link(sc_core::sc_module_name name, const LinkParams& params, std::array<FaultRules, kEnds> rules = {},
       bool shown = false)
      : sc_module(name), params_(params) {
    for (std::size_t end = 0; end < kEnds; ++end) {
      if (rules[end].empty() && !shown) continue;
      faults_[end] = std::make_unique<FaultInjector>(("faults" + std::to_string(end)).c_str(), std::move(rules[end]));
      faults_[end]->out.bind([this, end](Frame&& frame) { carry(end, std::move(frame)); });
    }
  }

  // A frame given to one end as its last bit leaves comes out of the other at once, with the time until that bit
  // arrives: the receiver waits for it anyway. One that a fault rule holds back comes out when it is let go.
  void send(std::size_t end, Frame&& frame) {
    if (faults_[end]) return faults_[end]->send(std::move(frame));
    carry(end, std::move(frame));
  }
  Output<Frame, Duration>& out(std::size_t end) { return out_[end]; }
  // Of the frames that `end` sends; nullptr: there are no rules for them.
  FaultInjector* faults(std::size_t end) { return faults_[end].get(); }

 private:
  void carry(std::size_t end, Frame&& frame) { out_[kEnds - 1 - end](std::move(frame), params_.latency); }

  const LinkParams params_;
  std::array<std::unique_ptr<FaultInjector>, kEnds> faults_;
  std::array<Output<Frame, Duration>, kEnds> out_;
};

}  // namespace rnicsim::fabric
