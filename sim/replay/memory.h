// SPDX-License-Identifier: Apache-2.0
// Memory of the replayed address, as far as the capture shows it. Bytes written by the engine take precedence. Other
// bytes are taken from the real NIC's answers, because local stores of its programs are not visible on the wire.
#pragma once

#include <array>
#include <bitset>
#include <boost/icl/interval_set.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "sim/replay/responder_environment.h"

namespace rnicsim::sim::replay {

class Memory {
 public:
  enum class Access : std::uint8_t { ok, bad_key, bad_range };

  explicit Memory(std::span<const RemoteRegion> regions);

  Access check(std::uint32_t rkey, std::uint64_t address, std::uint64_t length) const;
  // Bytes from a captured answer; does not replace bytes that were written.
  void learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  void write(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  // Returns the number of bytes that had been written.
  std::size_t read(std::uint32_t rkey, std::uint64_t address, std::span<std::byte> out) const;

 private:
  static constexpr std::uint64_t kPage = 4096;
  struct Page {
    std::array<std::byte, kPage> bytes{};
    std::bitset<kPage> written;
  };
  std::map<std::uint32_t, boost::icl::interval_set<std::uint64_t>> regions_;  // by rkey
  std::map<std::pair<std::uint32_t, std::uint64_t>, Page> pages_;             // by rkey and page number
};

}  // namespace rnicsim::sim::replay
