// SPDX-License-Identifier: Apache-2.0
// Each frame takes the least loaded of some random paths, by the queues of this switch alone: DRILL (Ghorbani et al.,
// "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017). DRILL(2, 1) is choices = 2 with
// memory. Frames of one flow may overtake each other.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/policy_params.h"
#include "model/fabric/path_choice.h"
#include "model/fabric/paths/less_loaded.h"

namespace rnicsim::fabric {
namespace {

struct AdaptiveParams {
  static constexpr const char* kLoadWords[] = {"priority", "port"};

  std::uint32_t choices = 2;
  bool memory = false;
  std::string load{kLoadWords[0]};

  LessLoaded::Load counted() const {
    return load == kLoadWords[0] ? LessLoaded::Load::priority : LessLoaded::Load::port;
  }
  void describe(ParamVisitor& visit) {
    visit.param("choices", choices, "number of paths drawn at random; the frame takes the least loaded of these paths",
                {1, 65535});
    visit.param("memory", memory, "also consider the path of the previous frame to a destination with the same paths");
    visit.param("load", load, "load of a path: bytes waiting at the port, of the frame's priority or of all priorities",
                kLoadWords);
  }
};

class Adaptive final : public PathChoice {
 public:
  Adaptive(const AdaptiveParams& params, const SmallGenerator& generator)
      : memory_(params.memory), less_loaded_(params.choices, params.counted(), generator) {}

  std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView& view) override {
    if (!memory_) return less_loaded_.choose(frame, ways, view);
    if (ways.set >= last_.size()) last_.resize(ways.set + 1);
    auto& last = last_[ways.set];
    last = less_loaded_.choose(frame, ways, view, last);
    return *last;
  }

 private:
  const bool memory_;
  LessLoaded less_loaded_;
  std::vector<std::optional<std::uint32_t>> last_;  // by set; nullopt: no frame yet
};

std::unique_ptr<PathChoice> make(const PolicyParams* params, const PathChoice::Random& random) {
  return std::make_unique<Adaptive>(params_as<AdaptiveParams>(*params), random.generator);
}
const PolicyEntry<PathChoice> kEntry{"adaptive", make, make_policy_params<AdaptiveParams>};

}  // namespace
}  // namespace rnicsim::fabric
