#pragma once

#include <infiniband/verbs.h>

namespace rnicsim::verbs {

// The operations that inlines call without a look at NULL.
void fill_unsupported(ibv_context_ops& operations);
void fill_unsupported(verbs_context& operations);

}  // namespace rnicsim::verbs
