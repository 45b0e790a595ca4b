// SPDX-License-Identifier: Apache-2.0
// Decodes the program's instructions and finds the addresses of their memory operands.
#pragma once

#include <Zydis/Zydis.h>
#include <ucontext.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rnicsim::clock {

struct Instruction {
  std::array<std::uint8_t, ZYDIS_MAX_INSTRUCTION_LENGTH> bytes;
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

// Call before signal handlers use the decoder: they must not find it half initialized.
void prepare_decoder();

// The instruction at `place`, with its true first byte, because a breakpoint may stand there. nullptr: no valid
// instruction. The pointer is valid until the next call.
const Instruction* instruction_at(std::uintptr_t place, std::uint8_t first_byte);

// A general register by its index in ucontext_t, and how many of its low bits the operand means.
struct GeneralRegister {
  int number;
  int bits;
};
// nullopt: not a general register, or bits 8 to 15 of one (ah, bh, ch, dh).
std::optional<GeneralRegister> general_register(ZydisRegister name);

// Address of a memory operand, for a thread that is about to execute the instruction. nullopt: unknown.
std::optional<std::uint64_t> address_of(const Instruction& instruction, const ZydisDecodedOperand& operand,
                                        const ucontext_t& context);

}  // namespace rnicsim::clock
