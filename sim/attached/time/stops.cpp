// SPDX-License-Identifier: Apache-2.0
// Stops and continuations within the simulation: a stopped process gets no turn. Its real process is not stopped; only
// a signal from outside, such as a terminal's ^Z, stops a real process.
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "sim/attached/time/cpu_time.h"
#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim {
namespace {

bool waits_on_cpu(ThreadState state) {
  return state == ThreadState::polling || state == ThreadState::spinning || state == ThreadState::awaiting_device;
}

}  // namespace

// Called for a thread that is due while its process is stopped.
void TimeKeeper::hold(Thread& thread) {
  timed_.erase(&thread);
  thread.at.reset();
  thread.held = true;
  leave_processor(thread);
}

void TimeKeeper::stop(Process& process, std::uint32_t signal) {
  if (process.stopped) return;
  process.stopped = true;
  for (Thread& thread : process.threads)
    if (waits_on_cpu(thread.state)) leave_processor(thread);
  progressed();
  handler_->process_stopped(process, int(signal));
}

void TimeKeeper::go_on(Process& process) {
  drop_pending(process, kStops);
  if (!process.stopped) return;
  process.stopped = false;
  progressed();
  for (Thread& thread : process.threads) {
    if (waits_on_cpu(thread.state)) take_processor(thread);
    if (!thread.held) continue;
    thread.held = false;
    thread.at = std::max(now(), clock_of(thread)) + times_of(process).wakeup;
    timed_.insert(&thread);
  }
  arm();
  handler_->process_stopped(process, SIGCONT);
}

void TimeKeeper::drop_pending(Process& process, SignalSet set) {
  process.pending_signals.drop(set);
  for (Thread& thread : process.threads) {
    thread.pending_signals.drop(set);
    std::erase_if(thread.due_signals, [&](const auto& due) { return (set & set_of(due.number)) != 0; });
  }
}

// True: no process of the session outside of the group is left to continue the group. A program started by the user
// counts as the child of a shell.
bool TimeKeeper::in_orphaned_group(const Process& process) const {
  const pid_t group = ::getpgid(process.identity().pid);
  const pid_t session = ::getsid(process.identity().pid);
  return std::ranges::none_of(processes_, [&](const auto& member) {
    if (!member->alive || ::getpgid(member->identity().pid) != group) return false;
    if (member->parent == nullptr) return session != member->identity().pid;
    return member->parent->alive && held_together(*member->parent, group, session);
  });
}

// True: `one` is in another group of the same session.
bool TimeKeeper::held_together(const Process& one, pid_t group, pid_t session) {
  return ::getpgid(one.identity().pid) != group && ::getsid(one.identity().pid) == session;
}

void TimeKeeper::release_orphans(const Process& dead) {
  for (const auto& process : processes_) {
    if (!process->alive || !process->stopped) continue;
    const pid_t group = ::getpgid(process->identity().pid);
    const pid_t session = ::getsid(process->identity().pid);
    const bool of_group = ::getpgid(dead.identity().pid) == group;
    const bool tied = of_group ? dead.parent == nullptr || held_together(*dead.parent, group, session)
                               : process->parent == &dead && held_together(dead, group, session);
    if (!tied || !in_orphaned_group(*process)) continue;
    raise(*process, {.number = SIGHUP, .code = SI_KERNEL});
    raise(*process, {.number = SIGCONT, .code = SI_KERNEL});
  }
}

}  // namespace rnicsim::sim
