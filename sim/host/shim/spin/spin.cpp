// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/spin/spin.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "sim/host/kernel/processes/threads.h"
#include "sim/host/shim/counter/counter_sites.h"
#include "sim/host/shim/mappings.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/shim/signal_stack.h"
#include "sim/host/shim/spin/cpu_state.h"
#include "sim/host/shim/spin/instruction.h"
#include "sim/host/shim/spin/loop_marks.h"
#include "sim/host/shim/spin/software_step.h"
#include "sim/host/shim/spin/timed_look.h"
#include "sim/host/shim/spin/timed_loop.h"
#include "sim/host/shim/spin/written_memory.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

// A step that traps costs microseconds. Most waits are loops of a few instructions; each further check within one turn
// follows the thread twice as far. A thread that the cheap checks do not prove to wait probably computes: after an
// expensive check it is left alone for kRestPerLook times the time of that check.
constexpr int kFirstSteps = 40;
constexpr int kCheapSteps = 640;
constexpr int kMostSteps = 4096;
constexpr std::int64_t kRestPerLook = 10;
constexpr std::int64_t kNever = -1;

// Brent's algorithm finds a cycle: compare with a state kept at the start and at step 8, 16, 32 and so on. Waiting
// loops seldom have more than 8 instructions, and a checked thread is seldom before its loop.
constexpr int kFirstKept = 8;
struct Look {
  bool active = false;
  bool following = false;  // in a handler of this library: another check would check this one
  bool woken = false;      // another thread may have stored something: one round tells whether it matters here
  int steps = 0;
  int most_steps = kFirstSteps;
  int proof_steps = 0;  // steps of the last check with a proof: the thread is likely to come round to that loop again
  int next_kept = kFirstKept;
  int kept_at = 0;             // step of `kept`
  int period = 0;              // steps of the loop
  std::uint64_t activity = 0;  // activity() when the check began
  std::int64_t begun_ns = 0;   // in the thread's CPU time; kNever: the check will be short
  std::int64_t rests_until_ns = 0;
  CpuState kept;
  WrittenMemory written;  // since `kept`
  // The place in its loop where a thread waits decides what it has already read. So the thread does not wait where the
  // check found it, but where its state is least.
  CpuState least;              // since `kept`
  bool proved = false;         // the loop is proved, and the thread goes on to `least`
  TimedLoop* loop = nullptr;   // loop of looks that take time (timed_loop.h); such a thread does not spin
  std::uintptr_t site = 0;     // return address of the look at which that loop began
  int clock_reads_left = 0;    // clock reads still to be followed; 0: another kind of check
  int interruptions = 0;       // number of further checks since the last step
  LoopMark* mark = nullptr;    // where the check began, or where the thread waits
  LoopMark* passed = nullptr;  // the thread executes this marked instruction; the mark is set after that step

  // False for most steps: the state can be neither the kept one nor the least, and is not to be kept.
  bool is_of_interest(const ucontext_t& context) const {
    const greg_t place = context.uc_mcontext.gregs[REG_RIP];
    return place == kept.registers[REG_RIP] || place <= least.registers[REG_RIP] || steps == next_kept;
  }
};
thread_local Look look;

// Under a tool there is no proof: if many checks in a row find the thread at the same place, it probably waits.
struct Guess {
  greg_t stack = 0;
  greg_t place = 0;
  int times = 0;
};
thread_local Guess guess;

void guess_from(const ucontext_t& context, abi::ThreadSlot& slot) {
  constexpr greg_t kSmallLoop = 64;
  constexpr int kEnoughLooks = 20;
  const greg_t place = context.uc_mcontext.gregs[REG_RIP];
  const greg_t stack = context.uc_mcontext.gregs[REG_RSP];
  const bool same = stack == guess.stack && place - guess.place < kSmallLoop && guess.place - place < kSmallLoop;
  guess = {stack, place, same ? guess.times + 1 : 0};
  if (guess.times < kEnoughLooks) return;
  guess = {};
  call(slot, abi::Call::spin, {std::uint64_t(abi::SpinProof::guessed), 0});
}

std::int64_t cpu_time_ns() {
  timespec cpu{};
  checked_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &cpu);
  return cpu.tv_sec * 1'000'000'000 + cpu.tv_nsec;
}

