#include "verbs/clock/written_memory.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <optional>

namespace rnicsim::clock {
namespace {

ZydisDecoder decoder;

std::uint64_t fs_base() {
  std::uint64_t base;
  asm("mov %%fs:0, %0" : "=r"(base));  // the thread control block points to itself
  return base;
}

void fill(ZydisRegisterContext& registers, const ucontext_t& context) {
  static constexpr struct {
    ZydisRegister to;
    int from;
  } kMap[] = {{ZYDIS_REGISTER_RAX, REG_RAX}, {ZYDIS_REGISTER_RBX, REG_RBX}, {ZYDIS_REGISTER_RCX, REG_RCX},
              {ZYDIS_REGISTER_RDX, REG_RDX}, {ZYDIS_REGISTER_RSI, REG_RSI}, {ZYDIS_REGISTER_RDI, REG_RDI},
              {ZYDIS_REGISTER_RBP, REG_RBP}, {ZYDIS_REGISTER_RSP, REG_RSP}, {ZYDIS_REGISTER_R8, REG_R8},
              {ZYDIS_REGISTER_R9, REG_R9},   {ZYDIS_REGISTER_R10, REG_R10}, {ZYDIS_REGISTER_R11, REG_R11},
              {ZYDIS_REGISTER_R12, REG_R12}, {ZYDIS_REGISTER_R13, REG_R13}, {ZYDIS_REGISTER_R14, REG_R14},
              {ZYDIS_REGISTER_R15, REG_R15}, {ZYDIS_REGISTER_RIP, REG_RIP}};
  for (const auto& entry : kMap) registers.values[entry.to] = std::uint64_t(context.uc_mcontext.gregs[entry.from]);
}

std::optional<std::uint64_t> address_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand& operand,
                                        const ucontext_t& context) {
  const bool hidden = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
  // What push and call write lies below the stack pointer that they find.
  if (hidden && operand.mem.base == ZYDIS_REGISTER_RSP)
    return std::uint64_t(context.uc_mcontext.gregs[REG_RSP]) - operand.size / 8;
  if (operand.mem.segment == ZYDIS_REGISTER_GS || operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) return std::nullopt;
  thread_local ZydisRegisterContext registers;
  fill(registers, context);
  std::uint64_t address = 0;
  const auto at = std::uint64_t(context.uc_mcontext.gregs[REG_RIP]);
  if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(&instruction, &operand, at, &registers, &address))) return std::nullopt;
  return operand.mem.segment == ZYDIS_REGISTER_FS ? address + fs_base() : address;
}

}  // namespace

void prepare_decoder() { ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64); }

bool WrittenMemory::note(const ucontext_t& context) {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  const auto* code = reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, ZYDIS_MAX_INSTRUCTION_LENGTH, &instruction,
                                           operands)))
    return false;
  if (instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL) return false;
  for (std::size_t i = 0; i < instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    const auto address = address_of(instruction, operand, context);
    if (!address || !remember(*address, operand.size / 8)) return false;
  }
  return true;
}

bool WrittenMemory::remember(std::uint64_t address, std::size_t bytes) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  for (std::uint64_t word = address / kWord * kWord; word < address + bytes; word += kWord) {
    const auto* at = reinterpret_cast<const std::uint64_t*>(word);
    if (std::any_of(words_.begin(), words_.begin() + std::ptrdiff_t(count_),
                    [&](const Word& known) { return known.address == at; }))
      continue;
    if (count_ == words_.size()) return false;
    words_[count_++] = {at, *at};
  }
  return true;
}

bool WrittenMemory::is_as_before() const {
  return std::all_of(words_.begin(), words_.begin() + std::ptrdiff_t(count_),
                     [](const Word& word) { return *word.address == word.value; });
}

}  // namespace rnicsim::clock
