// SPDX-License-Identifier: Apache-2.0
// Time and bytes that a frame takes on a line, with preamble, FCS and gap (`overhead`) and padded to `least_frame`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/base/frame.h"
#include "model/base/units.h"

namespace rnicsim {

struct LineTiming {
  BitRate rate{100'000'000'000};
  ByteCount overhead{24};
  ByteCount least_frame{60};

  ByteCount bytes_for(const Frame& frame) const {
    return {std::max<std::uint64_t>(frame.size(), least_frame.bytes) + overhead.bytes};
  }
  Duration time_for(const Frame& frame) const { return rate.time_for(bytes_for(frame)); }
  bool operator==(const LineTiming&) const = default;
};

}  // namespace rnicsim
