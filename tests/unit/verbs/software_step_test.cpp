// SPDX-License-Identifier: Apache-2.0
// Instructions executed in software, compared with the processor: the same registers, flags and memory after each
// instruction of a list, from many random states.
#include "sim/host/shim/spin/software_step.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

// Each instruction may access 64 bytes on both sides of the addresses in rsi, rdi, rbp and rsp.
asm(R"(
.pushsection .text
.globl stepped_begin, stepped_end
stepped_begin:
  movzbl (%rsi), %eax
  movzwl 2(%rsi), %r9d
  movsbl (%rsi), %ecx
  movsbq 1(%rsi), %r10
  movswq (%rsi), %rdx
  movslq 4(%rsi), %rax
  movslq %ebx, %r15
  movzbl %bl, %r8d
  movb %al, (%rsi)
  movw %r9w, 6(%rdi)
  movl %r11d, 8(%rsi)
  movq %r12, -8(%rbp)
  movq 16(%rsi), %r13
  movl (%rsi,%r14,4), %edx
  movb $0x7f, 3(%rdi)
  movl $-5, (%rdi)
  movq $-5, (%rdi)
  movabs $0x123456789abcdef0, %r8
  mov %fs:0, %rax
  movl %eax, %ebx
  movw %cx, %dx
  movb %cl, %sil
  movb %r9b, %dil
  lea 8(%rsi,%r14,8), %r9
  lea (%rdi), %edx
  lea stepped_end(%rip), %rax
  cmpb %sil, %al
  cmpb $0x80, (%rsi)
  cmpw $0x1234, 2(%rsi)
  cmpl $3, 4(%rsi)
  cmpl %eax, %edx
  cmpq (%rsi), %rbx
  cmpq $-1, 8(%rsi)
  cmpq %r9, %r10
  testb $1, (%rsi)
  testb %al, %al
  testw %cx, %dx
  testl %eax, %eax
  testq $-16, %rbx
  testq %r12, (%rsi)
  addb $0x7f, %bl
  addl $1, (%rsi)
  addq $8, %rax
  addq %r10, %r11
  addw (%rsi), %dx
  subl $128, %ecx
  subq $-128, %r12
  subq (%rsi), %r9
  subb %al, (%rdi)
  andl $0xff, %eax
  andq $-64, %r10
  andb %cl, 1(%rsi)
  orl %ecx, %edx
  orq $1, (%rdi)
  xorl %eax, %eax
  xorq %r9, %rbx
  xorw $0x55, %cx
  incl %eax
  incq (%rsi)
  incb %bl
  decl 4(%rsi)
  decq %r14
  decw %dx
  cmovel %eax, %ebx
  cmovneq (%rsi), %r9
  cmovlw %cx, %dx
  cmovgl %ecx, %edx
  cmovbq %r9, %r10
  sete %al
  setg (%rsi)
  setbe %r8b
  seto %cl
  shll $3, %eax
  shlq %cl, %r9
  shrl $31, %edx
  shrq $1, (%rsi)
  shrb %cl, %bl
  sarq $63, %r10
  sarw $2, 2(%rsi)
  sarl %cl, %eax
  imull %ecx, %eax
  imulq (%rsi), %r9
  imulq $0x66666667, %rdx, %rcx
  imulw $-3, %cx, %dx
  negl %eax
  negq (%rsi)
  notq %r9
  notb (%rdi)
  cwtl
  cltq
  pushq %rbx
  pushq %rsp
  pushq $-7
  pushq 8(%rsi)
  popq %rcx
  popq %rsp
  jo stepped_end
  jno stepped_end
  jb stepped_end
  jae stepped_end
  je stepped_end
  jne stepped_end
  jbe stepped_end
  ja stepped_end
  js stepped_begin
  jns stepped_begin
  jp stepped_begin
  jnp stepped_begin
  jl stepped_begin
  jge stepped_begin
  jle stepped_begin
  jg stepped_begin
  .byte 0x74, 0x10
  jmp stepped_begin
  .byte 0xeb, 0x10
  jmp *24(%rsi)
  jmp *%rdi
  call stepped_begin
  call *24(%rsi)
  call *%rdi
  ret
  nop
  nopw 0(%rax,%rax,1)
  pause
  lfence
  mfence
  sfence
  endbr64
stepped_end:
.popsection
)");
extern "C" const std::uint8_t stepped_begin[], stepped_end[];

