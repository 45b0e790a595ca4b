// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/software_step.h"

#include <setjmp.h>
#include <string.h>

#include <cstddef>
#include <cstdint>
#include <optional>

// One instruction with given flags in operand 1, which then holds the flags after the instruction. The 128 bytes below
// the stack pointer may be in use.
#define RNICSIM_WITH_FLAGS(instruction) \
  "lea -128(%%rsp), %%rsp; push %1; popf; " instruction "; pushf; pop %1; lea 128(%%rsp), %%rsp"

// Begin and end of this library's code, defined by the linker.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start, etext;

namespace rnicsim::clock {
namespace {

// Bits of EFLAGS.
constexpr greg_t kCarry = 1 << 0, kParity = 1 << 2, kAdjust = 1 << 4, kZero = 1 << 6, kSign = 1 << 7;
constexpr greg_t kOverflow = 1 << 11;
constexpr greg_t kArithmetic = kCarry | kParity | kAdjust | kZero | kSign | kOverflow;

using Word = std::uint64_t;

// Arithmetic of `bits` bits, and the flags that it sets (Intel SDM, vol. 1, 3.4.3.1).
class Arithmetic {
 public:
  explicit Arithmetic(int bits) : mask_(bits == 64 ? ~Word{0} : (Word{1} << bits) - 1), sign_(Word{1} << (bits - 1)) {}

  struct Result {
    Word value;
    greg_t flags;
  };
  Result add(Word a, Word b) const {
    const Word sum = (a + b) & mask_;
    return {sum, flag(kCarry, sum < (a & mask_)) | flag(kOverflow, (((a ^ sum) & (b ^ sum)) & sign_) != 0) |
                     flag(kAdjust, ((a ^ b ^ sum) & 0x10) != 0) | of(sum)};
  }
  Result subtract(Word a, Word b) const {
    const Word rest = (a - b) & mask_;
    return {rest, flag(kCarry, (a & mask_) < (b & mask_)) | flag(kOverflow, (((a ^ b) & (a ^ rest)) & sign_) != 0) |
                      flag(kAdjust, ((a ^ b ^ rest) & 0x10) != 0) | of(rest)};
  }
  Result logic(Word value) const { return {value & mask_, of(value & mask_)}; }

 private:
  static greg_t flag(greg_t which, bool set) { return set ? which : 0; }
  greg_t of(Word value) const {
    return flag(kZero, value == 0) | flag(kSign, (value & sign_) != 0) |
           flag(kParity, __builtin_parity(unsigned(value & 0xff)) == 0);
  }

  const Word mask_;
  const Word sign_;
};

// The conditions of jcc, setcc and cmovcc: the low four bits of the opcode.
bool holds(int condition, greg_t flags) {
  const auto has = [&](greg_t flag) { return (flags & flag) != 0; };
  const bool less = has(kSign) != has(kOverflow);
  const auto plain = [&] {
    switch (condition / 2) {
      case 0: return has(kOverflow);
      case 1: return has(kCarry);
      case 2: return has(kZero);
      case 3: return has(kCarry) || has(kZero);
      case 4: return has(kSign);
      case 5: return has(kParity);
      case 6: return less;
      default: return less || has(kZero);
    }
  };
  return plain() != (condition % 2 == 1);
}

class Step {
 public:
  Step(const Instruction& instruction, ucontext_t& context)
      : instruction_(instruction),
        context_(context),
        registers_(context.uc_mcontext.gregs),
        next_(Word(registers_[REG_RIP]) + instruction.decoded.length) {}

