// SPDX-License-Identifier: Apache-2.0
// Faults of a live wire: the first of each kind is a line on standard error, and the summary has their number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rnicsim::sim {

enum class WireTrouble : std::uint8_t {
  empty_frame,     // length 0
  too_long,        // the length is beyond the limit: the connection is closed
  runt,            // no Ethernet header
  cut_off,         // the connection ended within a frame
  gone,            // the connection ended
  second,          // a second connection, which was closed
  interface_lost,  // the TAP interface was removed
  other_station,   // a frame of another station than the host's
  not_taken,       // the peer takes frames too slowly
  nobody,          // a frame while no peer is connected, or the TAP interface is down
  unanswered,      // frames to a peer whose MAC address is unknown
  count
};

class WireNotices {
 public:
  using Say = std::function<void(const std::string& line)>;
  // `say`: gets the lines; nullptr: they go to standard error.
  WireNotices(std::string host, Say say);
  void tell(WireTrouble kind, const std::string& text);
  // A line with the number for each kind that happened.
  std::vector<std::string> report() const;
  std::uint64_t count(WireTrouble kind) const { return counts_[static_cast<std::size_t>(kind)]; }
  const std::string& host() const { return host_; }

 private:
  const std::string host_;
  const Say say_;
  std::array<std::uint64_t, static_cast<std::size_t>(WireTrouble::count)> counts_{};
};

}  // namespace rnicsim::sim
