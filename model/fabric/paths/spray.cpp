// SPDX-License-Identifier: Apache-2.0
// Packet spraying (Dixit et al., "On the Impact of Packet Spraying in Data Center Networks", INFOCOM 2013): the path of
// each frame is independent of its flow. Frames of one flow may overtake each other.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/policy_params.h"
#include "model/fabric/path_choice.h"

namespace rnicsim::fabric {
namespace {

struct SprayParams {
  static constexpr const char* kOrderWords[] = {"random", "round_robin"};

  std::string order{kOrderWords[0]};

  void describe(ParamVisitor& visit) {
    visit.param("order", order,
                "each frame takes a random path, or the next path in turn of the paths to its destination",
                kOrderWords);
  }
};

class RandomSpray final : public PathChoice {
 public:
  explicit RandomSpray(const SmallGenerator& generator) : generator_(generator) {}

  std::uint32_t choose(const Frame&, const Ways& ways, const SwitchView&) override {
    return static_cast<std::uint32_t>(generator_.draw_below(ways.ports.size()));
  }

 private:
  SmallGenerator generator_;
};

// Destinations with the same paths share one round-robin order. Each switch starts with a random path: otherwise all
// switches would send their first frames to the same next switch.
class RoundRobin final : public PathChoice {
 public:
  explicit RoundRobin(const SmallGenerator& generator) : generator_(generator) {}

  std::uint32_t choose(const Frame&, const Ways& ways, const SwitchView&) override {
    const auto count = static_cast<std::uint32_t>(ways.ports.size());
    if (ways.set >= next_.size()) next_.resize(ways.set + 1);
    auto& next = next_[ways.set];
    if (!next) next = static_cast<std::uint32_t>(generator_.draw_below(count));
    const auto way = *next;
    next = way + 1 == count ? 0 : way + 1;
    return way;
  }

 private:
  SmallGenerator generator_;
  std::vector<std::optional<std::uint32_t>> next_;  // by set; nullopt: no frame yet
};

std::unique_ptr<PathChoice> make(const PolicyParams* params, const PathChoice::Random& random) {
  if (params_as<SprayParams>(*params).order == SprayParams::kOrderWords[1])
    return std::make_unique<RoundRobin>(random.generator);
  return std::make_unique<RandomSpray>(random.generator);
}
const PolicyEntry<PathChoice> kEntry{"spray", make, make_policy_params<SprayParams>};

}  // namespace
}  // namespace rnicsim::fabric
