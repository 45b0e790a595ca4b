// SPDX-License-Identifier: Apache-2.0
// The choice of one policy by name, with the parameters of every registered policy: each policy's parameters are a
// group with the policy's name.
//
//   nic.congestion.control = "dcqcn"          the name
//   nic.congestion.dcqcn.rpg_ai_rate = ...    a parameter of that policy
//
// The source of a policy includes policy_params.h. One source instantiates the choice of each kind of policy: template
// class PolicyChoice<Kind>; (this header is small, because parameters of the NIC include it).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/params.h"

namespace rnicsim {

class PolicyParams;

// Parameters of one policy; a copy clones them.
class OwnedPolicyParams {
 public:
  explicit OwnedPolicyParams(PolicyParams* owned) : params_(owned) {}
  OwnedPolicyParams(const OwnedPolicyParams& other);
  OwnedPolicyParams(OwnedPolicyParams&& other) noexcept : params_(std::exchange(other.params_, nullptr)) {}
  OwnedPolicyParams& operator=(OwnedPolicyParams other) noexcept {
    std::swap(params_, other.params_);
    return *this;
  }
  ~OwnedPolicyParams();

  PolicyParams& operator*() const { return *params_; }

 private:
  PolicyParams* params_;
};

template <class Policy>
class PolicyChoice {
 public:
  // `policy` is the name of a registered policy. Do not construct before main().
  explicit PolicyChoice(std::string policy);

  // Describes the parameter `key`, which selects the policy, and a group for each policy with parameters.
  void describe(ParamVisitor& visit, const char* key, const char* meaning);
  // nullptr: the policy has no parameters.
  const PolicyParams* params(std::string_view policy) const;
  PolicyParams* params(std::string_view policy);

  std::string name;

 private:
  struct Own {
    const char* policy;
    OwnedPolicyParams params;
  };
  std::vector<Own> own_;  // in the order of the policies' names
};

}  // namespace rnicsim
