// SPDX-License-Identifier: Apache-2.0
// Journey of one work request through the system, in consecutive stages whose times add up exactly to the latency.
// docs/waterfall.md defines the stages.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "model/base/units.h"
#include "model/nic/personality/values.h"

namespace rnicsim::sim {

enum class Stage : std::uint8_t {
  turnaround,
  post,
  doorbell,
  context,
  fetch,
  unit,
  retry,
  packets,
  translation,
  dma,
  tx,
  wire,
  rx,
  placement,
  answer_tx,
  answer_wire,
  answer_rx,
  scatter,
  cqe,
  poll
};
inline constexpr std::size_t kStages = 20;

const char* to_string(Stage stage);
const char* to_string(nic::SendOpcode opcode);  // such as "WRITE", "FETCH_ADD"

struct Journey {
  std::uint64_t number = 0;  // number among all WQEs that devices took, from 0
  std::uint32_t host = 0;    // host that posted the work request
  std::uint32_t peer = 0;    // host at the other end; valid if one_way, or answered
  std::uint32_t qpn = 0;
  std::uint16_t index = 0;  // index of the WQE
  nic::SendOpcode opcode{};
  std::uint64_t bytes = 0;
  bool one_way = false;  // ends when the payload is seen, not at the completion
  Duration start;
  std::array<Duration, kStages> end{};  // end time of each stage

  Duration latency() const { return end.back() - start; }
  Duration begin_of(Stage stage) const { return stage == Stage{} ? start : end[std::size_t(stage) - 1]; }
  Duration end_of(Stage stage) const { return end[std::size_t(stage)]; }
  Duration time_in(Stage stage) const { return end_of(stage) - begin_of(stage); }
};

// Known end times of stages.
class Milestones {
 public:
  void set(Stage stage, Duration at) {
    known_.set(std::size_t(stage));
    at_[std::size_t(stage)] = at;
  }
  bool has(Stage stage) const { return known_[std::size_t(stage)]; }
  Duration operator[](Stage stage) const { return at_[std::size_t(stage)]; }
  void merge(const Milestones& other) {
    for (std::size_t i = 0; i < kStages; ++i)
      if (other.known_[i]) set(Stage(i), other.at_[i]);
  }
  // Fills the end times; a stage without its own end took no time. False: a stage ended before it began; its time is
  // set to 0.
  bool fill(Journey& journey) const {
    bool in_order = true;
    Duration last = journey.start;
    for (std::size_t i = 0; i < kStages; ++i) {
      if (known_[i] && at_[i] < last) in_order = false;
      if (known_[i] && at_[i] > last) last = at_[i];
      journey.end[i] = last;
    }
    return in_order;
  }

 private:
  std::array<Duration, kStages> at_{};
  std::bitset<kStages> known_;
};

}  // namespace rnicsim::sim
