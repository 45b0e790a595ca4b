// SPDX-License-Identifier: Apache-2.0
// Limits of the checks of a driver, and modes that bring hidden mistakes to light.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::driver_check {

struct CheckParams {
  Duration reset_window = Duration{100'000'000'000};  // after a function-level reset (PCIe 4.0, 6.6.2); 0: no check
  std::uint32_t polls = 1000;                         // reads of one register in a row with one value: no progress
  Duration masked_for = Duration{10'000'000'000};     // an interrupt that is pending this long is reported as forgotten

  // --- Modes. They change what the driver sees, within the limits of the manual.
  // The body of a CQE's slot holds kPoison from the time the device begins to write the entry until the entry lands.
  bool poison = false;
  // Delay of the owner byte of a CQE or EQE after the entry's body. Later writes of the device wait as well.
  Duration owner_delay{};

  static constexpr std::uint8_t kPoison = 0xdb;
};

}  // namespace rnicsim::driver_check
