// SPDX-License-Identifier: Apache-2.0
// The choice of a queue discipline (model/base/policy_choice.h).
#include "model/base/policy_params.h"
#include "model/base/ports/queue_discipline.h"

namespace rnicsim {

template class PolicyChoice<QueueDiscipline>;

}  // namespace rnicsim
