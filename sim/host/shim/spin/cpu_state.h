// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace rnicsim::clock {

// Bits of EFLAGS. Trap flag: SIGTRAP after the next instruction. Resume flag: no second stop at the next instruction.
inline constexpr greg_t kTrapFlag = 1 << 8;
inline constexpr greg_t kResumeFlag = 1 << 16;

// The processor's state that the effect of the next instructions depends on; memory is not included.
struct CpuState {
  greg_t registers[REG_RIP + 1];
  greg_t flags;
  std::uint8_t x87[128];
  std::uint8_t vectors[256];       // xmm0..15
  std::uint8_t upper_halves[256];  // ymm0..15

  explicit CpuState(const ucontext_t& context) {
    memset(static_cast<void*>(this), 0, sizeof *this);
    memcpy(registers, context.uc_mcontext.gregs, sizeof registers);
    flags = context.uc_mcontext.gregs[REG_EFL] & ~(kTrapFlag | kResumeFlag);
    const auto* saved = reinterpret_cast<const std::byte*>(context.uc_mcontext.fpregs);
    if (saved == nullptr) return;
    memcpy(x87, context.uc_mcontext.fpregs->_st, sizeof x87);
    memcpy(vectors, context.uc_mcontext.fpregs->_xmm, sizeof vectors);
    if (has_upper_halves(saved)) memcpy(upper_halves, saved + kUpperHalves, sizeof upper_halves);
  }
  CpuState() = default;
  bool operator==(const CpuState& other) const { return memcmp(this, &other, sizeof *this) == 0; }
  bool has_vectors_of(const CpuState& other) const {
    return memcmp(x87, other.x87, sizeof x87) == 0 && memcmp(vectors, other.vectors, sizeof vectors) == 0 &&
           memcmp(upper_halves, other.upper_halves, sizeof upper_halves) == 0;
  }
  // Writes the general registers and the flags; vector registers, trap flag and resume flag of `context` stay.
  void put_into(ucontext_t& context) const {
    greg_t& its_flags = context.uc_mcontext.gregs[REG_EFL];
    memcpy(context.uc_mcontext.gregs, registers, sizeof registers);
    its_flags = flags | (its_flags & (kTrapFlag | kResumeFlag));
  }
  // An order of states that does not depend on when the thread was interrupted.
  bool operator<(const CpuState& other) const {
    if (registers[REG_RIP] != other.registers[REG_RIP]) return registers[REG_RIP] < other.registers[REG_RIP];
    return memcmp(this, &other, sizeof *this) < 0;
  }

 private:
  // Layout of the XSAVE area in a signal frame (asm/sigcontext.h).
  static constexpr std::size_t kMagic = 464, kComponents = 512, kUpperHalves = 576;
  static constexpr std::uint32_t kHasXsave = 0x46505853;
  static constexpr std::uint64_t kUpperHalvesComponent = 1 << 2;
  static bool has_upper_halves(const std::byte* saved) {
    std::uint32_t magic;
    std::uint64_t components;
    memcpy(&magic, saved + kMagic, sizeof magic);
    memcpy(&components, saved + kComponents, sizeof components);
    return magic == kHasXsave && (components & kUpperHalvesComponent) != 0;
  }
};

}  // namespace rnicsim::clock
