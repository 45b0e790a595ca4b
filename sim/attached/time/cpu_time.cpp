// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/cpu_time.h"

#include <algorithm>
#include <utility>

namespace rnicsim::sim {
namespace {

// The slot of a thread that spins, polls or waits for a command still has the clock of its last turn.
Duration reached(const Thread& thread) { return std::max(clock_of(thread), now()); }

void show_ended_threads(const Process& process) {
  process.header().ended_threads_time = std::uint64_t(process.ended_threads_time.ps);
}

}  // namespace

bool leaves_processor(ThreadState state) {
  switch (state) {
    case ThreadState::sleeping:
    case ThreadState::awaiting_descriptors:
    case ThreadState::awaiting_address:
    case ThreadState::awaiting_child:
    case ThreadState::awaiting_signal:
    case ThreadState::awaiting_ipc:
    case ThreadState::awaiting_peer:
    case ThreadState::in_real_kernel: return true;
    default: return false;
  }
}

void leave_processor(Thread& thread) {
  if (thread.off_cpu) return;
  thread.off_cpu = reached(thread);
  slot_of(thread).now = std::uint64_t(thread.off_cpu->ps);
  slot_of(thread).on_cpu = 0;
}

void take_processor(Thread& thread) {
  const auto since = std::exchange(thread.off_cpu, std::nullopt);
  if (!since) return;
  slot_of(thread).waited += std::uint64_t((reached(thread) - *since).ps);
  slot_of(thread).on_cpu = 1;
}

void start_cpu_time(Thread& thread) {
  abi::ThreadSlot& slot = slot_of(thread);
  thread.off_cpu.reset();
  slot.began = slot.now;
  slot.waited = 0;
  slot.on_cpu = 1;
}

void end_cpu_time(Thread& thread) {
  thread.process->ended_threads_time += cpu_time(thread);
  abi::ThreadSlot& slot = slot_of(thread);
  slot.began = abi::ThreadSlot::kNoThread;
  slot.on_cpu = 0;
  show_ended_threads(*thread.process);
}

void keep_cpu_time(Process& process, Duration used) {
  process.ended_threads_time -= used;
  process.slot(0).began -= std::uint64_t(used.ps);
  show_ended_threads(process);
}

// Written so that no value in the slot, which the program can write, makes the result negative.
Duration cpu_time(const Thread& thread) {
  const abi::ThreadSlot& slot = slot_of(thread);
  const auto until = std::uint64_t((thread.off_cpu ? *thread.off_cpu : reached(thread)).ps);
  const std::uint64_t lived = until - std::min(until, slot.began);
  return duration(lived - std::min(lived, slot.waited));
}

Duration cpu_time(const Process& process) {
  Duration sum = process.ended_threads_time;
  for (const Thread& thread : process.threads)
    if (thread.state != ThreadState::free) sum += cpu_time(thread);
  return sum;
}

Duration family_time(const Process& process) { return cpu_time(process) + duration(process.header().children_time); }

}  // namespace rnicsim::sim
