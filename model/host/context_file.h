// A file by what it is, whatever descriptor leads to it: who has one has the right to what stands behind it.
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