  // Not inlined, so that the frame to which a fault returns is that of step_in_software().
  [[gnu::noinline]] bool execute() {
    constexpr ZydisInstructionAttributes kOfOtherKinds =
        ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    constexpr int kNearReturn = 0xc3;
    const auto& decoded = instruction_.decoded;
    const int condition = decoded.opcode & 0xf;
    if ((decoded.attributes & kOfOtherKinds) != 0) return false;
    switch (decoded.meta.category) {
      case ZYDIS_CATEGORY_COND_BR: return is_jcc() && branch(condition);
      case ZYDIS_CATEGORY_CMOV: return move_if(condition);
      case ZYDIS_CATEGORY_SETCC: return put(0, holds(condition, flags()) ? 1 : 0) && done();
      default: break;
    }
    switch (decoded.mnemonic) {
      case ZYDIS_MNEMONIC_NOP:
      case ZYDIS_MNEMONIC_PAUSE:
      case ZYDIS_MNEMONIC_ENDBR64:
      case ZYDIS_MNEMONIC_LFENCE:
      case ZYDIS_MNEMONIC_MFENCE:
      case ZYDIS_MNEMONIC_SFENCE: return done();
      case ZYDIS_MNEMONIC_MOV:
      case ZYDIS_MNEMONIC_MOVZX: return move(get(1));
      case ZYDIS_MNEMONIC_MOVSX:
      case ZYDIS_MNEMONIC_MOVSXD: return move(get_signed(1));
      case ZYDIS_MNEMONIC_LEA: return move(address_of(instruction_, instruction_.operands[1], context_));
      case ZYDIS_MNEMONIC_ADD:
      case ZYDIS_MNEMONIC_SUB:
      case ZYDIS_MNEMONIC_AND:
      case ZYDIS_MNEMONIC_OR:
      case ZYDIS_MNEMONIC_XOR:
      case ZYDIS_MNEMONIC_CMP:
      case ZYDIS_MNEMONIC_TEST: return calculate(get_signed(1));
      case ZYDIS_MNEMONIC_INC:
      case ZYDIS_MNEMONIC_DEC: return count();
      case ZYDIS_MNEMONIC_NOT:
      case ZYDIS_MNEMONIC_NEG: return turn_over();
      case ZYDIS_MNEMONIC_SHL:
      case ZYDIS_MNEMONIC_SHR:
      case ZYDIS_MNEMONIC_SAR: return shift();
      case ZYDIS_MNEMONIC_IMUL: return multiply();
      case ZYDIS_MNEMONIC_CWDE: return widen(REG_RAX, REG_RAX, 16, 32);
      case ZYDIS_MNEMONIC_CDQE: return widen(REG_RAX, REG_RAX, 32, 64);
      case ZYDIS_MNEMONIC_PUSH: return push(get_signed(0)) && done();
      case ZYDIS_MNEMONIC_POP: return pop();
      case ZYDIS_MNEMONIC_JMP: return go_to(target());
      case ZYDIS_MNEMONIC_CALL: return call(target());
      case ZYDIS_MNEMONIC_RET: return decoded.opcode == kNearReturn && return_to_caller();
      default: return false;
    }
  }

 private:
  bool is_jcc() const {
    const auto& raw = instruction_.decoded;
    return raw.opcode_map == ZYDIS_OPCODE_MAP_0F ? raw.opcode / 16 == 8 : raw.opcode / 16 == 7;
  }
  const ZydisDecodedOperand& operand(std::size_t index) const { return instruction_.operands[index]; }
  greg_t flags() const { return registers_[REG_EFL]; }
  void set_flags(greg_t value, greg_t which = kArithmetic) {
    registers_[REG_EFL] = (registers_[REG_EFL] & ~which) | (value & which);
  }