// Steps are expensive. False: the thread has made a call since the last check, or has hardly used a processor.
bool has_run_since_last_look() {
  constexpr std::int64_t kLeastNs = 4'000;
  thread_local std::uint64_t seen_activity = 0;
  thread_local std::int64_t seen_ns = 0;
  const auto ns = cpu_time_ns();
  if (seen_activity == activity()) return ns - seen_ns >= kLeastNs && ns >= look.rests_until_ns;
  seen_activity = activity();
  seen_ns = ns;
  look.rests_until_ns = 0;
  return false;
}

std::uintptr_t place_of(const ucontext_t& context) { return std::uintptr_t(context.uc_mcontext.gregs[REG_RIP]); }

bool is_stepped(const ucontext_t& context) { return (context.uc_mcontext.gregs[REG_EFL] & kTrapFlag) != 0; }
void end_steps(ucontext_t& context) {
  if (look.passed == nullptr) context.uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

// The next instruction, also where a breakpoint stands in its place.
const Instruction* next_of(const ucontext_t& context) {
  const std::uintptr_t place = place_of(context);
  return instruction_at(place, LoopMark::byte_at(place));
}

void pass(LoopMark& mark, ucontext_t& context) {
  mark.clear();
  look.passed = &mark;
  context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

void stop(ucontext_t& context) {
  look.active = false;
  if (look.steps > kCheapSteps && look.begun_ns != kNever) {
    const auto ns = cpu_time_ns();
    look.rests_until_ns = ns + kRestPerLook * (ns - look.begun_ns);
  }
  end_steps(context);
}

// Ends a check without a proof.
void give_up(ucontext_t& context) {
  if (look.clock_reads_left != 0) thread_looks_at = LooksAt::others;
  if (look.loop != nullptr && !look.woken) note_proof(look.site, 0, 0);
  if (look.mark != nullptr && !look.woken) look.mark->miss();
  stop(context);
}

void begin(int next_kept, int most_steps) {
  look.active = true;
  look.loop = nullptr;
  look.clock_reads_left = look.interruptions = 0;
  look.proved = false;
  look.steps = look.kept_at = 0;
  look.next_kept = next_kept;
  look.most_steps = most_steps;
  look.activity = activity();
  look.begun_ns = most_steps > kCheapSteps ? cpu_time_ns() : kNever;
  look.written.clear();
}

// nullptr: no mark is possible, for example where a jump of counter_sites.h covers the place.
LoopMark* mark_here(const ucontext_t& context, int period) {
  const std::uintptr_t place = place_of(context);
  return is_behind_counter_read(place) ? nullptr : LoopMark::make(place, period);
}

void begin_at(LoopMark& mark, const ucontext_t& context) {
  look.woken = false;
  look.mark = &mark;
  look.kept = look.least = CpuState(context);
  begin(mark.period(), 3 * mark.period());
}

// The loop is proved: waits until there may be something new. If only another thread may have stored it, the loop is
// followed for one more round: no store is missed, and two spinning threads do not keep each other awake.
void park(abi::ThreadSlot& slot, ucontext_t& context) {
  const auto proof = look.woken ? abi::SpinProof::unmoved : abi::SpinProof::proved;
  if (!look.woken) look.proof_steps = look.steps;
  // Copied: after this check has ended, another one may begin in a handler that the call raises.
  const int period = look.period;
  const CpuState least = look.least;
  const bool is_marked = look.mark != nullptr && look.mark->place() == place_of(context);
  LoopMark* const mark = is_marked ? look.mark : mark_here(context, period);
  if (mark != nullptr) {
    mark->hit();
    mark->set();
  }
  stop(context);
  call_without_signals(slot, abi::Call::spin, {std::uint64_t(proof), 0});
  look.following = false;
  raise_signals(slot);
  look.following = true;
  if (slot.value != 0) {
    look.woken = true;
    look.mark = mark;
    look.kept = look.least = least;
    begin(kMostSteps + 1, period);
  } else if (mark != nullptr) {
    begin_at(*mark, context);
  }
}

// Evaluates the state after a step.
void validate(abi::ThreadSlot& slot, ucontext_t& context, const CpuState& state) {
  if (!look.proved && state == look.kept && look.written.is_as_before()) {
    look.proved = true;
    look.period = look.steps - look.kept_at;
    look.most_steps = look.steps + look.period;
    // Without a written word only registers tell the loop's places apart: goes to the least state at once.
    if (look.written.empty() && look.least.has_vectors_of(state)) look.least.put_into(context);
  }
  if (look.proved) {
    if (CpuState(context) == look.least) park(slot, context);
    return;
  }
  if (state < look.least) look.least = state;
  if (look.steps == look.next_kept) {
    look.kept = look.least = state;
    look.kept_at = look.steps;
    look.next_kept *= 2;
    look.written.clear();
  }
}

// --- Loops of looks (timed_look.h).

constexpr int kMostLoopSteps = 8'000;

void begin_loop(TimedLoop& loop) {
  begin(kMostLoopSteps + 1, kMostLoopSteps);
  look.loop = &loop;
  // A woken thread that leaves its loop may store something before it waits in another one: only a further round of the
  // same loop proves that the thread stored nothing.
  if (look.woken)
    loop.begin_again();
  else
    loop.begin(most_looks_from(look.site));
}

// Called after a whole round of the loop without progress: waits until one of the loop's polls may find a change. If
// only a store of another thread can be this change, the loop is followed for one more round.
void park_in_loop(abi::ThreadSlot& slot, ucontext_t& context) {
  TimedLoop& loop = *look.loop;
  const auto round = loop.describe(slot);
  const auto proof = look.woken ? abi::SpinProof::unmoved : abi::SpinProof::proved;
  const int error =
      call_without_signals(slot, abi::Call::spin,
                           {std::uint64_t(proof), round.period, round.looks, round.pages, round.changes, round.began});
  if (!look.woken) note_proof(look.site, error == 0 ? look.steps : 0, loop.looked());
  if (error != 0) {
    stop(context);
    look.following = false;
    raise_signals(slot);
    look.following = true;
    return;
  }
  loop.continue_at(slot.argument[2], look.written, context);
  if (slot.value == 0) return stop(context);
  look.woken = true;
  begin_loop(loop);
}

// Calls the looking function here, where the thread's registers are not in use; those that it may change are cleared.
void make_look(abi::ThreadSlot& slot, const LookFunction& function, ucontext_t& context) {
  using Entered = TimedLoop::Entered;
  const Entered entered = look.loop->enter(context, look.written, slot);
  if (entered == Entered::came_round) return park_in_loop(slot, context);
  if (entered == Entered::too_long) return give_up(context);
  auto& registers = context.uc_mcontext.gregs;
  using Call = long (*)(greg_t, greg_t, greg_t);
  const auto call = reinterpret_cast<Call>(reinterpret_cast<std::uintptr_t>(function.function));
  // A handler of the program that runs during the call may not return: `look` is inactive meanwhile.
  const std::uint64_t began = slot.now;
  // In this order: a check that the simulator asks for meanwhile must not replace this one.
  looks_while_followed = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  look.active = look.following = false;
  const auto result = int(call(registers[REG_RDI], registers[REG_RSI], registers[REG_RDX]));
  look.active = look.following = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool interrupted = !std::exchange(looks_while_followed, false);
  registers[REG_RAX] = result;
  for (const int number : {REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R10, REG_R11}) registers[number] = 0;
  registers[REG_RIP] = greg_t(*reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP]));
  registers[REG_RSP] += 8;
  if (interrupted || result != function.nothing) return stop(context);
  if (slot.now == began) return give_up(context);  // the look cost no time
  look.loop->looked(slot.now);
  look.activity = activity();
}

