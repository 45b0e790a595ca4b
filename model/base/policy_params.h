// SPDX-License-Identifier: Apache-2.0
// Parameters of one policy, for the policy's source:
//
//   struct FifoParams { ByteCount depth = 1_KiB; void describe(ParamVisitor& visit); };
//   const PolicyEntry<Queue> kEntry{"fifo", make_fifo, make_policy_params<FifoParams>};
//
// make_fifo receives them as a PolicyParams, and reads them by params_as<FifoParams>().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "model/base/params.h"
#include "model/base/policy.h"
#include "model/base/policy_choice.h"

namespace rnicsim {

class PolicyParams {
 public:
  virtual ~PolicyParams() = default;
  virtual std::unique_ptr<PolicyParams> clone() const = 0;
  virtual void describe(ParamVisitor& visit) = 0;
};

// `Params` is a plain struct with defaults and describe().
template <class Params>
class PolicyParamsOf final : public PolicyParams {
 public:
  std::unique_ptr<PolicyParams> clone() const override { return std::make_unique<PolicyParamsOf>(*this); }
  void describe(ParamVisitor& visit) override { params.describe(visit); }

  Params params;
};
template <class Params>
std::unique_ptr<PolicyParams> make_policy_params() {
  return std::make_unique<PolicyParamsOf<Params>>();
}
// `params` must come from make_policy_params<Params>.
template <class Params>
const Params& params_as(const PolicyParams& params) {
  return static_cast<const PolicyParamsOf<Params>&>(params).params;
}
template <class Params>
Params& params_as(PolicyParams& params) {
  return static_cast<PolicyParamsOf<Params>&>(params).params;
}

// --- PolicyChoice, for the source that instantiates it.
template <class Policy>
PolicyChoice<Policy>::PolicyChoice(std::string policy) : name(std::move(policy)) {
  for (const auto* each : policy_names<Policy>())
    if (const auto make_params = find_policy<Policy>(each)->make_params(); make_params != nullptr)
      own_.push_back({each, OwnedPolicyParams(make_params().release())});
}

template <class Policy>
void PolicyChoice<Policy>::describe(ParamVisitor& visit, const char* key, const char* meaning) {
  visit.param(key, name, meaning, policy_names<Policy>());
  for (auto& own : own_) visit.group(own.policy, *own.params);
}

template <class Policy>
const PolicyParams* PolicyChoice<Policy>::params(std::string_view policy) const {
  for (const auto& own : own_)
    if (own.policy == policy) return &*own.params;
  return nullptr;
}
template <class Policy>
PolicyParams* PolicyChoice<Policy>::params(std::string_view policy) {
  return const_cast<PolicyParams*>(std::as_const(*this).params(policy));
}

}  // namespace rnicsim
