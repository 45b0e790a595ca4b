// An Ethernet frame as it crosses a frame port: headers and payload by reference, then what follows the payload (pad
// and ICRC). No FCS and no preamble; links account for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/payload.h"

namespace rnicsim {

struct Frame {
  static constexpr std::size_t kTrailerCapacity = 8;

  Payload header;
  Payload payload;
  std::array<std::byte, kTrailerCapacity> trailer;
  std::uint8_t trailer_bytes = 0;
  std::uint64_t id = 0;                   // of those that its NIC sent, from 1; not on the wire: for who follows it

  std::uint32_t size() const { return header.size() + payload.size() + trailer_bytes; }
  std::span<const std::byte> header_span() const { return header.bytes(); }
  std::span<const std::byte> trailer_span() const { return {trailer.data(), trailer_bytes}; }
  void append_to(std::vector<std::byte>& out) const;  // the frame's bytes, in wire order
};

}  // namespace rnicsim
