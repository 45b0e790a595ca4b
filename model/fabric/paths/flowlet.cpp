// SPDX-License-Identifier: Apache-2.0
// Flowlets (Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017): a
// flow keeps its path while its frames follow closely, and takes a random path after a gap. If the gap exceeds the
// difference of the paths' delays, no frame overtakes another.
//
// As in the paper, a hash table of fixed size tracks the flows; flows with the same entry count as one flow. The paper
// detects a gap by an ageing bit, which takes one to two times the gap; here each entry stores the time of its last
// frame.
#include <memory>
#include <unordered_map>

#include "model/base/policy_params.h"
#include "model/fabric/flow_hash.h"
#include "model/fabric/path_choice.h"
#include "model/fabric/paths/less_loaded.h"

namespace rnicsim::fabric {
namespace {

using namespace rnicsim::literals;

struct FlowletParams {
  Duration gap = 50_us;
  std::uint32_t entries = 65'536;
  std::uint32_t choices = 1;

  void describe(ParamVisitor& visit) {
    visit.param("gap", gap, "a flow keeps its path unless the gap between two of its frames is longer than this",
                {0, 1e12});
    visit.param("entries", entries, "entries of the table of flows, which a hash selects", {1, 16'777'216});
    visit.param("choices", choices,
                "number of paths drawn at random after a gap; the flow takes the path with the fewest waiting bytes of "
                "the frame's priority",
                {1, 65535});
  }
};

class Flowlet final : public PathChoice {
 public:
  Flowlet(const FlowletParams& params, const Random& random)
      : params_(params),
        seed_(random.seed),
        less_loaded_(params.choices, LessLoaded::Load::priority, random.generator) {}

  std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView& view) override {
    const auto now = view.time();
    const auto [found, is_new] = table_.try_emplace(choose_way(flow_of(frame), seed_, params_.entries));
    auto& entry = found->second;
    if (is_new || now - entry.last > params_.gap) {
      const auto way = less_loaded_.choose(frame, ways, view);
      changes_ += !is_new && way != way_of(entry, ways);
      entry.way = way;
    }
    entry.last = now;
    return way_of(entry, ways);
  }
  Counter changes() const override { return changes_; }

 private:
  struct Entry {
    std::uint32_t way = 0;
    Duration last{};
  };

  // Flows that share an entry may have different numbers of paths; each flow still keeps one path.
  static std::uint32_t way_of(const Entry& entry, const Ways& ways) {
    return entry.way % static_cast<std::uint32_t>(ways.ports.size());
  }

  const FlowletParams params_;
  const std::uint64_t seed_;
  LessLoaded less_loaded_;
  std::unordered_map<std::uint32_t, Entry> table_;  // only entries in use
  Counter changes_ = 0;
};

std::unique_ptr<PathChoice> make(const PolicyParams* params, const PathChoice::Random& random) {
  return std::make_unique<Flowlet>(params_as<FlowletParams>(*params), random);
}
const PolicyEntry<PathChoice> kEntry{"flowlet", make, make_policy_params<FlowletParams>};

}  // namespace
}  // namespace rnicsim::fabric
