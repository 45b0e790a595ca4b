// SPDX-License-Identifier: Apache-2.0
// Numbers of timerfds and signalfds, which processes share. Numbers below the first belong to one process.
#pragma once

#include <cstdint>

namespace rnicsim::sim {

class SharedNumbers {
 public:
  std::uint32_t next() { return next_++; }

 private:
  std::uint32_t next_ = 1u << 30;
};

}  // namespace rnicsim::sim