// --- Loops that read clocks.

// The thread is to be followed for some clock reads, whatever check is under way: checks come by the processor's time,
// and must not decide how long a loop takes in simulated time.
thread_local bool clock_loop_wanted = false;

bool follows_clocks() { return look.active && look.clock_reads_left != 0; }

// In this order: a check may begin before each line.
void ask_for_clock_loop(abi::ThreadSlot&) {
  if (follows_clocks() || tool() != Tool::none) return;
  clock_loop_wanted = true;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool stepped = look.active && (__builtin_ia32_readeflags_u64() & kTrapFlag) != 0;
  if (stepped || look.following) return;  // the check's next step reads clock_loop_wanted
  checked_call(SYS_tgkill, raw_call(SYS_getpid), raw_call(SYS_gettid), abi::kLookSignal);
}

// Follows the thread for some clock reads, to find out which other memory it reads.
void begin_clock_loop() {
  constexpr int kMostClockSteps = 4'000, kReads = 3;
  clock_loop_wanted = false;
  look.woken = false;
  look.mark = nullptr;
  begin(kMostClockSteps + 1, kMostClockSteps);
  look.clock_reads_left = kReads;
}

bool is_of_this_library(std::uintptr_t place) {
  dl_find_object its, ours;
  if (::_dl_find_object(reinterpret_cast<void*>(place), &its) != 0) return false;
  return ::_dl_find_object(reinterpret_cast<void*>(&is_of_this_library), &ours) == 0 &&
         its.dlfo_map_start == ours.dlfo_map_start;
}

