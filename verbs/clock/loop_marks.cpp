#include "verbs/clock/loop_marks.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "verbs/clock/raw_call.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint8_t kBreakpoint = 0xcc;  // int3
constexpr std::uintptr_t kPageBytes = 4096;
// One costs a look of a few steps; a wait that begins at a mark saves ten such looks.
constexpr int kMostMisses = 4;

std::array<LoopMark, 64> marks;

// Code that a program makes while it runs may change under a mark.
bool is_of_a_file(std::uintptr_t place) {
  dl_find_object object;
  return ::_dl_find_object(reinterpret_cast<void*>(place), &object) == 0;
}

bool make_writable(std::uintptr_t place) {
  constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
  return raw_call(SYS_mprotect, place & ~(kPageBytes - 1), kPageBytes, kAll) == 0;
}

}  // namespace

LoopMark* LoopMark::of(std::uintptr_t place) {
  const auto found = std::ranges::find(marks, place, &LoopMark::place_);
  return found != marks.end() ? &*found : nullptr;
}

LoopMark* LoopMark::at(std::uintptr_t place) { return place != 0 ? of(place) : nullptr; }

LoopMark* LoopMark::make(std::uintptr_t place, int period) {
  LoopMark* mark = of(place);
  if (mark == nullptr) mark = of(0);
  if (mark == nullptr || !is_of_a_file(place) || !make_writable(place)) return nullptr;
  const auto byte = *reinterpret_cast<const std::uint8_t*>(place);
  // The code may be another than when the place was last marked.
  if (mark->place_ != place || byte != kBreakpoint) mark->original_ = byte;
  mark->place_ = place;
  mark->period_ = period;
  mark->misses_ = 0;
  return mark;
}

void LoopMark::set() {
  if (misses_ < kMostMisses) write(kBreakpoint);
}

void LoopMark::clear() { write(original_); }

void LoopMark::write(std::uint8_t byte) const {
  std::atomic_ref(*reinterpret_cast<std::uint8_t*>(place_)).store(byte);
}

}  // namespace rnicsim::clock
