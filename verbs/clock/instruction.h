// The program's instructions, decoded, and where in memory their operands are.
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

// Before the first look: a signal handler must not find anything half made.
void prepare_decoder();

// At `place`, where a breakpoint may stand for its first byte; nullptr: it is none. Good until the next is asked for.
const Instruction* instruction_at(std::uintptr_t place, std::uint8_t first_byte);

// A general register, as ucontext_t numbers it, and the bits of it that are meant.
struct GeneralRegister {
  int number;
  int bits;
};
// Nothing: none of them, or bits 8 to 15 of one.
std::optional<GeneralRegister> general_register(ZydisRegister name);

// Of an operand in memory, for a thread that is about to execute the instruction.
std::optional<std::uint64_t> address_of(const Instruction& instruction, const ZydisDecodedOperand& operand,
                                        const ucontext_t& context);

}  // namespace rnicsim::clock
