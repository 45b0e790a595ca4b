#include "model/base/payload.h"

#include <algorithm>

#include "model/base/frame.h"

namespace rnicsim {

Payload Payload::copy_of(std::span<const std::byte> bytes) {
  Payload payload(bytes.size());
  std::ranges::copy(bytes, payload.buffer_.get());
  return payload;
}

void Frame::append_to(std::vector<std::byte>& out) const {
  out.insert(out.end(), header_span().begin(), header_span().end());
  out.insert(out.end(), payload.bytes().begin(), payload.bytes().end());
  out.insert(out.end(), trailer_span().begin(), trailer_span().end());
}

}  // namespace rnicsim
