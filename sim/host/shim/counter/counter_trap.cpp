// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/counter/counter_trap.h"

#include <sys/auxv.h>
#include <sys/prctl.h>

#include "sim/host/shim/protected_data.h"

namespace rnicsim::clock {
namespace {

std::uintptr_t left_vdso = 0;

}  // namespace

CounterRead counter_read_at(std::uintptr_t address) {
  const auto* code = reinterpret_cast<const std::uint8_t*>(address);
  if (code[0] == 0x0f && code[1] == 0x31) return CounterRead::rdtsc;
  if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9) return CounterRead::rdtscp;
  return CounterRead::none;
}

bool trap_counter() { return ::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0; }
void untrap_counter() { ::prctl(PR_SET_TSC, PR_TSC_ENABLE); }

// The loader has pointers to the functions of the vDSO. Its pointer to the begin of the vDSO stays.
void leave_vdso(std::uintptr_t vdso) {
  left_vdso = vdso;
  const ProtectedData of_loader(::getauxval(AT_BASE));
  for (std::uintptr_t& word : of_loader.words())
    if (word != vdso && in_vdso(word)) word = 0;
}

bool in_vdso(std::uintptr_t address) {
  constexpr std::uintptr_t kVdsoBytes = 2 * 4096;
  return left_vdso != 0 && address - left_vdso < kVdsoBytes;
}

}  // namespace rnicsim::clock
