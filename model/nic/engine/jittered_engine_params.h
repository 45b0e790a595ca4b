// SPDX-License-Identifier: Apache-2.0
// Parameters of the jittered engine.
#pragma once

#include <cstdint>

#include "model/base/params.h"

namespace rnicsim::nic {

struct JitterParams {
  Duration delay{};
  std::uint64_t seed = 1;

  void describe(ParamVisitor& visit);
};

}  // namespace rnicsim::nic
