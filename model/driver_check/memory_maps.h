// Memory that the host has mapped for the device, and memory that it has unmapped, with the time; as the platform
// reports it.
#pragma once

#include <boost/icl/interval_map.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "model/base/pcie.h"
#include "model/base/units.h"

namespace rnicsim::driver_check {

class MemoryMaps {
 public:
  static constexpr std::size_t kMostGone = 4096;

  // Mappings are counted by byte and may overlap.
  void map(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void unmap(Pasid pasid, std::uint64_t address, std::uint64_t bytes, Duration at);

  // False: the platform has reported no mapping.
  bool known() const { return !live_.empty(); }
  bool is_mapped(Pasid pasid, std::uint64_t address) const;
  // Time at which the first unmapped byte of the range was unmapped; nullopt: it was never mapped.
  std::optional<Duration> unmapped_at(Pasid pasid, std::uint64_t address, std::uint64_t bytes) const;

 private:
  struct Gone {
    Pasid pasid;
    std::uint64_t address;
    std::uint64_t bytes;
    Duration at;
  };
  std::map<Pasid, boost::icl::interval_map<std::uint64_t, int>> live_;
  std::deque<Gone> gone_;
};

}  // namespace rnicsim::driver_check