namespace rnicsim::clock {
namespace {

constexpr greg_t kTrap = 1 << 8, kResume = 1 << 16, kAdjust = 1 << 4;
constexpr greg_t kArithmetic = 0x8d5;

using Memory = std::array<std::uint8_t, 4096>;
alignas(64) Memory memory;

// Runs a step on the processor: the handler of one signal loads the state, the handler of another reads it after the
// step.
ucontext_t given, stepped, before;
void put_in(int, siginfo_t*, void* context) {
  auto& now = *static_cast<ucontext_t*>(context);
  before = now;
  memcpy(now.uc_mcontext.gregs, given.uc_mcontext.gregs, sizeof(greg_t) * (REG_RIP + 1));
  now.uc_mcontext.gregs[REG_EFL] = given.uc_mcontext.gregs[REG_EFL] | kTrap;
}
void take_out(int, siginfo_t*, void* context) {
  auto& now = *static_cast<ucontext_t*>(context);
  stepped = now;
  memcpy(now.uc_mcontext.gregs, before.uc_mcontext.gregs, sizeof(gregset_t));
}

void on_stack_of_its_own(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(signal, &action, nullptr);
}

class SoftwareStep : public testing::Test {
 protected:
  void SetUp() override {
    const stack_t own{stack_.data(), 0, stack_.size()};
    ::sigaltstack(&own, nullptr);
    on_stack_of_its_own(SIGUSR1, put_in);
    on_stack_of_its_own(SIGTRAP, take_out);
    prepare_decoder();
  }
  void TearDown() override {
    const stack_t none{nullptr, SS_DISABLE, 0};
    ::sigaltstack(&none, nullptr);
  }

  // Small numbers are as likely as large ones, for carries, signs and zeros.
  std::uint64_t number() {
    const std::uint64_t value = random_();
    return value >> (random_() % 64) ^ (random_() % 4 == 0 ? ~0ull : 0);
  }
  ucontext_t state(std::uintptr_t place) {
    ucontext_t state{};
    greg_t* registers = state.uc_mcontext.gregs;
    for (int i = 0; i <= REG_RCX; ++i) registers[i] = greg_t(number());
    for (const int pointer : {REG_RSI, REG_RDI, REG_RBP, REG_RSP})
      registers[pointer] = greg_t(reinterpret_cast<std::uintptr_t>(&memory[1024]) + random_() % 128 * 8);
    registers[REG_R14] = greg_t(random_() % 8);
    registers[REG_RIP] = greg_t(place);
    registers[REG_EFL] = 0x202 | (greg_t(random_()) & kArithmetic);
    return state;
  }
  // Every word that an instruction may read as a jump target is a valid address.
  void fill_memory() {
    for (std::size_t at = 0; at < memory.size(); at += 8) {
      const std::uint64_t word = random_() % 2 == 0 ? number() & 0x7fff'ffff'ffff : number() % 3;
      memcpy(&memory[at], &word, sizeof word);
    }
  }
  static bool leaves_adjust_open(ZydisMnemonic mnemonic) {
    return mnemonic == ZYDIS_MNEMONIC_AND || mnemonic == ZYDIS_MNEMONIC_OR || mnemonic == ZYDIS_MNEMONIC_XOR ||
           mnemonic == ZYDIS_MNEMONIC_TEST;
  }

