// SPDX-License-Identifier: Apache-2.0
// Instantiates the choice of a path policy (model/base/policy_choice.h).
#include "model/fabric/path_choice.h"

#include "model/base/policy_params.h"

namespace rnicsim {

template class PolicyChoice<fabric::PathChoice>;

}  // namespace rnicsim
