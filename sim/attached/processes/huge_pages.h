// SPDX-License-Identifier: Apache-2.0
// Huge pages of a simulated host (host.huge_pages), which programs map by MAP_HUGETLB and SHM_HUGETLB. Ordinary memory
// of the machine backs them; the device sees pages of 2 MiB. A file of the machine's own hugetlbfs keeps its page
// size. Transparent huge pages are ignored: the machine makes and splits them at any time, so a run could not be
// repeated.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

struct HugeMapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ByteCount page;
};

class HugePages {
 public:
  explicit HugePages(std::uint32_t count) : count_(count) {}

  std::uint32_t count() const { return count_; }
  // Pages that no process of the list has mapped and that no System V segment takes.
  std::uint64_t free(std::span<const pid_t> processes) const;
  // Adds a System V segment of the machine; it counts until it is removed.
  void add_segment(int number) { segments_.insert(number); }
  // Mappings of huge pages that overlap [begin, begin + bytes), in the order of their addresses.
  std::vector<HugeMapping> mappings(pid_t process, std::uint64_t begin, std::uint64_t bytes) const;

 private:
  std::uint32_t count_;
  std::set<int> segments_;
};

}  // namespace rnicsim::sim
