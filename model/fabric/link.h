// SPDX-License-Identifier: Apache-2.0
// A cable between two ports, with a latency in each direction. The ports account for the bit rate.
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

  // `rules`: fault rules for the frames that each end sends. `shown`: use a fault injector even without rules, because
  // frames pass its trace point.
  Link(sc_core::sc_module_name name, const LinkParams& params, std::array<FaultRules, kEnds> rules = {},
       bool shown = false)
      : sc_module(name), params_(params) {
    for (std::size_t end = 0; end < kEnds; ++end) {
      if (rules[end].empty() && !shown) continue;
      faults_[end] = std::make_unique<FaultInjector>(("faults" + std::to_string(end)).c_str(), std::move(rules[end]));
      faults_[end]->out.bind([this, end](Frame&& frame) { carry(end, std::move(frame)); });
    }
  }

  // Give a frame to one end when its last bit leaves. The frame comes out of the other end at once, with the time until
  // its last bit arrives, since the receiver schedules that time anyway. A frame held by a fault rule comes out when it
  // is released.
  void send(std::size_t end, Frame&& frame) {
    if (faults_[end]) return faults_[end]->send(std::move(frame));
    carry(end, std::move(frame));
  }
  Output<Frame, Duration>& out(std::size_t end) { return out_[end]; }
  // Faults of frames sent by `end`; nullptr: no rules.
  FaultInjector* faults(std::size_t end) { return faults_[end].get(); }

 private:
  void carry(std::size_t end, Frame&& frame) { out_[kEnds - 1 - end](std::move(frame), params_.latency); }

  const LinkParams params_;
  std::array<std::unique_ptr<FaultInjector>, kEnds> faults_;
  std::array<Output<Frame, Duration>, kEnds> out_;
};

}  // namespace rnicsim::fabric
