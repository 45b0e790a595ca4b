// Limits used by the driver check, and modes that make hidden mistakes visible.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::driver_check {

struct CheckParams {
  Duration reset_window = Duration{100'000'000'000};  // after a function-level reset (PCIe 4.0, 6.6.2); 0: no check
  std::uint32_t polls = 1000;                         // successive reads of a register with the same value that count
                                                      // as no progress
  Duration masked_for = Duration{10'000'000'000};     // time after which a pending interrupt counts as forgotten

  // --- Modes. They change what the driver sees, within the limits of the manual.
  // Fill the body of a CQE with kPoison from the time when the device begins to write the entry until the entry lands.
  bool poison = false;
  // Delay between the body of a CQE or EQE and its owner byte. Later writes are delayed, too.
  Duration owner_delay{};

  static constexpr std::uint8_t kPoison = 0xdb;
};

}  // namespace rnicsim::driver_check
