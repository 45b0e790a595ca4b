// SPDX-License-Identifier: Apache-2.0
// The header that rdma_cm puts before a program's private data: the two addresses of the connection (IBTA vol 1,
// A11.4).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/host/cm/ip_address.h"

namespace rnicsim::host {

struct AddressHeader {
  static constexpr std::size_t kBytes = 36;
  IpAddress source;
  IpAddress destination;  // the port is not encoded; the service ID has it

  std::array<std::uint8_t, kBytes> encode() const;
  // nullopt: unknown version, or not IP.
  static std::optional<AddressHeader> decode(std::span<const std::uint8_t, kBytes> bytes);
};

}  // namespace rnicsim::host
