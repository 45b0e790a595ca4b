// SPDX-License-Identifier: Apache-2.0
// Identity of a file, the same for all descriptors of the file. A process with a descriptor may use the context or
// domain that the file stands for.
#pragma once

#include <compare>
#include <cstdint>

namespace rnicsim::host {

struct ContextFile {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const ContextFile&) const = default;
};

}  // namespace rnicsim::host
