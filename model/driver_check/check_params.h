// What a check of a driver judges by, and the modes that make hidden mistakes show.
#pragma once

#include <cstdint>

#include "model/base/units.h"

namespace rnicsim::driver_check {

struct CheckParams {
  Duration reset_window = Duration{100'000'000'000};  // behind a function-level reset (PCIe 4.0, 6.6.2); 0: none
  std::uint32_t polls = 1000;                         // reads of a register in a row, of one value: no progress
  Duration masked_for = Duration{10'000'000'000};     // an interrupt pends so long: it is forgotten

  // --- Modes. They change what the driver sees, in ways that the manual allows.
  // The body of a CQE's place holds kPoison from the time the device begins to write the entry until it lands.
  bool poison = false;
  // The owner byte of a CQE or EQE lands so much later than its body, and what follows behind it.
  Duration owner_delay{};

  static constexpr std::uint8_t kPoison = 0xdb;
};

}  // namespace rnicsim::driver_check
