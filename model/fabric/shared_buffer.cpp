// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/shared_buffer.h"

#include <bit>
#include <cmath>
#include <limits>

namespace rnicsim::fabric {
namespace {

constexpr auto kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::uint64_t room(std::uint64_t most, std::uint64_t taken) { return most - std::min(most, taken); }

}  // namespace

SharedBuffer::SharedBuffer(const SwitchParams& params, std::size_t ports)
    : counts_lossy_(params.buffer.size.bytes != 0) {
  const auto& buffer = params.buffer;
  const auto& pfc = params.pfc;
  if (!counts_lossy_) {
    lossless_.bytes = pfc.xoff.bytes;
    xon_ = pfc.xon.bytes;
    headroom_each_ = pfc.headroom.bytes;
    size_ = headroom_size_ = kUnlimited;
    return;
  }
  const auto alpha = [&](double log2) { return buffer.is_dynamic() ? std::exp2(log2) : 0; };
  lossless_ = {buffer.lossless.size.bytes, alpha(buffer.lossless.dynamic_th), buffer.lossless.static_th.bytes};
  lossy_ = {buffer.lossy.size.bytes, alpha(buffer.lossy.dynamic_th), buffer.lossy.static_th.bytes};
  xon_ = buffer.lossless.xon.bytes;
  xon_offset_ = buffer.lossless.xon_offset.bytes;
  headroom_each_ = buffer.lossless.xoff.bytes;
  headroom_size_ = buffer.headroom_pool.bytes != 0 ? buffer.headroom_pool.bytes : kUnlimited;
  size_ = room(buffer.size.bytes, params.reserved_bytes(ports));
}

void SharedBuffer::add(Use& use, std::uint64_t reserved, std::uint64_t shared, std::uint64_t headroom) {
  use.reserved += reserved;
  use.shared += shared;
  use.headroom += headroom;
  shared_ += shared;
  headroom_ += headroom;
  most_shared_ = std::max(most_shared_, shared_);
  most_headroom_ = std::max(most_headroom_, headroom_);
}

// A frame may use several parts.
bool SharedBuffer::take_lossless(Use& use, std::uint32_t bytes) {
  const auto reserved = std::min<std::uint64_t>(bytes, room(lossless_.reserved, use.reserved));
  const auto shared = std::min({bytes - reserved, room(threshold(lossless_), use.shared), free()});
  const auto headroom = bytes - reserved - shared;
  if (headroom > std::min(room(headroom_each_, use.headroom), room(headroom_size_, headroom_))) return false;
  add(use, reserved, shared, headroom);
  return true;
}

bool SharedBuffer::take_lossy(Use& use, std::uint32_t bytes) {
  const auto reserved = std::min<std::uint64_t>(bytes, room(lossy_.reserved, use.reserved));
  const auto shared = bytes - reserved;
  if (shared > std::min(room(threshold(lossy_), use.shared), free())) return false;
  add(use, reserved, shared, 0);
  return true;
}

void SharedBuffer::give_back(Use& use, std::uint32_t bytes) {
  const auto headroom = std::min<std::uint64_t>(bytes, use.headroom);
  const auto shared = std::min(bytes - headroom, use.shared);
  use.headroom -= headroom;
  use.shared -= shared;
  use.reserved -= bytes - headroom - shared;
  headroom_ -= headroom;
  shared_ -= shared;
}

std::uint64_t SharedBuffer::resume_at() const {
  const auto most = lossless_.reserved + threshold(lossless_);
  return std::min(most, xon_offset_ == 0 ? xon_ : std::max(xon_, room(most, xon_offset_)));
}

}  // namespace rnicsim::fabric
