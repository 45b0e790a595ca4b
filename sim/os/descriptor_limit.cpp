// SPDX-License-Identifier: Apache-2.0
#include "sim/os/descriptor_limit.h"

namespace rnicsim::sim {

rlimit raise_descriptor_limit() {
  rlimit limit{1024, 1024};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return limit;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return limit;
}

}  // namespace rnicsim::sim
