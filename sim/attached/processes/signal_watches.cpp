// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/signal_watches.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>

namespace rnicsim::sim {
namespace {

using abi::ThreadSlot;

constexpr std::size_t kMostWatches = 1024;

}  // namespace

bool SignalWatches::watch(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto descriptors = process.receive_descriptors(thread.index);
  const bool is_new = slot.argument[0] == 0;
  if (is_new && descriptors.empty()) return answer(slot, EINVAL);
  if (is_new && process.signal_watches.size() >= kMostWatches) return answer(slot, EAGAIN);
  if (!descriptors.empty() && lacks_descriptors(process, "signal descriptor")) return answer(slot, EMFILE);
  const auto number = is_new ? numbers_.next() : std::uint32_t(slot.argument[0]);
  if (is_new) process.signal_watches[number].set = std::make_shared<SignalSet>(slot.argument[1]);
  const auto found = process.signal_watches.find(number);
  if (found == process.signal_watches.end()) return answer(slot, EINVAL);
  SignalWatch& watch = found->second;
  if (!descriptors.empty()) {
    watch.counter = EventCounter(std::move(descriptors.front()));
    watch.shown = false;
  }
  if (slot.argument[2] == 1) *watch.set = slot.argument[1];
  // Other processes that share the signalfd see the new set, too.
  for (const auto& other : threads_.processes())
    if (other->alive && other->signal_watches.contains(number)) show(*other, other->pending_signals.set());
  slot.value = number;
  return true;
}

// `waiting`: pending signals of the process and of the thread that is about to look.
void SignalWatches::show(Process& process, SignalSet waiting) {
  for (auto& [number, watch] : process.signal_watches) {
    const bool shows = (*watch.set & (waiting | process.outside_signals)) != 0;
    if (!watch.counter || std::exchange(watch.shown, shows) == shows) continue;
    if (shows) {
      watch.counter.add();
      threads_.descriptors_changed();
    } else {
      watch.counter.clear();
    }
  }
}

// Without SIGCHLD: the simulator sends it at the simulated end of a child.
SignalSet SignalWatches::outside_signals(const Thread& thread) const {
  return programs_.signal_masks(thread).waiting & ~set_of(SIGCHLD);
}

// True: new signals for a waiting thread.
bool SignalWatches::hears_from_outside(Thread& thread) {
  Process& process = *thread.process;
  if (const auto* wait = std::get_if<WaitForSignal>(&thread.wait)) {
    if ((outside_signals(thread) & wait->wanted) == 0) return false;
    threads_.resume(thread, std::max(now(), clock_of(thread)) + threads_.times_of(process).wakeup, ERESTART);
    return true;
  }
  if (thread.state != ThreadState::awaiting_descriptors || process.signal_watches.empty()) return false;
  SignalSet watched = 0;
  for (const auto& [number, watch] : process.signal_watches) watched |= *watch.set;
  const SignalSet outside = outside_signals(thread) & watched;
  if ((outside & ~process.outside_signals) == 0) return false;
  process.outside_signals = outside;
  show(process, process.pending_signals.set());
  return true;
}

}  // namespace rnicsim::sim
