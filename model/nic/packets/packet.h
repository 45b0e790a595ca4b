// A RoCE packet, one object from the turn that makes it to its receiver's memory, and the frame that it is on its way:
// headers and addresses decoded, payload by reference. Its bytes and ICRC are written when somebody looks: a capture, a
// rule that flips a bit, a port to another platform.
#pragma once

#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "model/base/frame.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {

// How a NIC deals with the ICRC.
struct IcrcRule {
  bool headers_only = false;               // payload is nothing: it does not cover it
  bool always = false;                     // bytes and ICRC of each packet are made, and parsed and checked
};

// Of a raw frame, whose bytes are the payload; the headers say no more than that it is one.
struct RawFacts {
  bool fill_checksums = false;           // sent, as all up to `last`: of IP, and of TCP or UDP
  Payload headers{};                     // before the payload, which is a segment of a message
  std::uint32_t offset = 0;              // of it in that
  std::uint32_t number = 0;              // of segments before it
  bool last = true;
  bool checksums_right = false;          // received, as all below
  std::uint32_t rss_hash = 0;
  std::optional<std::uint32_t> flow_tag{};
  std::optional<std::uint16_t> vlan{};     // the tag that was taken off
};

class Packet;
using PacketRef = boost::intrusive_ptr<Packet>;          // of who makes it
using PacketHandle = boost::intrusive_ptr<const Packet>;

class Packet final : public FrameBody {
 public:
  static constexpr Kind kKind{};

  // From a pool, with no headers and no payload. Headers and addresses are for the caller to set.
  static PacketRef make();
  // What a frame of bytes was found to be.
  static PacketHandle parsed(const roce::ParsedFrame& frame, Payload&& payload, std::uint64_t id,
                             const Telemetry* telemetry);
  // A raw frame that was received.
  static PacketHandle received(Payload frame, const RawFacts& facts, std::uint64_t id);
  void put(Payload&& payload) { payload_ = std::move(payload); }
  void put_piece(std::uint32_t offset, const Payload& piece);  // of what was put
  // Before it is sealed.
  void carry(const Telemetry& telemetry) {
    block_ = telemetry;
    telemetry_ = &block_;
  }
  // It is complete, a frame, and never changes from here on, but for its telemetry. The pad follows from the payload.
  void seal(std::uint64_t id, bool icrc_of_headers_only);

  const Payload& payload() const { return payload_; }
  std::uint64_t id() const { return id_; }
  bool icrc_of_headers_only() const { return icrc_of_headers_only_; }
  const Telemetry* telemetry() const { return telemetry_; }  // nullptr: it carries none

  roce::Headers headers;
  roce::FrameAddresses addresses;
  RawFacts raw;                          // of a raw frame alone

 private:
  struct Pool;

  Packet() : FrameBody(kKind) {}
  void write() override;
  boost::intrusive_ptr<FrameBody> alone() override;
  boost::intrusive_ptr<FrameBody> marked() override;
  void release() override;

  Packet* next_ = nullptr;                 // while it waits to be used again
  bool icrc_of_headers_only_ = false;
  std::array<std::byte, roce::kMaxFrameHeader> wire_header_;
  Telemetry block_;                        // if telemetry_ says so
};

}  // namespace rnicsim::nic
