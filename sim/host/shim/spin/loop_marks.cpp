// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/loop_marks.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "sim/host/shim/text.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint8_t kBreakpoint = 0xcc;  // int3
// A miss costs a spin check of a few steps; a wait that begins at a mark saves ten such checks.
constexpr int kMostMisses = 4;

std::array<LoopMark, 64> marks;

}  // namespace

LoopMark* LoopMark::of(std::uintptr_t place) {
  const auto found = std::ranges::find(marks, place, &LoopMark::place_);
  return found != marks.end() ? &*found : nullptr;
}

LoopMark* LoopMark::at(std::uintptr_t place) {
  return *reinterpret_cast<const std::uint8_t*>(place) == kBreakpoint ? of(place) : nullptr;
}

std::uint8_t LoopMark::byte_at(std::uintptr_t place) {
  const LoopMark* mark = at(place);
  return mark != nullptr ? mark->original_ : *reinterpret_cast<const std::uint8_t*>(place);
}

LoopMark* LoopMark::make(std::uintptr_t place, int period) {
  LoopMark* mark = of(place);
  if (mark == nullptr) mark = of(0);
  if (mark == nullptr) return nullptr;
  if (!is_of_a_file(place) || !make_writable(place, 1)) return nullptr;
  const auto byte = *reinterpret_cast<const std::uint8_t*>(place);
  // The code at the place may have changed since the last mark.
  if (mark->place_ != place || byte != kBreakpoint) mark->original_ = byte;
  mark->place_ = place;
  mark->period_ = period;
  mark->misses_ = 0;
  return mark;
}

void LoopMark::set() {
  if (misses_ < kMostMisses) write(kBreakpoint);
}

void LoopMark::miss() {
  if (++misses_ >= kMostMisses) clear();
}

void LoopMark::clear() { write(original_); }

void LoopMark::write(std::uint8_t byte) const { std::atomic_ref(*reinterpret_cast<std::uint8_t*>(place_)).store(byte); }

}  // namespace rnicsim::clock
