// SPDX-License-Identifier: Apache-2.0
#include "model/base/frame.h"

#include <algorithm>
#include <cassert>

namespace rnicsim {
namespace {

constexpr std::size_t kTypeOffset = 12, kIpOffset = 14;
constexpr unsigned kVlanType = 0x8100;

unsigned two_bytes_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]) << 8 | std::to_integer<unsigned>(bytes[at + 1]);
}

VlanTag tag_of(std::span<const std::byte> header) {
  if (header.size() < kIpOffset + 2 || two_bytes_at(header, kTypeOffset) != kVlanType) return {};
  return VlanTag(static_cast<std::uint16_t>(two_bytes_at(header, kIpOffset)));
}

// `tag`: bytes of the VLAN tag, which precedes the type.
std::uint8_t traffic_class_of(std::span<const std::byte> header, std::size_t tag) {
  if (header.size() < kIpOffset + tag + 2) return 0;
  const auto type = two_bytes_at(header, kTypeOffset + tag), begins = two_bytes_at(header, kIpOffset + tag);
  if (type == 0x0800) return static_cast<std::uint8_t>(begins);       // IPv4
  if (type == 0x86dd) return static_cast<std::uint8_t>(begins >> 4);  // IPv6
  return 0;
}

// Sets CE, and updates IPv4's checksum (RFC 1624).
void mark(std::span<std::byte> header, std::size_t tag) {
  auto* ip = header.data() + kIpOffset + tag;
  if ((std::to_integer<unsigned>(ip[0]) >> 4) == 6) {
    ip[1] |= std::byte{kCe << 4};
    return;
  }
  const auto word = [ip](std::size_t at) {
    return std::to_integer<unsigned>(ip[at]) << 8 | std::to_integer<unsigned>(ip[at + 1]);
  };
  constexpr std::size_t kChecksum = 10;
  const auto before = word(0);
  ip[1] |= std::byte{kCe};
  auto sum = (~word(kChecksum) & 0xffff) + (~before & 0xffff) + word(0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  ip[kChecksum] = std::byte(~sum >> 8 & 0xff);
  ip[kChecksum + 1] = std::byte(~sum & 0xff);
}

// A frame that was received as bytes, or changed on its way.
class FrameOfBytes final : public FrameBody {
 public:
  FrameOfBytes(Payload header, Payload payload, std::span<const std::byte> trailer, std::uint64_t id,
               const Telemetry* telemetry)
      : FrameBody(kKind), front_(std::move(header)) {
    assert(trailer.size() <= kTrailerCapacity);
    if (telemetry != nullptr)
      carry(*telemetry);
    else if (payload.empty() && trailer.empty())
      cut_telemetry();
    const auto front = front_.bytes();
    payload_ = std::move(payload);
    id_ = id;
    header_bytes_ = front_.size();
    trailer_bytes_ = static_cast<std::uint8_t>(trailer.size());
    bytes_ = header_bytes_ + payload_.size() + trailer_bytes_;
    if (telemetry_ != nullptr) bytes_ += static_cast<std::uint32_t>(telemetry_->size());
    if (front.size() >= destination_mac_.size())
      std::ranges::transform(front.first(destination_mac_.size()), destination_mac_.begin(),
                             [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    tag_ = tag_of(front);
    traffic_class_ = traffic_class_of(front, tag_.bytes());
    header_ = front.empty() ? trailer_.data() : front.data();  // not nullptr: an empty header counts as written
    std::ranges::copy(trailer, trailer_.begin());
  }

 private:
  static constexpr Kind kKind{};
  void write() override {}
  boost::intrusive_ptr<FrameBody> alone() override { return is_shared() ? with(Payload(front_)) : this; }
  boost::intrusive_ptr<FrameBody> marked() override {
    auto header = Payload::copy_of(front_.bytes());
    mark(header.writable(), tag_.bytes());
    return with(std::move(header));
  }
  void release() override { delete this; }

  FrameOfBytes* with(Payload&& header) const {
    return new FrameOfBytes(std::move(header), Payload(payload_), {trailer_.data(), trailer_bytes_}, id_, telemetry_);
  }
  void carry(const Telemetry& telemetry) {
    block_ = telemetry;
    telemetry_ = &block_;
  }
  void cut_telemetry() {
    const auto telemetry = telemetry_behind(front_.bytes());
    if (!telemetry) return;
    front_.shorten(front_.size() - static_cast<std::uint32_t>(telemetry->size()));
    carry(*telemetry);
  }

  Payload front_;
  Telemetry block_;
};

}  // namespace

Frame Frame::of(Payload header, Payload payload, std::span<const std::byte> trailer, std::uint64_t id,
                const Telemetry* telemetry) {
  return Frame(new FrameOfBytes(std::move(header), std::move(payload), trailer, id, telemetry));
}

void Frame::append_to(std::vector<std::byte>& out) const {
  const auto put = [&out](std::span<const std::byte> part) { out.insert(out.end(), part.begin(), part.end()); };
  put(header_span());
  put(payload().bytes());
  put(trailer_span());
  if (telemetry() == nullptr) return;
  std::array<std::byte, Telemetry::kBytes> bytes;
  const auto block = std::span(bytes).first(telemetry()->size());
  telemetry()->put(block);
  put(block);
}

}  // namespace rnicsim
