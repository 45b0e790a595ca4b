// SPDX-License-Identifier: Apache-2.0
// A RoCE packet: one object from the turn that makes it until its receiver's memory, which is also its frame on the
// wire. Headers and addresses are decoded, payload is a reference. Bytes and ICRC are written on demand: for a capture,
// a rule that flips a bit, a port to another platform.
#pragma once

#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/frame.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {

// Treatment of the ICRC.
struct IcrcRule {
  bool headers_only = false;  // timing only: the ICRC does not cover the payload
  bool always = false;        // bytes and ICRC of each packet are written, parsed and checked
};

// Facts of a raw frame, whose bytes are the payload; its opcode is raw_frame.
struct RawFacts {
  bool fill_checksums = false;  // sending, as the members up to `last`: IP, and TCP or UDP
  Payload headers{};            // headers before the payload, which is a segment of a message
  std::uint32_t offset = 0;     // offset of the payload in the message
  std::uint32_t number = 0;     // segments before this one
  bool last = true;
  bool checksums_right = false;  // receiving, as the members below
  std::uint32_t rss_hash = 0;
  std::optional<std::uint32_t> flow_tag{};
  std::optional<std::uint16_t> vlan{};  // the tag that was removed
};

class Packet;
using PacketRef = boost::intrusive_ptr<Packet>;  // a packet that its maker may still change
using PacketHandle = boost::intrusive_ptr<const Packet>;

class Packet final : public FrameBody {
 public:
  static constexpr Kind kKind{};

  // Takes a packet from the pool, without headers and payload. The caller sets headers and addresses.
  static PacketRef make();
  // A packet parsed from a frame of bytes.
  static PacketHandle parsed(const roce::ParsedFrame& frame, Payload&& payload, std::uint64_t id,
                             const Telemetry* telemetry);
  // A received raw frame.
  static PacketHandle received(Payload frame, const RawFacts& facts, std::uint64_t id);
  void put(Payload&& payload) { payload_ = std::move(payload); }
  void put_piece(std::uint32_t offset, const Payload& piece);  // into the payload set before
  // Call before seal().
  void carry(const Telemetry& telemetry) {
    block_ = telemetry;
    telemetry_ = &block_;
  }
  // Completes the packet as a frame. Afterwards only its telemetry may change. The pad follows from the payload.
  void seal(std::uint64_t id, bool icrc_of_headers_only);

  const Payload& payload() const { return payload_; }
  std::uint64_t id() const { return id_; }
  bool icrc_of_headers_only() const { return icrc_of_headers_only_; }
  const Telemetry* telemetry() const { return telemetry_; }  // nullptr: the packet carries none

  roce::Headers headers;
  roce::FrameAddresses addresses;
  RawFacts raw;  // only for raw frames

 private:
  struct Pool;

  Packet() : FrameBody(kKind) {}
  void write() override;
  boost::intrusive_ptr<FrameBody> alone() override;
  boost::intrusive_ptr<FrameBody> marked() override;
  void release() override;

  Packet* next_ = nullptr;  // next idle packet of the pool
  bool icrc_of_headers_only_ = false;
  std::array<std::byte, roce::kMaxFrameHeader> wire_header_;
  Telemetry block_;  // valid if telemetry_ points to it
};

}  // namespace rnicsim::nic
