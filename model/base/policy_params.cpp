// SPDX-License-Identifier: Apache-2.0
#include "model/base/policy_params.h"

namespace rnicsim {

OwnedPolicyParams::OwnedPolicyParams(const OwnedPolicyParams& other) : params_(other.params_->clone().release()) {}
OwnedPolicyParams::~OwnedPolicyParams() { delete params_; }

}  // namespace rnicsim
