// SPDX-License-Identifier: Apache-2.0
// State that the checks share: the terms of the device, the access log, the driver's objects, and the reports.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "model/base/kernel.h"
#include "model/driver_check/access_log.h"
#include "model/driver_check/check_params.h"
#include "model/driver_check/memory_maps.h"
#include "model/driver_check/objects.h"
#include "model/driver_check/reports.h"
#include "model/nic/pcie/pcie_endpoint.h"
#include "model/nic/personality/driver_terms.h"
#include "model/nic/personality/personality.h"

namespace rnicsim::driver_check {

using About = Subject::About;

struct CheckContext {
  const CheckParams params;
  const nic::Personality& personality;
  const nic::DriverTerms& terms;
  nic::PcieEndpoint& pcie;
  AccessLog log{personality, terms};
  Reports reports{log};
  Objects objects;
  MemoryMaps maps;
  std::uint64_t failed_reads = 0;

  // Reads host memory at the present time; no counter of the device changes. False: the check cannot read that memory.
  bool peek(Pasid pasid, std::uint64_t address, std::span<std::byte> bytes) {
    const bool seen = pcie.peek(pasid, address, bytes);
    failed_reads += !seen;
    return seen;
  }
  // Example: " 3 us ago".
  static std::string ago(Duration at) { return in_words(now() - at) + " ago"; }
};

// Signed distance from `a` to `b`, counters modulo 2^24; negative where b is behind a.
inline std::int32_t ahead(std::uint32_t b, std::uint32_t a) {
  const auto distance = (b - a) & nic::kCounterMask;
  return distance > nic::kCounterMask / 2 ? static_cast<std::int32_t>(distance) - (1 << 24)
                                          : static_cast<std::int32_t>(distance);
}

// The same bytes with each word of `size` bytes reversed: the value of a driver that used the other byte order.
template <std::size_t kMost = 16>
std::array<std::byte, kMost> turned(std::span<const std::byte> bytes, std::size_t size) {
  std::array<std::byte, kMost> out{};
  const auto count = std::min(bytes.size(), kMost);
  std::ranges::copy(bytes.first(count), out.begin());
  for (std::size_t at = 0; at + size <= count; at += size) std::reverse(out.begin() + at, out.begin() + at + size);
  return out;
}

// True if each byte of the number is kPoison: the driver read it from the body of a CQE before the owner bit was set.
inline bool is_poison(std::uint32_t number, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    if ((number >> 8 * i & 0xff) != CheckParams::kPoison) return false;
  return true;
}

}  // namespace rnicsim::driver_check
