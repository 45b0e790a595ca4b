// SPDX-License-Identifier: Apache-2.0
// In-band telemetry (INT) as in HPCC (Li et al., SIGCOMM 2019, figure 7): a block of 42 bytes behind a packet. Each
// switch on the path adds a record of the port by which the packet leaves. The receiver returns the block with an
// acknowledgement; switches add no records to a returned block. On the line:
//
//   bytes  0 -  1   1 bit: the block goes back; 3 bits: number of records; 12 bits: the path
//   bytes  2 - 41   five records of 8 bytes, zeros where there is none
//
// Times and counts of a record are short and wrap around: a reader compares two blocks (TelemetryReader).
//
// A second kind of block, of 8 bytes, asks for the delay inside the receiver (Swift, SIGCOMM 2020). The acknowledgement
// returns the delay. On the line:
//
//   bytes  0 -  1   0xd31a, which tells the block from other bytes behind a packet
//   bytes  2 -  3   1 bit: the block goes back; 15 bits: zeros
//   bytes  4 -  7   the delay in ns; zeros in a request. 0xffffffff: as long or longer
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/base/units.h"

namespace rnicsim {

// State of a switch's port at the time when the packet's first bit leaves.
struct PortState {
  BitRate rate;
  Duration at;
  std::uint64_t sent = 0;   // bytes sent on the line so far, without this packet
  std::uint64_t queue = 0;  // bytes waiting
  std::uint32_t id = 0;     // unique among all ports
};

// A PortState in 8 bytes, with the widths of the paper and the units of the authors' simulator. From the top bit on: 4
// bits of rate, 24 of time, 20 of sent bytes, 16 of queue. Time and sent bytes are truncated (they wrap around); the
// queue saturates.
class HopRecord {
 public:
  static constexpr unsigned kTimeBits = 24, kSentBits = 20, kQueueBits = 16;
  static constexpr Duration kTimeUnit{1000};
  static constexpr std::uint64_t kSentUnit = 128, kQueueUnit = 80;  // bytes

  HopRecord() = default;
  explicit HopRecord(std::uint64_t bits) : bits_(bits) {}
  explicit HopRecord(const PortState& port);

  std::uint64_t bits() const { return bits_; }
  // A standard Ethernet rate: the port's rate, or the next lower one. 0: the port is slower than all standard rates.
  BitRate rate() const;
  std::uint32_t time() const { return field(kSentBits + kQueueBits, kTimeBits); }  // in units, as the next two
  std::uint32_t sent() const { return field(kQueueBits, kSentBits); }
  std::uint32_t queue() const { return field(0, kQueueBits); }
  bool operator==(const HopRecord&) const = default;

 private:
  std::uint32_t field(unsigned at, unsigned bits) const {
    return static_cast<std::uint32_t>(bits_ >> at & ((std::uint64_t{1} << bits) - 1));
  }

  std::uint64_t bits_ = 0;
};

class Telemetry {
 public:
  static constexpr std::size_t kBytes = 42, kDelayBytes = 8;
  static constexpr std::size_t kHops = 5;

  Telemetry() = default;
  // A block that asks for the delay inside the receiver.
  static Telemetry delay_request();

  // nullopt: the bytes are not a telemetry block.
  static std::optional<Telemetry> of(std::span<const std::byte> bytes);
  std::size_t size() const { return is_of_ports_ ? kBytes : kDelayBytes; }
  void put(std::span<std::byte> out) const;  // size() bytes

  std::span<const HopRecord> hops() const { return std::span(hops_).first(count_); }
  std::uint16_t path() const { return path_; }  // XOR of hashes of all ports with a record
  bool goes_back() const { return goes_back_; }
  void give_back() { goes_back_ = true; }
  bool takes_hops() const { return is_of_ports_ && !goes_back_ && count_ != kHops; }
  void add(const PortState& port);  // adds a record if takes_hops()
  bool asks_for_delay() const { return !is_of_ports_ && !goes_back_; }
  void give_back(Duration delay);  // for a block with asks_for_delay()
  // nullopt: the block carries no delay.
  std::optional<Duration> delay() const;
  bool operator==(const Telemetry&) const = default;

 private:
  static std::optional<Telemetry> delay_block(std::span<const std::byte> bytes);

  std::array<HopRecord, kHops> hops_{};
  std::uint16_t path_ = 0;
  std::uint8_t count_ = 0;
  bool goes_back_ = false;
  bool is_of_ports_ = true;
  std::uint32_t delay_ns_ = 0;
};

// The block at the end of a frame's bytes: 42 or 8 bytes behind a packet to RoCE's UDP port. The IP header says where
// the packet ends, so a receiver without telemetry reads the packet and sees an Ethernet trailer.
std::optional<Telemetry> telemetry_behind(std::span<const std::byte> frame);

// Change of a port's state between two packets of one path.
struct HopChange {
  BitRate rate;                    // rate of the port; 0: not known, and `sent` is not valid
  Duration over{};                 // time between the two packets' last bits at the port
  std::uint64_t sent = 0;          // bytes that left the port on the line in this time
  std::uint64_t queue = 0;         // bytes that waited when the second packet left
  std::uint64_t queue_before = 0;  // bytes that waited when the first packet left
};

// Compares each block with the block before it.
class TelemetryReader {
 public:
  // Changes in the order of the path, valid until the next call. Empty: the block is the first one, has another path,
  // is older than the last block, or came so late that times may have wrapped around.
  std::span<const HopChange> read(const Telemetry& block, Duration now);

 private:
  std::optional<Telemetry> last_;
  Duration came_{};
  std::array<HopChange, Telemetry::kHops> changes_{};
};

}  // namespace rnicsim