// Steps of this library do not count: how long it waits for the simulator depends on the machine.
void continue_clock_loop(ucontext_t& context) {
  if (!is_of_this_library(place_of(context)) && ++look.steps > look.most_steps) return give_up(context);
  if (std::exchange(look.activity, activity()) == activity() || --look.clock_reads_left != 0) return;
  thread_looks_at = LooksAt::clocks_only;
  stop(context);
}

// If a handler of this library read the clock, its return restores the flags: sets the trap flag among them.
void follow_return_from_handler(const ucontext_t& context) {
  constexpr std::uint8_t kSyscall[] = {0x0f, 0x05};
  const auto& registers = context.uc_mcontext.gregs;
  if (registers[REG_RAX] != SYS_rt_sigreturn) return;
  if (memcmp(reinterpret_cast<const void*>(place_of(context)), kSyscall, sizeof kSyscall) != 0) return;
  reinterpret_cast<ucontext_t*>(registers[REG_RSP])->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
}

// True: the instruction reads memory that the device or another thread may write. Reads of this library do not count.
bool looks_at_others(const Instruction& instruction, const ucontext_t& context) {
  constexpr std::uint64_t kOwnStack = 64 * 1024, kRedZone = 128;
  if (is_of_this_library(place_of(context))) return false;
  const auto stack = std::uint64_t(context.uc_mcontext.gregs[REG_RSP]) - kRedZone;
  const bool alone = !other_threads();
  return std::any_of(instruction.operands, instruction.operands + instruction.decoded.operand_count,
                     [&](const ZydisDecodedOperand& operand) {
                       if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return false;
                       if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) == 0) return false;
                       const auto address = address_of(instruction, operand, context);
                       if (!address) return true;
                       if (*address - stack < kOwnStack) return may_be_pinned(*address);
                       return !alone || may_be_pinned(*address);
                     });
}

// Begins to follow a loop of looks, if the thread has just returned from a look that found nothing.
void begin_loop_at(LoopMark& mark, ucontext_t& context) {
  mark.clear();
  TimedLoop* loop = has_just_looked_in_vain() ? TimedLoop::of_thread() : nullptr;
  if (loop == nullptr) return;
  look.woken = false;
  look.mark = nullptr;
  look.site = mark.place();
  look.kept = look.least = CpuState(context);
  begin_loop(*loop);
}

// True: the thread has left the loop of its mark, in which each round takes the same number of steps.
bool has_left_loop(const ucontext_t& context) {
  return look.mark != nullptr && look.steps == look.mark->period() && place_of(context) != look.mark->place();
}

// Continues the check after a step.
void continue_steps(ucontext_t& context) {
  abi::ThreadSlot* slot = simulated_slot();
  look.interruptions = 0;
  if (clock_loop_wanted) return begin_clock_loop();
  if (slot != nullptr && look.clock_reads_left != 0) return continue_clock_loop(context);
  if (slot == nullptr || look.activity != activity()) return give_up(context);
  if (++look.steps > look.most_steps) {
    if (!look.woken) look.proof_steps = 0;
    return give_up(context);
  }
  if (look.loop != nullptr) return;
  if (has_left_loop(context)) return give_up(context);
  if (look.is_of_interest(context)) validate(*slot, context, CpuState(context));
}

// errno of the program. The program's code may set it while the thread is followed; this library must not change it.
class ProgramErrno {
 public:
  ProgramErrno() : value_(errno) {}
  ~ProgramErrno() { errno = value_; }
  ProgramErrno(const ProgramErrno&) = delete;
  ProgramErrno& operator=(const ProgramErrno&) = delete;

