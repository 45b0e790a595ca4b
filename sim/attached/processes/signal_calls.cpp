// SPDX-License-Identifier: Apache-2.0
// Calls that send signals, with receivers as in kill(2).

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/attached/system_calls.h"

namespace rnicsim::sim {

using abi::ThreadSlot;

// Receivers of kill(number) on the sender's host, in order of attaching. Process groups are those of the real kernel.
std::vector<Process*> SystemCalls::signalled_by(const Process& sender, std::int64_t number) {
  const auto& all = keeper_.threads().processes();
  const auto here = [&](const Process& process) { return process.identity().host == sender.identity().host; };
  const auto named = [&](std::int64_t pid) {
    return std::ranges::find_if(
        all, [&](const auto& process) { return here(*process) && process->identity().virtual_pid == pid; });
  };
  std::vector<Process*> found;
  if (number > 0) {
    if (const auto one = named(number); one != all.end() && (*one)->alive) found.push_back(one->get());
    return found;
  }
  // A group may exist after its leader has ended.
  const auto leader = number < 0 ? named(-number) : all.end();
  if (number < 0 && leader == all.end()) return found;
  const pid_t group = number == 0 ? ::getpgid(sender.identity().pid) : (*leader)->identity().pid;
  for (const auto& process : all)
    if (here(*process) && process->alive && ::getpgid(process->identity().pid) == group) found.push_back(process.get());
  return found;
}

// True: a zombie. Signals to it succeed without effect.
bool SystemCalls::is_unreaped(const Process& sender, std::int64_t number) {
  return std::ranges::any_of(families_, [&](const auto& family) {
    return std::ranges::any_of(family.second.ended, [&](const Process* process) {
      const auto& identity = process->identity();
      return identity.host == sender.identity().host && std::int64_t(identity.virtual_pid) == number;
    });
  });
}

bool SystemCalls::send_signal(Thread& thread, ThreadSlot& slot) {
  Process& sender = *thread.process;
  abi::SignalRecord signal;
  std::memcpy(&signal, slot.input, sizeof signal);
  const auto number = std::int64_t(slot.argument[0]);
  slot.value = 0;
  if (signal.number > kMostSignal) return answer(slot, EINVAL);
  Thread* only = slot.argument[1] != 0 ? Signals::thread_numbered(sender, std::uint32_t(slot.argument[1])) : nullptr;
  if (slot.argument[1] != 0 && only == nullptr) return answer(slot, ESRCH);
  const auto receivers = only != nullptr ? std::vector{&sender} : signalled_by(sender, number);
  if (receivers.empty()) return answer(slot, is_unreaped(sender, number) ? 0 : ESRCH);
  if (signal.number == 0) return true;
  // Stopped in the real kernel, by the terminal.
  const auto is_stopped = [&](const Process* process) { return keeper_.is_stopped(process->threads.front()); };
  const bool of_job = signal.number == SIGCONT && std::ranges::any_of(receivers, is_stopped);
  const bool ends_itself = signal.number == SIGKILL && std::ranges::find(receivers, &sender) != receivers.end();
  if (of_job || ends_itself) {
    const pid_t real = number > 0 || only != nullptr ? receivers.front()->identity().pid
                       : number == 0                 ? 0
                                                     : -::getpgid(receivers.front()->identity().pid);
    slot.value = 1;
    slot.argument[2] = std::uint64_t(std::int64_t(real));
    return true;
  }
  bool has_room = true;
  for (Process* receiver : receivers) {
    if (signal.number == SIGKILL) {
      receiver->kill();
      await_exit(*receiver);
    } else {
      has_room &= keeper_.signals().raise(*receiver, signal, only);
    }
  }
  return answer(slot, has_room ? 0 : EAGAIN);
}

}  // namespace rnicsim::sim
