// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/counter/tsc.h"

#include <link.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <x86intrin.h>

#include <cstdint>

#include "sim/host/shim/counter/counter_sites.h"
#include "sim/host/shim/counter/counter_trap.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

std::uint64_t real_counter() {
  untrap_tsc();
  const std::uint64_t counter = __rdtsc();
  trap_tsc();
  return counter;
}

}  // namespace

void trap_tsc() {
  // valgrind reads the counter itself, and would die of the fault.
  if (tool() != Tool::valgrind) trap_counter();
}
void untrap_tsc() { untrap_counter(); }

void hide_vdso(char** environment) {
  while (*environment != nullptr) ++environment;
  for (auto* entry = reinterpret_cast<ElfW(auxv_t)*>(environment + 1); entry->a_type != AT_NULL; ++entry) {
    if (entry->a_type != AT_SYSINFO_EHDR) continue;
    entry->a_type = AT_IGNORE;
    leave_vdso(entry->a_un.a_val);
  }
}

bool emulate_tsc(void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto address = std::uintptr_t(registers[REG_RIP]);
  const CounterRead instruction = counter_read_at(address);
  if (instruction == CounterRead::none) return false;

  std::uint64_t counter;
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || in_vdso(address)) {
    counter = real_counter();
  } else {
    if (instruction == CounterRead::rdtsc && note_counter_read(address)) return true;
    charge_clock_read(*slot);
    counter = counter_at(slot->now);
  }
  registers[REG_RAX] = greg_t(counter & 0xffffffff);
  registers[REG_RDX] = greg_t(counter >> 32);
  if (instruction == CounterRead::rdtscp) registers[REG_RCX] = 0;
  registers[REG_RIP] += instruction == CounterRead::rdtscp ? 3 : 2;
  return true;
}

}  // namespace rnicsim::clock