  // --- Values of operands, not sign-extended.
  static std::optional<Word> load(Word address, int bits) {
    switch (bits) {
      case 8: return load<std::uint8_t>(address);
      case 16: return load<std::uint16_t>(address);
      case 32: return load<std::uint32_t>(address);
      case 64: return load<std::uint64_t>(address);
      default: return std::nullopt;
    }
  }
  // This library's code reads the memory: by the place of a fault the handler knows that a step has faulted.
  template <class Value>
  static Value load(Word address) {
    Value value;
    memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
    return value;
  }
  static Word cut(Word value, int bits) { return bits == 64 ? value : value & ((Word{1} << bits) - 1); }
  static Word extend(Word value, int bits) { return Word(std::int64_t(value << (64 - bits)) >> (64 - bits)); }
  std::optional<Word> get(std::size_t index) const {
    const ZydisDecodedOperand& from = operand(index);
    if (from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return from.imm.value.u;
    if (from.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      const auto address = address_of(instruction_, from, context_);
      return address ? load(*address, from.size) : std::nullopt;
    }
    const auto whole = from.type == ZYDIS_OPERAND_TYPE_REGISTER ? general_register(from.reg.value) : std::nullopt;
    return whole ? std::optional(cut(Word(registers_[whole->number]), whole->bits)) : std::nullopt;
  }
  std::optional<Word> get_signed(std::size_t index) const {
    const ZydisDecodedOperand& from = operand(index);
    const auto value = get(index);
    if (!value || from.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return value;  // decoded with its sign
    return extend(*value, from.size);
  }
  // Target of a branch.
  std::optional<Word> target() const {
    const ZydisDecodedOperand& to = operand(0);
    if (to.type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return to.size == 64 ? get(0) : std::nullopt;
    return to.imm.is_relative ? std::optional(next_ + to.imm.value.u) : std::nullopt;
  }

  // --- Effects. True: done.
  static bool store(Word address, Word value, int bits) {
    switch (bits) {
      case 8: return store<std::uint8_t>(address, value);
      case 16: return store<std::uint16_t>(address, value);
      case 32: return store<std::uint32_t>(address, value);
      case 64: return store<std::uint64_t>(address, value);
      default: return false;
    }
  }
  template <class Value>
  static bool store(Word address, Word word) {
    const auto value = Value(word);
    memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
    return true;
  }
  bool done() {
    registers_[REG_RIP] = greg_t(next_);
    return true;
  }
  bool put(std::size_t index, Word value) {
    const ZydisDecodedOperand& to = operand(index);
    if (to.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      const auto address = address_of(instruction_, to, context_);
      return address && store(*address, value, to.size);
    }
    const auto whole = to.type == ZYDIS_OPERAND_TYPE_REGISTER ? general_register(to.reg.value) : std::nullopt;
    if (!whole) return false;
    greg_t& place = registers_[whole->number];
    // A result of 32 bits clears the upper half of the register; a shorter one keeps the other bits.
    const Word kept = whole->bits < 32 ? Word(place) & ~cut(~Word{0}, whole->bits) : 0;
    place = greg_t(kept | cut(value, whole->bits));
    return true;
  }
  bool move(std::optional<Word> value) { return value && put(0, *value) && done(); }
  bool move_if(int condition) {
    const auto value = get(1), before = get(0);
    return value && before && move(holds(condition, flags()) ? value : before);
  }

  bool calculate(std::optional<Word> b) {
    const auto a = get(0);
    if (!a || !b) return false;
    const Arithmetic arithmetic(operand(0).size);
    const auto result = [&]() -> Arithmetic::Result {
      switch (instruction_.decoded.mnemonic) {
        case ZYDIS_MNEMONIC_ADD: return arithmetic.add(*a, *b);
        case ZYDIS_MNEMONIC_SUB:
        case ZYDIS_MNEMONIC_CMP: return arithmetic.subtract(*a, *b);
        case ZYDIS_MNEMONIC_OR: return arithmetic.logic(*a | *b);
        case ZYDIS_MNEMONIC_XOR: return arithmetic.logic(*a ^ *b);
        default: return arithmetic.logic(*a & *b);
      }
    }();
    const bool keeps = (operand(0).actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (keeps && !put(0, result.value)) return false;
    set_flags(result.flags);
    return done();
  }
  bool count() {
    const auto a = get(0);
    if (!a) return false;
    const Arithmetic arithmetic(operand(0).size);
    const bool up = instruction_.decoded.mnemonic == ZYDIS_MNEMONIC_INC;
    const auto result = up ? arithmetic.add(*a, 1) : arithmetic.subtract(*a, 1);
    if (!put(0, result.value)) return false;
    set_flags(result.flags, kArithmetic & ~kCarry);
    return done();
  }

  bool turn_over() {
    const auto a = get(0);
    if (!a) return false;
    if (instruction_.decoded.mnemonic == ZYDIS_MNEMONIC_NOT) return put(0, ~*a) && done();
    const auto result = Arithmetic(operand(0).size).subtract(0, *a);
    if (!put(0, result.value)) return false;
    set_flags(result.flags);
    return done();
  }

  // Executed by the processor, so that flags that its manual leaves undefined are set as it sets them.
  bool shift() {
    const auto a = get(0), by = get(1);
    if (!a || !by) return false;
    const auto result = [&](auto narrow) -> Arithmetic::Result {
      auto value = decltype(narrow)(*a);
      const auto count = std::uint8_t(*by);
      Word after = Word(flags() & kArithmetic);  // not the trap flag
      switch (instruction_.decoded.mnemonic) {
        case ZYDIS_MNEMONIC_SHL:
          asm(RNICSIM_WITH_FLAGS("shl %b2, %0") : "+r"(value), "+r"(after) : "c"(count) : "cc");
          break;
        case ZYDIS_MNEMONIC_SHR:
          asm(RNICSIM_WITH_FLAGS("shr %b2, %0") : "+r"(value), "+r"(after) : "c"(count) : "cc");
          break;
        default: asm(RNICSIM_WITH_FLAGS("sar %b2, %0") : "+r"(value), "+r"(after) : "c"(count) : "cc");
      }
      return {Word(value), greg_t(after)};
    };
    const auto shifted = with_width(operand(0).size, result);
    if (!put(0, shifted.value)) return false;
    set_flags(shifted.flags);
    return done();
  }
  // Forms with two and three operands. With one operand the product is in two registers.
  bool multiply() {
    const bool three = instruction_.decoded.operand_count_visible == 3;
    if (!three && instruction_.decoded.operand_count_visible != 2) return false;
    if (operand(0).size == 8) return false;
    const auto a = get_signed(three ? 1 : 0), b = get_signed(three ? 2 : 1);
    if (!a || !b) return false;
    const auto result = [&](auto narrow) -> Arithmetic::Result {
      auto value = decltype(narrow)(*a);
      const auto by = decltype(narrow)(*b);
      Word after = Word(flags() & kArithmetic);  // not the trap flag
      if constexpr (sizeof value == 1)
        return {0, 0};
      else
        asm(RNICSIM_WITH_FLAGS("imul %2, %0") : "+r"(value), "+r"(after) : "r"(by) : "cc");
      return {Word(value), greg_t(after)};
    };
    const auto product = with_width(operand(0).size, result);
    if (!put(0, product.value)) return false;
    set_flags(product.flags);
    return done();
  }
  template <class Operation>
  static Arithmetic::Result with_width(int bits, Operation operation) {
    switch (bits) {
      case 8: return operation(std::uint8_t{});
      case 16: return operation(std::uint16_t{});
      case 32: return operation(std::uint32_t{});
      default: return operation(std::uint64_t{});
    }
  }
  bool widen(int from, int to, int narrow, int wide) {
    registers_[to] = greg_t(cut(extend(cut(Word(registers_[from]), narrow), narrow), wide));
    return done();
  }

  bool go_to(std::optional<Word> place) {
    if (place) registers_[REG_RIP] = greg_t(*place);
    return place.has_value();
  }
  bool branch(int condition) {
    const auto place = target();
    return place && go_to(holds(condition, flags()) ? *place : next_);
  }
  bool push(std::optional<Word> value) {
    if (!value || instruction_.decoded.operand_width != 64) return false;
    const Word top = Word(registers_[REG_RSP]) - sizeof(Word);
    store(top, *value, 64);
    registers_[REG_RSP] = greg_t(top);
    return true;
  }
  bool pop() {
    const auto value = load(Word(registers_[REG_RSP]), 64);
    const auto to = general_register(operand(0).reg.value);
    if (operand(0).type != ZYDIS_OPERAND_TYPE_REGISTER || !to || to->bits != 64) return false;
    registers_[REG_RSP] += greg_t(sizeof(Word));
    registers_[to->number] = greg_t(*value);
    return done();
  }
  bool call(std::optional<Word> place) { return place && push(next_) && go_to(place); }
  bool return_to_caller() {
    const auto place = load(Word(registers_[REG_RSP]), 64);
    registers_[REG_RSP] += greg_t(sizeof(Word));
    return go_to(place);
  }

  const Instruction& instruction_;
  ucontext_t& context_;
  gregset_t& registers_;
  const Word next_;
};

thread_local sigjmp_buf before_step;
thread_local volatile bool stepping = false;

}  // namespace

bool step_in_software(const Instruction& instruction, ucontext_t& context) {
  if (sigsetjmp(before_step, 0) != 0) return false;
  stepping = true;
  const bool stepped = Step(instruction, context).execute();
  stepping = false;
  return stepped;
}

void leave_software_step(std::uintptr_t place) {
  const bool is_ours = place - reinterpret_cast<std::uintptr_t>(&__ehdr_start) <
                       reinterpret_cast<std::uintptr_t>(&etext) - reinterpret_cast<std::uintptr_t>(&__ehdr_start);
  if (!stepping || !is_ours) return;
  stepping = false;
  siglongjmp(before_step, 1);
}

}  // namespace rnicsim::clock
