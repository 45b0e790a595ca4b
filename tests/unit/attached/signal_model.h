// SPDX-License-Identifier: Apache-2.0
// Model of signals after signal(7) for the time keeper's random walk: lists that are searched from the front.
#pragma once

#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/attached/scripted_programs.h"

namespace rnicsim::sim::test {

class SignalModel {
 public:
  explicit SignalModel(World& world) : world_(world) {}

  // Sends to a process; `only`: to one thread of the process. Called at the world's time, before the keeper gets the
  // signal.
  void send(Process& process, const abi::SignalRecord& signal, const Thread* only) {
    for (const Thread& thread : process.threads) {
      if (!lives(thread) || (only != nullptr && &thread != only)) continue;
      Receiver& receiver = receivers_[{&process, thread.index}];
      const auto* wait = std::get_if<WaitForSignal>(&thread.wait);
      const bool awaits = wait != nullptr && has(wait->wanted, signal);
      if (awaits) {
        receiver.answer = signal;
        receiver.wakes = std::max(now(), clock_of(thread)) + world_.params_.times.wakeup;
        return;
      }
      if (has(receiver.blocked, signal)) continue;
      if (signal.number == SIGWINCH) return;  // ignored by default
      if (!merges(receiver.due, signal)) receiver.due.push_back(signal);
      if (is_interruptible(thread)) receiver.wakes = std::max(now(), clock_of(thread));
      return;
    }
    auto& pending = only != nullptr ? receivers_[{&process, only->index}].pending : pending_[&process];
    if (!merges(pending, signal)) pending.push_back(signal);
  }

  // At the start of a turn: checks the signals that the thread received.
  void check_turn(Program& me, const ThreadSlot& slot) {
    Receiver& receiver = receiver_of(me);
    const std::size_t handed = std::min<std::size_t>(receiver.due.size(), ThreadSlot::kMaxSignals);
    world_.expect(slot.signal_count == handed, me, "it is handed the signals that are due");
    for (std::size_t i = 0; i < handed && i < slot.signal_count; ++i)
      world_.expect(is_same(slot.signal[i], receiver.due[i]), me, "it is handed another signal");
    receiver.due.erase(receiver.due.begin(), receiver.due.begin() + std::ptrdiff_t(handed));
    receiver.handed = handed;
    if (receiver.wakes) world_.expect(me.clock() == *receiver.wakes, me, "a signal ends its wait at another time");
    receiver.wakes.reset();
  }
  // The current turn began with a signal.
  bool interrupted(const Program& me) { return receiver_of(me).handed != 0; }
  // The next turn will begin with a signal.
  bool is_due(const Program& me) { return !receiver_of(me).due.empty(); }

  // sigprocmask(2). Unblocked pending signals are delivered in the order in which take() finds them.
  bool set_mask(const Program& me, SignalSet blocked) {
    Receiver& receiver = receiver_of(me);
    receiver.blocked = blocked;
    world_.masks[{&me.process(), me.index()}] = {.blocked = blocked, .caught = ~set_of(SIGWINCH)};
    const SignalSet pending = set(receiver.pending) | set(pending_[&me.process()]);
    world_.expect(me.pending() == pending, me, "it is shown the signals that wait");
    return (pending & ~blocked) != 0;
  }
  // The call that unblocked signals has been made: pending signals become due.
  void let_through(const Program& me) {
    while (const auto taken = take(me, ~receiver_of(me).blocked)) receiver_of(me).due.push_back(*taken);
  }

  // sigtimedwait(2) has returned.
  void check_answer(const Program& me, SignalSet wanted, int error, const abi::SignalRecord& signal,
                    std::optional<Duration> deadline) {
    Receiver& receiver = receiver_of(me);
    const auto handed_over = std::exchange(receiver.answer, std::nullopt);
    if (error == EINTR) return world_.expect(receiver.handed != 0 && !handed_over, me, "a wait ends without a signal");
    const auto wanted_one = handed_over ? handed_over : take(me, wanted);
    if (error == EAGAIN) {
      world_.expect(!wanted_one, me, "a signal that waits is not found");
      return world_.expect(deadline && me.clock() >= *deadline, me, "a wait for a signal ends too early");
    }
    world_.expect(error == 0 && wanted_one && is_same(*wanted_one, signal), me, "it takes another signal");
  }

  void begin_thread(const Process& process, std::uint32_t index) {
    receivers_[{&process, index}] = {};
    world_.masks[{&process, index}] = {.caught = ~set_of(SIGWINCH)};
  }

 private:
  using Signals = std::vector<abi::SignalRecord>;
  struct Receiver {
    SignalSet blocked = 0;
    Signals pending;
    Signals due;
    std::size_t handed = 0;  // signals delivered at the start of the current turn
    std::optional<abi::SignalRecord> answer;
    std::optional<Duration> wakes;
  };

  Receiver& receiver_of(const Program& me) { return receivers_[{&me.process(), me.index()}]; }
  static bool has(SignalSet set, const abi::SignalRecord& signal) { return (set & set_of(signal.number)) != 0; }
  static bool is_same(const abi::SignalRecord& a, const abi::SignalRecord& b) {
    return a.number == b.number && a.value == b.value;
  }
  static bool lives(const Thread& thread) {
    return thread.state != ThreadState::free && thread.state != ThreadState::starting;
  }
  static bool is_interruptible(const Thread& thread) {
    constexpr ThreadState kStates[] = {ThreadState::sleeping,         ThreadState::awaiting_descriptors,
                                       ThreadState::awaiting_address, ThreadState::awaiting_child,
                                       ThreadState::awaiting_signal,  ThreadState::polling,
                                       ThreadState::spinning};
    return std::ranges::find(kStates, thread.state) != std::end(kStates);
  }
  static SignalSet set(const Signals& signals) {
    SignalSet all = 0;
    for (const auto& signal : signals) all |= set_of(signal.number);
    return all;
  }
  static bool merges(const Signals& signals, const abi::SignalRecord& signal) {
    return signal.number < kFirstRealTime && has(set(signals), signal);
  }
  static std::optional<abi::SignalRecord> take_from(Signals& signals, SignalSet wanted) {
    auto least = signals.end();
    for (auto signal = signals.begin(); signal != signals.end(); ++signal)
      if (has(wanted, *signal) && (least == signals.end() || signal->number < least->number)) least = signal;
    if (least == signals.end()) return {};
    const auto taken = *least;
    signals.erase(least);
    return taken;
  }
  // Signals of the thread come before signals of its process.
  std::optional<abi::SignalRecord> take(const Program& me, SignalSet wanted) {
    const auto own = take_from(receiver_of(me).pending, wanted);
    return own ? own : take_from(pending_[&me.process()], wanted);
  }

  World& world_;
  std::map<std::pair<const Process*, std::uint32_t>, Receiver> receivers_;
  std::map<const Process*, Signals> pending_;
};

}  // namespace rnicsim::sim::test
