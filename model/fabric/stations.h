// SPDX-License-Identifier: Apache-2.0
// Location of each MAC address in a fabric: one table for all switches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace rnicsim::fabric {

inline constexpr std::size_t kMacBytes = 6;

template <class Byte>
std::uint64_t mac_number(std::span<Byte, kMacBytes> mac) {
  std::uint64_t number = 0;
  for (const auto byte : mac) number = number << 8 | static_cast<std::uint8_t>(byte);
  return number;
}

class Stations {
 public:
  struct Place {
    std::uint32_t box;   // number of the switch at which the address's cable ends
    std::uint32_t port;  // port of that switch
  };

  void add(const std::uint8_t (&mac)[kMacBytes], Place place) {
    places_[mac_number(std::span<const std::uint8_t, kMacBytes>(mac))] = place;
  }
  // nullptr: unknown address.
  const Place* find(std::uint64_t mac) const {
    const auto found = places_.find(mac);
    return found != places_.end() ? &found->second : nullptr;
  }

 private:
  std::unordered_map<std::uint64_t, Place> places_;
};

}  // namespace rnicsim::fabric
