// SPDX-License-Identifier: Apache-2.0
// Operations on scatter/gather lists, and reads of rings.
#pragma once

#include <cstdint>

#include "model/nic/personality/queue_entries.h"

namespace rnicsim::nic {

// A read of a ring or a doorbell record that an engine requests.
struct RingRead {
  std::uint64_t address;
  std::uint32_t bytes;
};

// The part [offset, offset + length) of a scatter/gather list.
Regions slice(const Regions& regions, std::uint64_t offset, std::uint32_t length);
// Bytes after the first `length` bytes, in the entry in which they end.
std::uint32_t room_behind(const Regions& regions, std::uint64_t length);

}  // namespace rnicsim::nic
