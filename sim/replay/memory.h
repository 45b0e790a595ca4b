// The memory of the address as far as the capture shows it. What the engine wrote counts; the rest is what the real
// NIC's answers said was there, for its programs write without the wire seeing it.
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
  // What an answer of the capture says; does not replace what was written.
  void learn(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  void write(std::uint32_t rkey, std::uint64_t address, std::span<const std::byte> bytes);
  // Returns how many of the bytes had been written.
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
