// SPDX-License-Identifier: Apache-2.0
// Contents of memory before the capture's requests: the bytes that an answer shows before a request writes there.
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
  // Must be called in the order of the capture.
  void learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  void write(std::uint32_t rkey, std::uint64_t address, std::uint64_t length);

  // By key and address; bytes that no answer shows are zeros.
  std::vector<KnownBytes> contents() const;

 private:
  static constexpr std::uint64_t kPage = 4096;
  struct Page {
    std::array<std::byte, kPage> bytes{};
    std::bitset<kPage> settled;  // known, or written before an answer showed the byte
    bool is_known = false;       // at least one byte is known
  };
  template <class Take>
  void each_page(std::uint32_t rkey, std::uint64_t address, std::uint64_t length, Take&& take);

  std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;  // by key and page number
};

// Contents for the host at the environment's address.
std::vector<KnownBytes> contents_of(const replay::Environment& environment);
// Regions of one host, by key, from the memory that requests name: rounded to pages, and neighbouring parts joined.
std::vector<Region> joined_regions(std::vector<Region> named);

}  // namespace rnicsim::sim::wire_workload
