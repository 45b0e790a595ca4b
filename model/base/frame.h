// SPDX-License-Identifier: Apache-2.0
// An Ethernet frame at a frame port: a handle to one body, which copies of the frame share. A shared body is immutable.
// The frame's bytes are a header, a payload and a trailer (pad and ICRC). A body may keep the sender's decoded packet
// instead of bytes, and write header and trailer when they are first read. A telemetry block may follow the trailer;
// switches add records to it. FCS and preamble are not part of the frame; links account for their time.
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

// A VLAN tag (IEEE 802.1Q): priority (PCP) 3 bits, DEI 1 bit, VLAN 12 bits. The value 0xffff means no tag. No frame has
// this value, because VLAN 4095 is reserved.
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
  struct Kind {};  // identifies a derived class by the address of its member kKind

  FrameBody(const FrameBody&) = delete;
  FrameBody& operator=(const FrameBody&) = delete;

 protected:
  explicit FrameBody(const Kind& kind) : kind_(&kind) {}
  ~FrameBody() = default;

  virtual void write() = 0;                             // sets header_ and trailer_
  virtual boost::intrusive_ptr<FrameBody> alone() = 0;  // returns this body, or a copy if other handles share the body
  // Returns this frame with CE in its IP header: a copy if other handles share the body.
  virtual boost::intrusive_ptr<FrameBody> marked() = 0;
  bool is_shared() const { return owners_ > 1; }
  virtual void release() = 0;  // called when the last handle is gone

  Payload payload_;
  std::uint64_t id_ = 0;
  std::uint32_t bytes_ = 0;  // size of the whole frame
  std::uint32_t header_bytes_ = 0;
  Mac destination_mac_{};
  std::uint8_t trailer_bytes_ = 0;
  std::uint8_t traffic_class_ = 0;     // DSCP and ECN of the IP header
  VlanTag tag_;                        // outermost VLAN tag
  const std::byte* header_ = nullptr;  // nullptr until write()
  std::array<std::byte, kTrailerCapacity> trailer_;
  Telemetry* telemetry_ = nullptr;  // part of the derived body; nullptr: the frame carries none

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

  Frame() = default;  // no frame: a place that a frame is moved to
  explicit Frame(boost::intrusive_ptr<FrameBody> body) : body_(std::move(body)) {}
  // Makes a frame from bytes. `payload` and `trailer` may be empty: then `header` is the whole frame, and a telemetry
  // block at its end is found. `trailer` has at most kTrailerCapacity bytes.
  static Frame of(Payload header, Payload payload = {}, std::span<const std::byte> trailer = {}, std::uint64_t id = 0,
                  const Telemetry* telemetry = nullptr);

  std::uint32_t size() const { return body_->bytes_; }
  // Number of the frame among those of its sending NIC, from 1; 0: none. Not on the wire: for observers.
  std::uint64_t id() const { return body_->id_; }
  // Zeros when the header is shorter.
  const FrameBody::Mac& destination_mac() const { return body_->destination_mac_; }
  // 0 if the frame is not IP.
  std::uint8_t traffic_class() const { return body_->traffic_class_; }
  VlanTag tag() const { return body_->tag_; }
  // True if a congested switch may mark the frame: ECT(0) or ECT(1) (RFC 3168).
  bool is_markable() const {
    const auto ecn = traffic_class() & kEcnMask;
    return ecn == kEct0 || ecn == kEct1;
  }
  // Sets CE in this handle's frame only. The ICRC stays valid, since it does not cover the traffic class.
  void mark() { body_ = body_->marked(); }
  // nullptr: the frame carries no telemetry.
  const Telemetry* telemetry() const { return body_->telemetry_; }
  // Adds a record of the port to the telemetry of this handle's frame only. The frame must carry telemetry.
  void add_hop(const PortState& port) {
    if (!telemetry()->takes_hops()) return;
    body_ = body_->alone();
    body_->telemetry_->add(port);
  }
  std::uint32_t header_bytes() const { return body_->header_bytes_; }
  const Payload& payload() const { return body_->payload_; }
  // The sender's decoded packet, if the body is of class `Body`; else nullptr.
  template <class Body>
  const Body* as() const {
    return body_->kind_ == &Body::kKind ? static_cast<const Body*>(body_.get()) : nullptr;
  }

  // Header and trailer; the first call writes them.
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
