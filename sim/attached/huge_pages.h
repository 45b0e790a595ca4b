// Huge pages of a simulated host (host.huge_pages): programs map them by MAP_HUGETLB and SHM_HUGETLB. Behind each lies
// ordinary memory of the machine, of which a device sees pages of 2 MiB. Files of the machine's own hugetlbfs have the
// size of page that they have there. Transparent huge pages come and go as the machine pleases: they are no part of a
// run.
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

// The huge pages of one host.
class HugePages {
 public:
  explicit HugePages(std::uint32_t count) : count_(count) {}

  std::uint32_t count() const { return count_; }
  // Pages that no process of the list has mapped and that no System V segment takes.
  std::uint64_t free(std::span<const pid_t> processes) const;
  // A System V segment of the machine that takes pages until it is removed.
  void add_segment(int number) { segments_.insert(number); }
  // Mappings of huge pages that overlap [begin, begin + bytes), in the order of their addresses.
  std::vector<HugeMapping> mappings(pid_t process, std::uint64_t begin, std::uint64_t bytes) const;

 private:
  std::uint32_t count_;
  std::set<int> segments_;
};

}  // namespace rnicsim::sim
