// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/instruction.h"

#include <string.h>

#include <algorithm>

#include "sim/host/shim/text.h"

namespace rnicsim::clock {
namespace {

ZydisDecoder decoder;

// Instructions decoded before: the loops of a waiting program are few and short.
struct Known {
  std::uintptr_t place = 0;
  Instruction instruction;
};
std::array<Known, 256> known;

bool still_stands(const Known& one, std::uintptr_t place, std::uint8_t first_byte) {
  const auto* code = reinterpret_cast<const std::uint8_t*>(place);
  const auto& bytes = one.instruction.bytes;
  return one.place == place && bytes[0] == first_byte &&
         memcmp(&bytes[1], code + 1, one.instruction.decoded.length - 1u) == 0;
}

bool decode(Instruction& instruction, std::uintptr_t place, std::uint8_t first_byte, std::size_t most_bytes) {
  memcpy(instruction.bytes.data(), reinterpret_cast<const void*>(place), most_bytes);
  instruction.bytes[0] = first_byte;
  return ZYAN_SUCCESS(::ZydisDecoderDecodeFull(&decoder, instruction.bytes.data(), most_bytes, &instruction.decoded,
                                               instruction.operands));
}

std::uint64_t fs_base() {
  std::uint64_t base;
  asm("mov %%fs:0, %0" : "=r"(base));  // the thread control block points to itself
  return base;
}

// Value of a part of an address; nullopt: not a whole general register.
std::optional<std::uint64_t> part(ZydisRegister name, const Instruction& instruction, const ucontext_t& context) {
  if (name == ZYDIS_REGISTER_NONE) return 0;
  const auto place = std::uint64_t(context.uc_mcontext.gregs[REG_RIP]);
  if (name == ZYDIS_REGISTER_RIP) return place + instruction.decoded.length;
  const auto whole = general_register(name);
  if (!whole || whole->bits != 64) return std::nullopt;
  return std::uint64_t(context.uc_mcontext.gregs[whole->number]);
}

}  // namespace

void prepare_decoder() { ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

const Instruction* instruction_at(std::uintptr_t place, std::uint8_t first_byte) {
  Known& one = known[place % known.size()];
  if (still_stands(one, place, first_byte)) return &one.instruction;
  one.place = 0;
  // The memory behind the page may not exist.
  const std::size_t within_page = kPageBytes - place % kPageBytes;
  const std::size_t most_bytes = one.instruction.bytes.size();
  const bool decoded = decode(one.instruction, place, first_byte, std::min(within_page, most_bytes)) ||
                       (within_page < most_bytes && decode(one.instruction, place, first_byte, most_bytes));
  if (!decoded) return nullptr;
  one.place = place;
  return &one.instruction;
}

std::optional<GeneralRegister> general_register(ZydisRegister name) {
  static constexpr int kNumbers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                     REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  const auto among = [&](ZydisRegister first, ZydisRegister last) { return first <= name && name <= last; };
  if (among(ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_R15)) return GeneralRegister{kNumbers[name - ZYDIS_REGISTER_RAX], 64};
  if (among(ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_R15D)) return GeneralRegister{kNumbers[name - ZYDIS_REGISTER_EAX], 32};
  if (among(ZYDIS_REGISTER_AX, ZYDIS_REGISTER_R15W)) return GeneralRegister{kNumbers[name - ZYDIS_REGISTER_AX], 16};
  if (among(ZYDIS_REGISTER_AL, ZYDIS_REGISTER_BL)) return GeneralRegister{kNumbers[name - ZYDIS_REGISTER_AL], 8};
  // Registers ah to bh are between the two ranges.
  if (among(ZYDIS_REGISTER_SPL, ZYDIS_REGISTER_R15B))
    return GeneralRegister{kNumbers[4 + name - ZYDIS_REGISTER_SPL], 8};
  return std::nullopt;
}

std::optional<std::uint64_t> address_of(const Instruction& instruction, const ZydisDecodedOperand& operand,
                                        const ucontext_t& context) {
  const bool hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
  const bool written = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  const auto& memory = operand.mem;
  // push and call write below the stack pointer's present value.
  if (hidden && written && memory.base == ZYDIS_REGISTER_RSP)
    return std::uint64_t(context.uc_mcontext.gregs[REG_RSP]) - operand.size / 8;
  if (memory.segment == ZYDIS_REGISTER_GS || memory.type == ZYDIS_MEMOP_TYPE_VSIB) return std::nullopt;
  const auto base = part(memory.base, instruction, context);
  const auto index = part(memory.index, instruction, context);
  if (!base || !index) return std::nullopt;
  const std::uint64_t address = *base + *index * memory.scale + std::uint64_t(memory.disp.value);
  return memory.segment == ZYDIS_REGISTER_FS ? address + fs_base() : address;
}

}  // namespace rnicsim::clock
