// SPDX-License-Identifier: Apache-2.0
// Memory that the host has mapped for the device, and unmapped ranges with their times, as the platform reports them.
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

  // Each byte counts its mappings.
  void map(Pasid pasid, std::uint64_t address, std::uint64_t bytes);
  void unmap(Pasid pasid, std::uint64_t address, std::uint64_t bytes, Duration at);

  // False: the platform has reported no mapping.
  bool known() const { return !live_.empty(); }
  bool is_mapped(Pasid pasid, std::uint64_t address) const;
  // Time at which a byte of the range that is not mapped now was last unmapped; nullopt: never.
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
