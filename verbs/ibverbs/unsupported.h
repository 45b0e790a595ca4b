#pragma once

#include <infiniband/verbs.h>

namespace rnicsim::verbs {

// Operations for which the header would answer otherwise.
void fill_unsupported(verbs_context& operations);

}  // namespace rnicsim::verbs
