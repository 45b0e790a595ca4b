// SPDX-License-Identifier: Apache-2.0
// Enhanced transmission selection (IEEE 802.1Qaz). Priorities without a share go first, the highest before the others.
// Priorities with a share divide the rest of the bandwidth. Other priorities may use what one priority does not use.
// The shares are kept frame by frame: the queue whose frame would end first at its share sends (self-clocked fair
// queueing, Golestani).
#include <algorithm>
#include <bit>
#include <string>

#include "model/base/policy_params.h"
#include "model/base/ports/priority_values.h"
#include "model/base/ports/queue_discipline.h"

namespace rnicsim {
namespace {

constexpr std::uint32_t kPercent = 100;

bool is_whole(const PriorityValues& values) {
  std::uint32_t sum = 0;
  for (const auto value : values) sum += value.value_or(0);
  return sum == kPercent || sum == 0;
}

struct EtsParams {
  std::string bandwidth;

  void describe(ParamVisitor& visit) {
    visit.param(
        "bandwidth", bandwidth,
        "percent of the bandwidth of priorities, 100 in all, such as \"0:30 3:70\"; other priorities are served first");
    const auto values = parse_priority_values(bandwidth, kPercent);
    visit.refuse(!values, "bandwidth", "is not a list of priorities and percents, 1 to 100, such as \"0:30 3:70\"");
    visit.refuse(values && !is_whole(*values), "bandwidth", "does not add up to 100 percent");
  }
};

class Ets final : public QueueDiscipline {
 public:
  explicit Ets(const EtsParams& params)
      : shares_(parse_priority_values(params.bandwidth, kPercent).value_or(PriorityValues{})) {
    for (std::size_t i = 0; i < kPriorities; ++i)
      if (!shares_[i]) strict_ |= 1u << i;
  }

  std::uint8_t choose(const Ready& ready) override {
    const auto first = ready.queues & strict_;
    is_strict_ = first != 0;
    if (is_strict_) return chosen_ = static_cast<std::uint8_t>(std::bit_width(first) - 1);
    ready_ = ready.queues;
    chosen_ = kPriorities;
    for (auto rest = ready.queues; rest != 0; rest &= rest - 1) {
      const auto queue = static_cast<std::uint8_t>(std::countr_zero(rest));
      const auto end = begin_of(queue) + static_cast<double>(ready.bytes[queue]) / *shares_[queue];
      // If two frames end together, the frame of the higher priority goes first.
      if (chosen_ != kPriorities && end > end_) continue;
      chosen_ = queue;
      end_ = end;
    }
    return chosen_;
  }
  void left(bool empty) override {
    if (is_strict_) return;
    for (auto rest = ready_; rest != 0; rest &= rest - 1) {
      const auto queue = static_cast<std::size_t>(std::countr_zero(rest));
      begins_[queue] = begin_of(queue);
    }
    begins_[chosen_] = now_ = end_;
    waiting_ = empty ? ready_ & ~(1u << chosen_) : ready_;
  }
  void emptied(std::uint8_t queue) override { waiting_ &= ~(1u << queue); }
  void reset() override {
    now_ = 0;
    begins_ = {};
    waiting_ = 0;
  }

 private:
  // Start time of the queue's first frame. A queue that could not send gets no credit for that time.
  double begin_of(std::size_t queue) const {
    return (waiting_ >> queue & 1) != 0 ? begins_[queue] : std::max(now_, begins_[queue]);
  }

  const PriorityValues shares_;
  std::uint32_t strict_ = 0;
  double now_ = 0;                            // virtual time: bytes a percent
  std::array<double, kPriorities> begins_{};  // start of the first frame; for an empty queue, end of its last one
  std::uint32_t waiting_ = 0;                 // queues that were ready when the last frame began, a bit each
  // --- State of the last answer.
  std::uint32_t ready_ = 0;
  std::uint8_t chosen_ = 0;
  double end_ = 0;
  bool is_strict_ = false;
};

std::unique_ptr<QueueDiscipline> make(const PolicyParams* params) {
  return std::make_unique<Ets>(params_as<EtsParams>(*params));
}
const PolicyEntry<QueueDiscipline> kEntry{"ets", make, make_policy_params<EtsParams>};

}  // namespace
}  // namespace rnicsim
