// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/counter/tsc.h"

#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cstdint>

#include "sim/host/shim/counter/counter_sites.h"
#include "sim/host/shim/protected_data.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

enum class Instruction { other, rdtsc, rdtscp };

Instruction at(const std::uint8_t* code) {
  if (code[0] == 0x0f && code[1] == 0x31) return Instruction::rdtsc;
  if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9) return Instruction::rdtscp;
  return Instruction::other;
}

std::uintptr_t vdso = 0;

std::uint64_t real_counter() {
  untrap_tsc();
  const std::uint64_t counter = __rdtsc();
  trap_tsc();
  return counter;
}

}  // namespace

void trap_tsc() {
  // valgrind reads the counter itself, and would die of the fault.
  if (tool() != Tool::valgrind) ::prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
void hide_vdso(char** environment) {
  while (*environment != nullptr) ++environment;
  for (auto* entry = reinterpret_cast<ElfW(auxv_t)*>(environment + 1); entry->a_type != AT_NULL; ++entry) {
    if (entry->a_type != AT_SYSINFO_EHDR) continue;
    vdso = entry->a_un.a_val;
    entry->a_type = AT_IGNORE;
  }
  // The C library has read the vector before. It may read a clock while it blocks SIGSEGV (aio(7)), and would die of
  // the fault: its pointers into the vDSO are cleared.
  const ProtectedData of_loader(::getauxval(AT_BASE));
  for (std::uintptr_t& word : of_loader.words())
    if (word != vdso && in_vdso(word)) word = 0;
}

bool in_vdso(std::uintptr_t address) {
  constexpr std::uintptr_t kVdsoBytes = 2 * 4096;
  return vdso != 0 && address - vdso < kVdsoBytes;
}

void untrap_tsc() { ::prctl(PR_SET_TSC, PR_TSC_ENABLE); }

bool emulate_tsc(void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto address = std::uintptr_t(registers[REG_RIP]);
  const Instruction instruction = at(reinterpret_cast<const std::uint8_t*>(address));
  if (instruction == Instruction::other) return false;

  std::uint64_t counter;
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || in_vdso(address)) {
    counter = real_counter();
  } else {
    if (instruction == Instruction::rdtsc && note_counter_read(address)) return true;
    charge_clock_read(*slot);
    counter = counter_at(slot->now);
  }
  registers[REG_RAX] = greg_t(counter & 0xffffffff);
  registers[REG_RDX] = greg_t(counter >> 32);
  if (instruction == Instruction::rdtscp) registers[REG_RCX] = 0;
  registers[REG_RIP] += instruction == Instruction::rdtscp ? 3 : 2;
  return true;
}

}  // namespace rnicsim::clock
