// Where a process's memory lies in huge pages of hugetlbfs: what MAP_HUGETLB, SHM_HUGETLB and files there give. The
// transparent ones come and go as the machine pleases, and are no part of a run.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

struct HugeMapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ByteCount page;
};

// Those that have some of [begin, begin + bytes), in the order of their addresses.
std::vector<HugeMapping> huge_mappings(pid_t pid, std::uint64_t begin, std::uint64_t bytes);

}  // namespace rnicsim::sim
