// What lay in memory before the capture's requests: the bytes that an answer tells before a request writes there.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/replay/environment.h"
#include "sim/wire_workload/workload.h"

namespace rnicsim::sim::wire_workload {

class InitialMemory {
 public:
  // In the order of the capture.
  void learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  void write(std::uint32_t rkey, std::uint64_t address, std::uint64_t length);

  // By key and address; bytes that no answer tells are zeros.
  std::vector<KnownBytes> contents() const;

 private:
  static constexpr std::uint64_t kPage = 4096;
  struct Page {
    std::array<std::byte, kPage> bytes{};
    std::bitset<kPage> settled;  // known, or written before an answer told it
    bool is_known = false;       // in part
  };
  template <class Take>
  void each_page(std::uint32_t rkey, std::uint64_t address, std::uint64_t length, Take&& take);

  std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;  // by key and number
};

// Of the host at the environment's address.
std::vector<KnownBytes> contents_of(const replay::Environment& environment);
// Of one host, by key: what requests name, rounded to pages; parts that are near one another are one region.
std::vector<Region> joined_regions(std::vector<Region> named);

}  // namespace rnicsim::sim::wire_workload
