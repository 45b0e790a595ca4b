// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/written_memory.h"

#include <algorithm>

namespace rnicsim::clock {

bool WrittenMemory::note(const Instruction& instruction, const ucontext_t& context) {
  if (instruction.decoded.mnemonic == ZYDIS_MNEMONIC_SYSCALL) return false;
  for (std::size_t i = 0; i < instruction.decoded.operand_count; ++i) {
    const ZydisDecodedOperand& operand = instruction.operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    const auto address = address_of(instruction, operand, context);
    if (!address || !remember(*address, operand.size / 8)) return false;
  }
  return true;
}

bool WrittenMemory::remember(std::uint64_t address, std::size_t bytes) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  for (std::uint64_t word = address / kWord * kWord; word < address + bytes; word += kWord) {
    auto* at = reinterpret_cast<std::uint64_t*>(word);
    if (std::any_of(words_.begin(), words_.begin() + std::ptrdiff_t(count_),
                    [&](const Word& known) { return known.address == at; }))
      continue;
    if (count_ == words_.size()) return false;
    words_[count_++] = {at, *at};
  }
  return true;
}

std::size_t WrittenMemory::save(std::array<std::uint64_t, kMostWords>& values) const {
  std::transform(words_.begin(), words_.begin() + std::ptrdiff_t(count_), values.begin(),
                 [](const Word& word) { return *word.address; });
  return count_;
}

void WrittenMemory::restore(const std::array<std::uint64_t, kMostWords>& values, std::size_t saved) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const std::uint64_t value = i < saved ? values[i] : words_[i].value;
    if (*words_[i].address != value) *words_[i].address = value;
  }
}

bool WrittenMemory::is_as_before() const {
  return std::all_of(words_.begin(), words_.begin() + std::ptrdiff_t(count_),
                     [](const Word& word) { return *word.address == word.value; });
}

}  // namespace rnicsim::clock
