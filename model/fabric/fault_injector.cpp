// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/fault_injector.h"

#include <algorithm>

namespace rnicsim::fabric {

FaultInjector::FaultInjector(sc_core::sc_module_name name, FaultRules rules)
    : sc_module(name), rules_(std::move(rules)) {}

void FaultInjector::send(Frame&& frame) {
  const auto sequence = sequence_++;
  const auto fault = rules_.decide(frame);
  entered({frame, fault ? &*fault : nullptr});
  if (fault) return strike(*fault, sequence, std::move(frame));
  pass(sequence, std::move(frame));
}

void FaultInjector::strike(const Fault& fault, std::uint64_t sequence, Frame&& frame) {
  switch (fault.action) {
    case FaultAction::drop: ++counters_.dropped; return;
    case FaultAction::corrupt:
      ++counters_.corrupted;
      flip_bit(frame, fault.bit);
      return pass(sequence, std::move(frame));
    case FaultAction::duplicate: {
      ++counters_.duplicated;
      Frame copy = frame;
      pass(sequence, std::move(frame));
      if (fault.delay == Duration{}) return out(std::move(copy));
      return due_.push(now() + fault.delay, {Waiting::copy, sequence, std::move(copy)});
    }
    case FaultAction::delay:
      ++counters_.delayed;
      return due_.push(now() + fault.delay, {Waiting::delayed, sequence, std::move(frame)});
    case FaultAction::reorder:
      ++counters_.reordered;
      reordered_.push_back({sequence, fault.behind, std::move(frame)});
      return due_.push(now() + fault.limit, {Waiting::limit, sequence, {}});
  }
}

void FaultInjector::pass(std::uint64_t sequence, Frame&& frame) {
  out(std::move(frame));
  for (auto& held : reordered_)
    if (held.sequence < sequence) --held.behind;
  // A released frame counts as a later frame for the frames held before it.
  const auto ready = [](const Reordered& held) { return held.behind == 0; };
  for (auto held = std::ranges::find_if(reordered_, ready); held != reordered_.end();
       held = std::ranges::find_if(reordered_, ready))
    let_go(held);
}

void FaultInjector::let_go(std::vector<Reordered>::iterator held) {
  Reordered late = std::move(*held);
  reordered_.erase(held);
  pass(late.sequence, std::move(late.frame));
}

void FaultInjector::release_due() {
  Due due;
  while (due_.pop_due(due)) {
    const auto held = std::ranges::find(reordered_, due.sequence, &Reordered::sequence);
    switch (due.what) {
      case Waiting::delayed: pass(due.sequence, std::move(due.frame)); break;
      case Waiting::copy: out(std::move(due.frame)); break;
      case Waiting::limit:
        if (held != reordered_.end()) let_go(held);
    }
  }
}

}  // namespace rnicsim::fabric
