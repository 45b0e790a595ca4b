// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/receive/steering.h"

#include <utility>
#include <vector>

#include "model/nic/packets/packet.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {
namespace {

bool is_foreign(const Frame& frame) {
  const auto front = frame.header_span();
  if (front.size() >= roce::kMaxFrameHeader || front.size() == frame.size()) return roce::is_foreign(front);
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  return roce::is_foreign(bytes);
}

}  // namespace

void Steering::receive(FrameIn&& frame, Duration delay) { pipeline_.push(now() + delay + latency_, std::move(frame)); }

void Steering::receive_own(Frame&& frame, Duration delay) { own_.push(now() + delay + latency_, {std::move(frame)}); }

void Steering::reset() {
  pipeline_.clear();
  own_.clear();
}

void Steering::steer_due(DelayLine<FrameIn>& pipeline) {
  FrameIn came;
  while (pipeline.pop_due(came)) {
    const auto& frame = came.frame;
    // A packet of this model need not be parsed.
    if (frame.as<Packet>() == nullptr && is_foreign(frame)) {
      ++counters_.not_roce;
      raw(std::move(came));
    } else {
      ++counters_.roce;
      if (flows_.sniffs()) sniffed(Frame(frame));
      roce(std::move(came));
    }
  }
}

}  // namespace rnicsim::nic
