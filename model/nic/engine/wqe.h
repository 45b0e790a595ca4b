// What the engine does with scatter/gather lists, and what it reads of rings.
#pragma once

#include <cstdint>

#include "model/nic/personality/queue_entries.h"

namespace rnicsim::nic {

// Of a ring or a doorbell record: bytes that an engine wants.
struct RingRead {
  std::uint64_t address;
  std::uint32_t bytes;
};

// The part [offset, offset + length) of a scatter/gather list.
Regions slice(const Regions& regions, std::uint64_t offset, std::uint32_t length);
// What is left behind that many bytes of the entry in which they end.
std::uint32_t room_behind(const Regions& regions, std::uint64_t length);

}  // namespace rnicsim::nic
