// SPDX-License-Identifier: Apache-2.0
// Applies fault rules to one direction of a cable: frames pass, or are lost, damaged, duplicated or delayed. A held
// frame is released by an event, so frames always leave in the order of time.
#pragma once

#include <vector>

#include "model/base/event_queue.h"
#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/fabric/fault_counters.h"
#include "model/fabric/fault_rules.h"

namespace rnicsim::fabric {

struct FaultTrace {
  const Frame& frame;  // as sent, before the fault
  const Fault* fault;  // nullptr: no fault
};

class FaultInjector : public sc_core::sc_module {
 public:
  FaultInjector(sc_core::sc_module_name name, FaultRules rules);

  Output<Frame> out;
  trace::Point<FaultTrace> entered;

  void send(Frame&& frame);

  const FaultCounters& counters() const { return counters_; }

 private:
  enum class Waiting : std::uint8_t { delayed, copy, limit };
  // A frame to release at its time; without a frame: the time limit of a reordered frame.
  struct Due {
    Waiting what{};
    std::uint64_t sequence = 0;
    Frame frame;
  };
  struct Reordered {
    std::uint64_t sequence;
    std::uint32_t behind;  // number of frames that must still pass first
    Frame frame;
  };

  void strike(const Fault& fault, std::uint64_t sequence, Frame&& frame);
  void pass(std::uint64_t sequence, Frame&& frame);
  void let_go(std::vector<Reordered>::iterator held);
  void release_due();

  FaultRules rules_;
  std::uint64_t sequence_ = 0;
  std::vector<Reordered> reordered_;  // in the order of sending
  EventQueue<Due> due_{[this] { release_due(); }};
  FaultCounters counters_;
};

}  // namespace rnicsim::fabric
