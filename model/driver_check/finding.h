// SPDX-License-Identifier: Apache-2.0
// A mistake of a driver, as the device observed it. docs/driver-check.md lists the kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::driver_check {

enum class FindingKind : std::uint8_t {
  // Accesses of the CPU.
  memory_space_off,
  reset_window,
  wrong_width,
  wrong_direction,
  no_register,
  bad_alignment,
  no_progress,
  // Numbers.
  wrong_endianness,
  unknown_object,
  destroyed_object,
  in_use,
  // Doorbells.
  wrong_page,
  wrong_state,
  past_ring,
  stale_wqe,
  unsound_wqe,
  reserved_bytes,
  // Completions and events.
  owner_bits,
  body_before_owner,
  consumer_past_producer,
  arm_past_producer,
  old_ring_position,
  record_not_updated,
  // Receives.
  srq_next_posted,
  // Commands.
  entry_not_owned,
  mailbox_rewritten,
  // Memory and interrupts.
  bus_master_off,
  never_mapped,
  unmapped,
  interrupt_lost,
  interrupt_masked,
};
inline constexpr std::size_t kFindingKinds = static_cast<std::size_t>(FindingKind::interrupt_masked) + 1;

struct KindTerm {
  FindingKind kind;
  const char* name;
  const char* section;  // heading in docs/device.md
  const char* meaning;
};
std::span<const KindTerm> finding_kinds();
const KindTerm& term_of(FindingKind kind);

struct Finding {
  FindingKind kind;
  Duration at;                        // simulated time of the first wrong access
  std::string text;                   // one line
  std::vector<std::string> accesses;  // last accesses of the CPU, newest last

  const char* name() const { return term_of(kind).name; }
  const char* section() const { return term_of(kind).section; }
  // Example: "12.345 us: wrong_width: ... (docs/device.md, The register page)".
  std::string line() const;
};

// Time with its unit, for example "3.25 us".
std::string in_words(Duration time);

}  // namespace rnicsim::driver_check
