// An Ethernet frame as it crosses a frame port: a handle to one body, which copies of the frame share and nobody
// changes while others hold it. Its bytes are a header, a payload and what follows the payload (pad and ICRC). A body
// may stand for what its sender meant instead, and write header and trailer when somebody looks at them. Behind these
// there may be a block of telemetry, to which switches add. No FCS and no preamble; links account for them.
#pragma once

#include <array>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "model/base/payload.h"
#include "model/base/telemetry.h"

namespace rnicsim {

// A VLAN tag (IEEE 802.1Q): priority (PCP) 3 bits, DEI 1 bit, VLAN 12 bits. Untagged: 0xffff, which no frame has, since
// the VLAN 4095 is reserved.
class VlanTag {
 public:
  static constexpr std::uint16_t kUntagged = 0xffff, kVlanMask = 0xfff;
  static constexpr std::size_t kBytes = 4;
  static constexpr unsigned kPcpShift = 13;

  VlanTag() = default;
  explicit VlanTag(std::uint16_t bits) : bits_(bits) {}

  explicit operator bool() const { return bits_ != kUntagged; }
  std::uint16_t bits() const { return bits_; }
  std::uint8_t pcp() const { return *this ? static_cast<std::uint8_t>(bits_ >> kPcpShift) : 0; }
  std::size_t bytes() const { return *this ? kBytes : 0; }

 private:
  std::uint16_t bits_ = kUntagged;
};

class FrameBody {
 public:
  static constexpr std::size_t kTrailerCapacity = 8;
  using Mac = std::array<std::uint8_t, 6>;
  struct Kind {};                          // of a body, by its address: what a derived class has one of, kKind

  FrameBody(const FrameBody&) = delete;
  FrameBody& operator=(const FrameBody&) = delete;

 protected:
  explicit FrameBody(const Kind& kind) : kind_(&kind) {}
  ~FrameBody() = default;

  virtual void write() = 0;                // sets header_ and trailer_
  virtual boost::intrusive_ptr<FrameBody> alone() = 0;  // this body, or a copy of it, if others hold this body, too
  // This frame with CE in its IP header: a copy, if others hold this body, too.
  virtual boost::intrusive_ptr<FrameBody> marked() = 0;
  bool is_shared() const { return owners_ > 1; }
  virtual void release() = 0;              // the last handle is gone

  Payload payload_;
  std::uint64_t id_ = 0;
  std::uint32_t bytes_ = 0;                // of the whole frame
  std::uint32_t header_bytes_ = 0;
  Mac destination_mac_{};
  std::uint8_t trailer_bytes_ = 0;
  std::uint8_t traffic_class_ = 0;         // of its IP header: DSCP and ECN
  VlanTag tag_;                            // the outermost
  const std::byte* header_ = nullptr;      // until it is written
  std::array<std::byte, kTrailerCapacity> trailer_;
  Telemetry* telemetry_ = nullptr;         // of the body itself; nullptr: the frame carries none

 private:
  friend class Frame;
  friend void intrusive_ptr_add_ref(const FrameBody* body) { ++body->owners_; }
  friend void intrusive_ptr_release(const FrameBody* body) {
    if (--body->owners_ == 0) const_cast<FrameBody*>(body)->release();
  }

  mutable std::uint32_t owners_ = 0;
  const Kind* const kind_;
};

// ECN bits of a traffic class (RFC 3168).
inline constexpr std::uint8_t kEcnMask = 3, kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3;

class Frame {
 public:
  static constexpr std::size_t kTrailerCapacity = FrameBody::kTrailerCapacity;

  Frame() = default;                       // none: for a place that a frame is moved to
  explicit Frame(boost::intrusive_ptr<FrameBody> body) : body_(std::move(body)) {}
  // Of bytes: cut where its payload begins and ends, or all of it header. The trailer has at most kTrailerCapacity.
  // Telemetry is given apart from that, or found at the end, where all is header.
  static Frame of(Payload header, Payload payload = {}, std::span<const std::byte> trailer = {}, std::uint64_t id = 0,
                  const Telemetry* telemetry = nullptr);

  std::uint32_t size() const { return body_->bytes_; }
  // Of those that its NIC sent, from 1; not on the wire: for who follows it.
  std::uint64_t id() const { return body_->id_; }
  // Zeros when the header is shorter.
  const FrameBody::Mac& destination_mac() const { return body_->destination_mac_; }
  // 0 of what is not IP.
  std::uint8_t traffic_class() const { return body_->traffic_class_; }
  VlanTag tag() const { return body_->tag_; }
  // Whether a switch that is congested may mark it: ECT(0) or ECT(1) (RFC 3168).
  bool is_markable() const {
    const auto ecn = traffic_class() & kEcnMask;
    return ecn == kEct0 || ecn == kEct1;
  }
  // CE, in this handle's frame alone. Its ICRC stays right: it does not cover the traffic class.
  void mark() { body_ = body_->marked(); }
  // nullptr: it carries none.
  const Telemetry* telemetry() const { return body_->telemetry_; }
  // A record of the port, in this handle's frame alone, which carries telemetry.
  void add_hop(const PortState& port) {
    if (!telemetry()->takes_hops()) return;
    body_ = body_->alone();
    body_->telemetry_->add(port);
  }
  std::uint32_t header_bytes() const { return body_->header_bytes_; }
  const Payload& payload() const { return body_->payload_; }
  // What its sender meant, if that is kept as a `Body`; else nullptr.
  template <class Body>
  const Body* as() const {
    return body_->kind_ == &Body::kKind ? static_cast<const Body*>(body_.get()) : nullptr;
  }

  // These write it.
  std::span<const std::byte> header_span() const {
    write();
    return {body_->header_, body_->header_bytes_};
  }
  std::span<const std::byte> trailer_span() const {
    write();
    return {body_->trailer_.data(), body_->trailer_bytes_};
  }
  void append_to(std::vector<std::byte>& out) const;  // the frame's bytes, in wire order
  void write() const {
    if (!written()) body_->write();
  }
  bool written() const { return body_->header_ != nullptr; }

 private:
  boost::intrusive_ptr<FrameBody> body_;
};

}  // namespace rnicsim
