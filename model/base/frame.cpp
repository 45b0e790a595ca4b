#include "model/base/frame.h"

#include <algorithm>
#include <cassert>

namespace rnicsim {
namespace {

// A frame that came as bytes, or was changed on its way.
class FrameOfBytes final : public FrameBody {
 public:
  FrameOfBytes(Payload header, Payload payload, std::span<const std::byte> trailer, std::uint64_t id)
      : FrameBody(kKind), front_(std::move(header)) {
    assert(trailer.size() <= kTrailerCapacity);
    const auto front = front_.bytes();
    payload_ = std::move(payload);
    id_ = id;
    header_bytes_ = front_.size();
    trailer_bytes_ = static_cast<std::uint8_t>(trailer.size());
    bytes_ = header_bytes_ + payload_.size() + trailer_bytes_;
    if (front.size() >= destination_mac_.size())
      std::ranges::transform(front.first(destination_mac_.size()), destination_mac_.begin(),
                             [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
    header_ = front.empty() ? trailer_.data() : front.data();  // there are none of it to see
    std::ranges::copy(trailer, trailer_.begin());
  }

 private:
  static constexpr Kind kKind{};
  void write() override {}
  void release() override { delete this; }

  const Payload front_;
};

}  // namespace

Frame Frame::of(Payload header, Payload payload, std::span<const std::byte> trailer, std::uint64_t id) {
  return Frame(new FrameOfBytes(std::move(header), std::move(payload), trailer, id));
}

void Frame::append_to(std::vector<std::byte>& out) const {
  const auto put = [&out](std::span<const std::byte> part) { out.insert(out.end(), part.begin(), part.end()); };
  put(header_span());
  put(payload().bytes());
  put(trailer_span());
}

}  // namespace rnicsim
