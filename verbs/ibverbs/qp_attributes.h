// struct ibv_qp_attr to and from a QP context.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "model/abi/context.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

// What the device can't see or can't refuse: 0 or errno. The device checks the state table and the values.
int check_attributes(Context& context, const Qp& qp, const ibv_qp_attr& attributes, int mask);

abi::Qpc encode_attributes(Context& context, const ibv_qp_attr& attributes, int mask);
// All but `cap`.
void decode_attributes(const abi::Qpc& context, ibv_qp_attr& attributes);

}  // namespace rnicsim::verbs
