// SPDX-License-Identifier: Apache-2.0
// Equal-cost multipath (RFC 2992): a hash of the frame's flow chooses the path, so a flow keeps its path and its order.
// With `hash = "qp"` the hash includes the destination queue pair: "enhanced ECMP" of Gangidi et al., "RDMA over
// Ethernet for Distributed AI Training at Meta Scale", SIGCOMM 2024.
#include <memory>
#include <string>

#include "model/base/policy_params.h"
#include "model/fabric/flow_hash.h"
#include "model/fabric/path_choice.h"

namespace rnicsim::fabric {
namespace {

struct EcmpParams {
  static constexpr const char* kHashWords[] = {"flow", "qp"};

  std::string hash{kHashWords[0]};

  void describe(ParamVisitor& visit) {
    visit.param(
        "hash", hash,
        "input of the hash: addresses, protocol and ports; or, for RoCE packets, also the destination queue pair",
        kHashWords);
  }
};

class Ecmp final : public PathChoice {
 public:
  Ecmp(const EcmpParams& params, std::uint64_t seed)
      : flow_(params.hash == EcmpParams::kHashWords[1] ? flow_and_queue_pair_of : flow_of), seed_(seed) {}

  std::uint32_t choose(const Frame& frame, const Ways& ways, const SwitchView&) override {
    return choose_way(flow_(frame), seed_, static_cast<std::uint32_t>(ways.ports.size()));
  }

 private:
  FlowKey (*const flow_)(const Frame& frame);
  const std::uint64_t seed_;
};

std::unique_ptr<PathChoice> make(const PolicyParams* params, const PathChoice::Random& random) {
  return std::make_unique<Ecmp>(params_as<EcmpParams>(*params), random.seed);
}
const PolicyEntry<PathChoice> kEntry{"ecmp", make, make_policy_params<EcmpParams>};

}  // namespace
}  // namespace rnicsim::fabric
