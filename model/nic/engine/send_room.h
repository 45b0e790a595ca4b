// SPDX-License-Identifier: Apache-2.0
// Room before the port, by credit class (packet_streams.h): packets that may be on their way to the port (credits), and
// their payload bytes. Frames of a paused priority (IEEE 802.1Qbb) do not use the room of other priorities.
#pragma once

#include <array>
#include <cstdint>

#include "model/nic/packets/packet_streams.h"

namespace rnicsim::nic {

class SendRoom {
 public:
  explicit SendRoom(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  // Credit classes with room, a bit each.
  std::uint32_t open() const { return open_; }

  // Adds credits: initially, and for packets that have left.
  void grant(std::uint8_t credit_class, std::uint32_t packets) {
    of_[credit_class].credits += packets;
    settle(credit_class);
  }
  // Takes the room of one packet.
  void take(std::uint8_t credit_class, std::uint32_t bytes) {
    --of_[credit_class].credits;
    of_[credit_class].bytes += bytes;
    settle(credit_class);
  }
  void give_back_bytes(std::uint8_t credit_class, std::uint32_t bytes) {
    of_[credit_class].bytes -= bytes;
    settle(credit_class);
  }
  void reset() {
    of_ = {};
    open_ = 0;
  }

 private:
  struct Of {
    // Below 0: a NAK replaced a READ response, which needs no room.
    std::int64_t credits = 0;
    std::uint64_t bytes = 0;
  };

  void settle(std::uint8_t credit_class) {
    const auto bit = std::uint32_t{1} << credit_class;
    const auto& of = of_[credit_class];
    open_ = of.credits > 0 && of.bytes < most_bytes_ ? open_ | bit : open_ & ~bit;
  }

  const std::uint64_t most_bytes_;
  std::array<Of, kCreditClasses> of_{};
  std::uint32_t open_ = 0;
};

}  // namespace rnicsim::nic
