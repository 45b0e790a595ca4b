// SPDX-License-Identifier: Apache-2.0
// Conversion between struct ibv_qp_attr and a QP context.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "model/abi/context.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

// Makes the checks that the device cannot make. Returns 0 or an errno. The device checks state transitions and values.
int check_attributes(Context& context, const Qp& qp, const ibv_qp_attr& attributes, int mask);

abi::Qpc encode_attributes(Context& context, const ibv_qp_attr& attributes, int mask);
// Sets all attributes but `cap`.
void decode_attributes(const abi::Qpc& context, ibv_qp_attr& attributes);

}  // namespace rnicsim::verbs
