// SPDX-License-Identifier: Apache-2.0
// Deficit weighted round robin (Shreedhar and Varghese, "Efficient fair queueing using deficit round robin"). In each
// round a queue may send its weight times a quantum of bytes; the rest is kept for the next round while frames wait in
// the queue. Priorities of `strict` go before all others.
#include <bit>
#include <string>

#include "model/base/policy_params.h"
#include "model/base/ports/priority_values.h"
#include "model/base/ports/queue_discipline.h"

namespace rnicsim {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kMostWeight = 100;

struct DwrrParams {
  std::string weights;
  std::uint32_t strict = 0;
  ByteCount quantum = 2_KiB;

  void describe(ParamVisitor& visit) {
    visit.param("weights", weights,
                "the weights of priorities, 1 to 100, such as \"3:15 4:5\"; other priorities have the weight 1");
    visit.param("strict", strict, "priorities that go before all others, a bit each, the highest first", {0, 255});
    visit.param("quantum", quantum, "bytes of a round for a weight of 1", {64, 1e6});
    visit.refuse(!parse_priority_values(weights, kMostWeight), "weights",
                 "is not a list of priorities and weights such as \"3:15 4:5\"");
  }
};

class Dwrr final : public QueueDiscipline {
 public:
  explicit Dwrr(const DwrrParams& params) : strict_(params.strict) {
    const auto weights = parse_priority_values(params.weights, kMostWeight).value_or(PriorityValues{});
    for (std::size_t i = 0; i < kPriorities; ++i) quanta_[i] = weights[i].value_or(1) * params.quantum.bytes;
  }

  std::uint8_t choose(const Ready& ready) override {
    next_ = state_;
    const auto first = ready.queues & strict_;
    is_strict_ = first != 0;
    if (is_strict_) return chosen_ = static_cast<std::uint8_t>(std::bit_width(first) - 1);
    // A queue that cannot send at its turn loses its deficit.
    if ((ready.queues >> next_.at & 1) == 0) {
      next_.deficit[next_.at] = 0;
      move_on(ready.queues);
    }
    while (next_.deficit[next_.at] < ready.bytes[next_.at]) move_on(ready.queues);
    next_.deficit[next_.at] -= ready.bytes[next_.at];
    return chosen_ = next_.at;
  }
  void left(bool empty) override {
    state_ = next_;
    if (empty && !is_strict_) state_.deficit[chosen_] = 0;
  }
  void emptied(std::uint8_t queue) override { state_.deficit[queue] = 0; }
  void reset() override { state_ = {}; }

 private:
  struct State {
    std::uint8_t at = kPriorities - 1;  // the queue whose turn it is; its quantum of this round is added
    std::array<std::uint64_t, kPriorities> deficit{};
  };

  // Moves the turn to the next lower ready queue (wrapping around), and adds its quantum.
  void move_on(std::uint32_t queues) {
    do next_.at = static_cast<std::uint8_t>((next_.at + kPriorities - 1) % kPriorities);
    while ((queues >> next_.at & 1) == 0);
    next_.deficit[next_.at] += quanta_[next_.at];
  }

  const std::uint32_t strict_;
  std::array<std::uint64_t, kPriorities> quanta_{};
  State state_, next_;
  std::uint8_t chosen_ = 0;
  bool is_strict_ = false;
};

std::unique_ptr<QueueDiscipline> make(const PolicyParams* params) {
  return std::make_unique<Dwrr>(params_as<DwrrParams>(*params));
}
const PolicyEntry<QueueDiscipline> kEntry{"dwrr", make, make_policy_params<DwrrParams>};

}  // namespace
}  // namespace rnicsim
