// In-band telemetry (INT) as HPCC has it (Li et al., SIGCOMM 2019, figure 7): a block of 42 bytes behind a packet. Each
// switch on the way adds a record of the port by which the packet leaves. The receiver gives the block back with an
// acknowledgement, to which nobody adds. On the line:
//
//   bytes  0 -  1   1 bit: the block goes back; 3 bits: number of records; 12 bits: the path
//   bytes  2 - 41   five records of 8 bytes, zeros where there is none
//
// Times and counts of a record are short and wrap around: a reader compares two blocks (TelemetryReader).
//
// Another block, of 8 bytes, asks for the delay inside the receiver (Swift, SIGCOMM 2020). The acknowledgement brings
// the delay back. On the line:
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

// A port of a switch, as a packet's first bit leaves there.
struct PortState {
  BitRate rate;
  Duration at;
  std::uint64_t sent = 0;                  // bytes on the line that left so far, without this packet
  std::uint64_t queue = 0;                 // bytes that wait
  std::uint32_t id = 0;                    // of this port alone
};

// The same in 8 bytes, with the widths of the paper and the units of the authors' simulator: from the top bit on 4 bits
// of rate, 24 of time, 20 of sent bytes, 16 of queue. What does not fit is cut off; a queue says the most that fits.
class HopRecord {
 public:
  static constexpr unsigned kTimeBits = 24, kSentBits = 20, kQueueBits = 16;
  static constexpr Duration kTimeUnit{1000};
  static constexpr std::uint64_t kSentUnit = 128, kQueueUnit = 80;  // bytes

  HopRecord() = default;
  explicit HopRecord(std::uint64_t bits) : bits_(bits) {}
  explicit HopRecord(const PortState& port);

  std::uint64_t bits() const { return bits_; }
  // A usual rate of Ethernet: the port's, or the next lower one; 0: the port is slower than all of these.
  BitRate rate() const;
  std::uint32_t time() const { return field(kSentBits + kQueueBits, kTimeBits); }  // in units, as all below
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
  // Asks for the delay inside the receiver.
  static Telemetry delay_request();

  // nullopt: the bytes are no block.
  static std::optional<Telemetry> of(std::span<const std::byte> bytes);
  std::size_t size() const { return is_of_ports_ ? kBytes : kDelayBytes; }
  void put(std::span<std::byte> out) const;  // size() bytes

  std::span<const HopRecord> hops() const { return std::span(hops_).first(count_); }
  std::uint16_t path() const { return path_; }  // made of all ports whose records these are
  bool goes_back() const { return goes_back_; }
  void give_back() { goes_back_ = true; }
  bool takes_hops() const { return is_of_ports_ && !goes_back_ && count_ != kHops; }
  void add(const PortState& port);         // if takes_hops()
  bool asks_for_delay() const { return !is_of_ports_ && !goes_back_; }
  void give_back(Duration delay);          // of a block that asks for the delay
  // nullopt: the block brings none.
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

// The block at the end of a frame's bytes: 42 or 8 bytes behind a packet to RoCE's UDP port, whose IP header says where
// the packet ends. So who does not know of the block reads the packet and sees an Ethernet trailer.
std::optional<Telemetry> telemetry_behind(std::span<const std::byte> frame);

// A port on the way, between two packets of one path.
struct HopChange {
  BitRate rate;                            // of the port; 0: not known, and `sent` says nothing
  Duration over{};                         // from the one packet's leaving the port to the other's
  std::uint64_t sent = 0;                  // bytes on the line that left the port in this time
  std::uint64_t queue = 0;                 // bytes that waited there as the second packet left
  std::uint64_t queue_before = 0;          // and the first
};

// Compares each block with the one before.
class TelemetryReader {
 public:
  // In the order of the way, valid until the next call. Empty: the block is the first, or of another path, or came so
  // late that times may have wrapped around, or is older than the last one.
  std::span<const HopChange> read(const Telemetry& block, Duration now);

 private:
  std::optional<Telemetry> last_;
  Duration came_{};
  std::array<HopChange, Telemetry::kHops> changes_{};
};

}  // namespace rnicsim
