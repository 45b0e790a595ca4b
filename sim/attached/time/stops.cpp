// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/stops.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "sim/attached/time/cpu_time.h"

namespace rnicsim::sim {
namespace {

bool waits_on_cpu(ThreadState state) {
  return state == ThreadState::polling || state == ThreadState::spinning || state == ThreadState::awaiting_device;
}

}  // namespace

void Stops::stop(Process& process, std::uint32_t signal) {
  if (process.stopped) return;
  process.stopped = true;
  for (Thread& thread : process.threads)
    if (waits_on_cpu(thread.state)) leave_processor(thread);
  threads_.progressed();
  if (on_change) on_change(process, int(signal));
}

void Stops::go_on(Process& process) {
  drop_pending(process, kStops);
  if (!process.stopped) return;
  process.stopped = false;
  threads_.progressed();
  for (Thread& thread : process.threads) {
    if (waits_on_cpu(thread.state)) take_processor(thread);
    if (thread.held) threads_.end_hold(thread);
  }
  if (on_change) on_change(process, SIGCONT);
}

void Stops::drop_pending(Process& process, SignalSet set) {
  process.pending_signals.drop(set);
  for (Thread& thread : process.threads) {
    thread.pending_signals.drop(set);
    std::erase_if(thread.due_signals, [&](const auto& due) { return (set & set_of(due.number)) != 0; });
  }
}

// True: no process of the session outside of the group is left to continue the group. A program started by the user
// counts as the child of a shell.
bool Stops::in_orphaned_group(const Process& process) const {
  const pid_t group = ::getpgid(process.identity().pid);
  const pid_t session = ::getsid(process.identity().pid);
  return std::ranges::none_of(threads_.processes(), [&](const auto& member) {
    if (!member->alive || ::getpgid(member->identity().pid) != group) return false;
    if (member->parent == nullptr) return session != member->identity().pid;
    return member->parent->alive && held_together(*member->parent, group, session);
  });
}

// True: `one` is in another group of the same session.
bool Stops::held_together(const Process& one, pid_t group, pid_t session) {
  return ::getpgid(one.identity().pid) != group && ::getsid(one.identity().pid) == session;
}

}  // namespace rnicsim::sim