  std::vector<std::byte> stack_ = std::vector<std::byte>(1 << 16);
  std::mt19937_64 random_{7};
};

TEST_F(SoftwareStep, DoesWhatTheProcessorDoes) {
  int instructions = 0;
  for (auto place = reinterpret_cast<std::uintptr_t>(stepped_begin);
       place < reinterpret_cast<std::uintptr_t>(stepped_end);) {
    const Instruction* instruction = instruction_at(place, *reinterpret_cast<const std::uint8_t*>(place));
    ASSERT_NE(instruction, nullptr);
    const greg_t open = leaves_adjust_open(instruction->decoded.mnemonic) ? kAdjust : 0;
    for (int i = 0; i < 100; ++i) {
      fill_memory();
      const Memory at_first = memory;
      given = state(place);
      ASSERT_EQ(::raise(SIGUSR1), 0);
      const Memory by_processor = memory;
      memory = at_first;

      ucontext_t in_software = given;
      ASSERT_TRUE(step_in_software(*instruction, in_software)) << "instruction " << instructions;
      ASSERT_EQ(memcmp(in_software.uc_mcontext.gregs, stepped.uc_mcontext.gregs, sizeof(greg_t) * (REG_RIP + 1)), 0)
          << "instruction " << instructions << ", registers";
      const greg_t flags = stepped.uc_mcontext.gregs[REG_EFL] & ~(kTrap | kResume);
      ASSERT_EQ(in_software.uc_mcontext.gregs[REG_EFL] & ~open, flags & ~open) << "instruction " << instructions;
      ASSERT_EQ(memory, by_processor) << "instruction " << instructions << ", memory";
    }
    place += instruction->decoded.length;
    ++instructions;
  }
  EXPECT_EQ(instructions, 128);
}

// The processor must execute these itself.
TEST_F(SoftwareStep, LeavesOtherKindsAlone) {
  static constexpr std::array<std::array<std::uint8_t, 16>, 8> kOthers{{
      {0x88, 0xe0},              // mov %ah, %al
      {0xf0, 0xff, 0x06},        // lock incl (%rsi)
      {0x87, 0x06},              // xchg %eax, (%rsi)
      {0x0f, 0x31},              // rdtsc
      {0x0f, 0x05},              // syscall
      {0x65, 0x8b, 0x06},        // mov %gs:(%rsi), %eax
      {0xf3, 0x48, 0xa5},        // rep movsq
      {0x66, 0x0f, 0x6f, 0x06},  // movdqa (%rsi), %xmm0
  }};
  for (const auto& code : kOthers) {
    const auto place = reinterpret_cast<std::uintptr_t>(code.data());
    const Instruction* instruction = instruction_at(place, code[0]);
    ASSERT_NE(instruction, nullptr);
    ucontext_t context = state(place);
    const ucontext_t at_first = context;
    EXPECT_FALSE(step_in_software(*instruction, context)) << int(code[0]);
    EXPECT_EQ(memcmp(&context, &at_first, sizeof context), 0) << int(code[0]);
  }
}

TEST_F(SoftwareStep, KnowsWhatABreakpointStandsFor) {
  static std::array<std::uint8_t, 16> code{0x8b, 0x06};  // mov (%rsi), %eax
  const auto place = reinterpret_cast<std::uintptr_t>(code.data());
  code[0] = 0xcc;
  EXPECT_EQ(instruction_at(place, 0x8b)->decoded.mnemonic, ZYDIS_MNEMONIC_MOV);
  EXPECT_EQ(instruction_at(place, 0xcc)->decoded.mnemonic, ZYDIS_MNEMONIC_INT3);
  code[1] = 0x46;  // mov 0(%rsi), %eax: other code at the same place
  EXPECT_EQ(instruction_at(place, 0x8b)->decoded.length, 3);
}

// A faulting step is abandoned: the thread executes it and gets the fault itself.
TEST_F(SoftwareStep, GivesUpWhereItFaults) {
  on_stack_of_its_own(SIGSEGV, [](int, siginfo_t*, void* context) {
    leave_software_step(0);  // belongs to no step
    leave_software_step(std::uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]));
    _exit(1);
  });
  static constexpr std::array<std::uint8_t, 16> kCode{0x01, 0x06};  // add %eax, (%rsi)
  const auto place = reinterpret_cast<std::uintptr_t>(kCode.data());
  ucontext_t context = state(place);
  context.uc_mcontext.gregs[REG_RSI] = 8;
  const ucontext_t at_first = context;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(step_in_software(*instruction_at(place, kCode[0]), context));
    EXPECT_EQ(memcmp(&context, &at_first, sizeof context), 0);
  }
  ::signal(SIGSEGV, SIG_DFL);
}

}  // namespace
}  // namespace rnicsim::clock
