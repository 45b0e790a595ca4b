// SPDX-License-Identifier: Apache-2.0
// Packets of one direction of a queue pair that were sent and are not acknowledged: bytes in flight and round-trip
// times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/base/fifo.h"
#include "model/base/units.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

class UnansweredPackets {
 public:
  struct Answered {
    std::uint64_t bytes = 0;
    Duration rtt{};  // since the newest of the packets left the port; 0: not known
  };

  std::size_t packets() const { return packets_.size(); }
  std::uint64_t bytes() const { return bytes_; }      // on the wire
  std::uint32_t asked() const { return asked_; }      // packets that request an acknowledgement
  std::uint32_t unasked() const { return unasked_; }  // packets since the last ACK request

  // `end`: one past the packet's PSNs.
  void sent(roce::Psn end, std::uint32_t bytes, bool asks) {
    packets_.push_back({.end = end, .bytes = bytes, .asks = asks});
    bytes_ += bytes;
    asked_ += asks;
    unasked_ = asks ? 0 : unasked_ + 1;
  }
  // The last bit of the packet left the port.
  void left(roce::Psn end, Duration now) {
    for (std::size_t i = 0; i < packets_.size(); ++i)
      if (packets_[i].left == Duration{}) {
        if (packets_[i].end == end) packets_[i].left = now;
        return;
      }
  }
  // Packets before `oldest` are acknowledged.
  Answered answered(roce::Psn oldest, Duration now) {
    Answered answered;
    for (; !packets_.empty() && !before(oldest, packets_.front().end); packets_.pop_front()) {
      const auto& packet = packets_.front();
      answered.bytes += packet.bytes;
      asked_ -= packet.asks;
      answered.rtt = packet.left == Duration{} ? Duration{} : now - packet.left;
    }
    bytes_ -= answered.bytes;
    return answered;
  }
  void clear() {
    packets_.clear();
    bytes_ = 0;
    asked_ = unasked_ = 0;
  }

 private:
  struct Packet {
    roce::Psn end;
    std::uint32_t bytes = 0;
    bool asks = false;
    Duration left{};  // 0: not left yet
  };

  Fifo<Packet> packets_;
  std::uint64_t bytes_ = 0;
  std::uint32_t asked_ = 0;
  std::uint32_t unasked_ = 0;
};

}  // namespace rnicsim::nic