  bool step(const Instruction& instruction, ucontext_t& context) {
    errno = value_;
    const bool stepped = step_in_software(instruction, context);
    value_ = errno;
    return stepped;
  }

 private:
  int value_;
};

// Follows by software steps, then by the trap flag. Software steps write to the stack: not used if this runs there.
void follow(ucontext_t& context, ProgramErrno& program) {
  look.following = true;
  const bool in_software = !shares_stack_with(std::uintptr_t(context.uc_mcontext.gregs[REG_RSP]));
  while (look.active) {
    const LookFunction* function = look.loop != nullptr ? look_function_at(place_of(context)) : nullptr;
    if (function != nullptr) {
      make_look(*simulated_slot(), *function, context);
      continue;
    }
    const Instruction* next = next_of(context);
    if (next != nullptr && look.loop != nullptr) look.loop->note_reads(*next, context);
    const bool clocks = look.clock_reads_left != 0;
    if (next == nullptr || (clocks && looks_at_others(*next, context)) ||
        (!clocks && !look.proved && !look.written.note(*next, context))) {
      give_up(context);
    } else if (in_software && program.step(*next, context)) {
      continue_steps(context);
    } else {
      if (clocks) follow_return_from_handler(context);
      if (LoopMark* mark = LoopMark::at(place_of(context))) pass(*mark, context);
      context.uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
      break;
    }
  }
  look.following = false;
}

// True: the check under way has a next step. The trap flag is off in a handler, and stays off if a handler did not
// return.
bool goes_on(const ucontext_t& interrupted) {
  constexpr int kLongestHandler = 64;
  if (!look.active) return false;
  return is_stepped(interrupted) || ++look.interruptions < kLongestHandler;
}

}  // namespace

void begin_look(void* opaque) {
  ProgramErrno program_errno;
  auto& context = *static_cast<ucontext_t*>(opaque);
  if (look.following || goes_on(context)) return;
  look.active = false;
  const bool clocks = std::exchange(clock_loop_wanted, false);
  if (looks_while_followed || (!clocks && !has_run_since_last_look())) return;
  if (tool() != Tool::none) return guess_from(context, *own_slot());
  look.active = true;
  look.woken = false;
  look.mark = nullptr;
  look.kept = look.least = CpuState(context);
  if (clocks) {
    begin_clock_loop();
    return follow(context, program_errno);
  }
  // A proof may take more steps than the last one of the same loop, because a check begins anywhere in the loop.
  const int wanted = (look.activity == activity() ? look.most_steps : look.proof_steps) * 2;
  begin(kFirstKept, std::clamp(wanted, kFirstSteps, kMostSteps));
  follow(context, program_errno);
}

// The first round may enter the loop from elsewhere, and leave other registers than the second.
bool begin_look_at_mark(void* opaque) {
  ProgramErrno program_errno;
  auto& context = *static_cast<ucontext_t*>(opaque);
  LoopMark* mark = LoopMark::at(place_of(context) - 1);
  if (mark == nullptr) return false;
  --context.uc_mcontext.gregs[REG_RIP];
  if (simulated_slot() == nullptr || looks_while_followed) {
    mark->clear();
    return true;
  }
  if (look.active || look.following) {  // also in a handler of this library, which uses the C library
    pass(*mark, context);
    return true;
  }
  if (mark->is_behind_look())
    begin_loop_at(*mark, context);
  else
    begin_at(*mark, context);
  follow(context, program_errno);
  return true;
}

void continue_look(void* opaque) {
  ProgramErrno program_errno;
  auto& context = *static_cast<ucontext_t*>(opaque);
  LoopMark* const passed = std::exchange(look.passed, nullptr);
  if (passed != nullptr) passed->set();
  // In a handler of this library: the thread passes a mark in the C library, or a check that began in a handler of the
  // program has come here.
  if (look.following && passed == nullptr) look.active = false;
  if (look.following || !look.active) return end_steps(context);
  look.following = true;
  continue_steps(context);
  follow(context, program_errno);
}

void prepare_looks() { follow_clock_loops_by(ask_for_clock_loop); }

void abandon_look(void* context) {
  const ProgramErrno program_errno;
  if (look.active && !follows_clocks()) give_up(*static_cast<ucontext_t*>(context));
}

}  // namespace rnicsim::clock
