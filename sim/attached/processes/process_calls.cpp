// SPDX-License-Identifier: Apache-2.0
// System calls about processes: children, exec, exits.

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "model/host/log.h"
#include "sim/attached/native/native_thread.h"
#include "sim/attached/system_calls.h"
#include "sim/attached/time/cpu_time.h"
#include "sim/os/program_check.h"

namespace rnicsim::sim {

using abi::Call;
using abi::ThreadSlot;

bool SystemCalls::process_call(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  switch (slot.call) {
    case Call::forked:
    case Call::spawned: return new_child(thread, slot);
    case Call::check_image: return check_image(thread, slot);
    case Call::exec_begin: return exec(thread, slot);
    case Call::process_exit: return await_exit(process);
    case Call::wait_child: return wait_child(thread, slot);
    case Call::send_signal: return send_signal(thread, slot);
    case Call::find_process: return find_process(process, slot);
    case Call::affinity: return affinity(thread, slot);
    default: return true;  // exec_failed outside an exec
  }
}

// Waits, in real time, for the hello of a process that is about to attach. nullopt: the process ended, or came_back();
// or it was killed, because the run ended, `waiting` exited, or the hello did not come in time.
std::optional<Guest> SystemCalls::await_hello(pid_t pid, const Process& waiting, const std::string& who,
                                              const std::function<bool()>& came_back) {
  const Descriptor awaited(pid != 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
  Patience patience(who);
  return server_.await(pid, waiting.identity().pid, [&] {
    pollfd ended{awaited.get(), POLLIN, 0};
    if (came_back() || (pid != 0 && (!awaited || ::poll(&ended, 1, 0) == 1))) return true;
    const bool goes_on = keeper_.look_around() && !waiting.has_exited();
    if (goes_on && (keeper_.is_patient() || !patience.ends())) return false;
    if (goes_on) {
      host::log_error(fmt::format("{} did not attach within {} s, and is killed", who, Patience::kMost.count()));
      keeper_.disturbed(who + " did not attach, and was killed");
    }
    ::syscall(SYS_pidfd_send_signal, awaited.get(), SIGKILL, nullptr, 0);
    return true;
  });
}

bool SystemCalls::new_child(Thread& thread, ThreadSlot& slot) {
  Process& parent = *thread.process;
  const std::string& host = hosts_.of(parent).name;
  auto guest = await_hello(pid_t(slot.argument[0]), parent, fmt::format("{}: a child of {}", host, parent.label()),
                           [] { return false; });
  if (!guest) {
    if (!parent.has_exited())
      host::log_warning(
          fmt::format("{}: a child of {} did not attach: the child ran outside the simulation, or ended at once", host,
                      parent.label()));
    return answer(slot, ECHILD);
  }
  if (!descriptors_.has_room(*guest, parent.identity().host)) return answer(slot, EAGAIN);
  Process& child = admit(std::move(*guest), parent.identity().host, &parent, now());
  child.threads[0].affinity = thread.affinity;
  if (slot.call == Call::forked) share_events(parent, child);
  slot.value = child.identity().virtual_pid;
  return true;
}

// A static or setuid image would never attach, and all hosts would wait for it. Returns ENOEXEC with a reason in the
// log.
bool SystemCalls::check_image(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const auto descriptors = process.receive_descriptors(thread.index);
  if (descriptors.empty()) return true;
  const std::filesystem::path file = fmt::format("/proc/self/fd/{}", descriptors.front().get());
  const std::string problem = image_problem(file, fmt::format("/proc/{}/cwd", process.identity().pid));
  if (problem.empty()) return true;
  std::error_code none;
  host::log_error(fmt::format("{}: {} cannot execute {}: {}", hosts_.of(process).name, process.label(),
                              std::filesystem::read_symlink(file, none).string(), problem));
  return answer(slot, ENOEXEC);
}

// The thread continues into the real exec in its own turn. It returns only as a new image, or because exec failed.
bool SystemCalls::exec(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  keeper_.release(thread);
  const auto came_back = [&] { return slot.turn.load(std::memory_order_acquire) == ThreadSlot::kKernel; };
  const std::string who = fmt::format("{}: program executed by {}", hosts_.of(process).name, process.label());
  auto guest = await_hello(process.identity().pid, process, who, came_back);
  if (!guest && came_back()) return true;
  if (!guest) return await_exit(process);
  detach(process);
  const auto affinity = thread.affinity;
  const Duration used = cpu_time(thread);
  const std::uint64_t children_time = process.header().children_time;
  keeper_.replace_image(process);
  if (auto why = process.disturbance()) keeper_.disturbed(std::move(*why));
  process.replace_image(std::move(guest->socket), guest->hello.program);
  memory_.equip(process);
  fill_control(process);
  process.slot(0).tid = guest->hello.tid;
  process.slot(0).virtual_tid = process.identity().virtual_pid;
  keeper_.start_thread(process, 0, now());
  process.threads[0].affinity = affinity;
  keep_cpu_time(process, used);
  process.header().children_time = children_time;
  join_device(process);
  AttachServer::welcome(process);
  return false;
}

bool SystemCalls::find_process(const Process& asking, ThreadSlot& slot) {
  const std::uint64_t number = slot.argument[0];
  const bool by_real = slot.argument[1] != 0;
  const Process* found = find_neighbour(asking, [&](const Process::Identity& identity) {
    return number == (by_real ? std::uint64_t(identity.pid) : identity.virtual_pid);
  });
  if (found == nullptr) return answer(slot, ESRCH);
  slot.argument[2] = std::uint64_t(cpu_time(*found).ps);
  slot.value = by_real ? found->identity().virtual_pid : std::uint64_t(found->identity().pid);
  return true;
}

Process* SystemCalls::find_neighbour(const Process& asking, const IsWanted& is_wanted) {
  const auto& all = keeper_.threads().processes();
  const auto found = std::ranges::find_if(all, [&](const auto& process) {
    const auto& identity = process->identity();
    return process->alive && identity.host == asking.identity().host && is_wanted(identity);
  });
  return found != all.end() ? found->get() : nullptr;
}
Process* SystemCalls::process_of(const Process& asking, std::uint64_t virtual_pid) {
  return find_neighbour(asking, [&](const auto& identity) { return identity.virtual_pid == virtual_pid; });
}

Thread* SystemCalls::thread_of(Thread& asking, std::uint64_t number) {
  if (number == 0) return &asking;
  const auto found = std::ranges::find_if(asking.process->threads, [&](const Thread& thread) {
    return thread.state != ThreadState::free && slot_of(thread).virtual_tid == number;
  });
  if (found != asking.process->threads.end()) return &*found;
  Process* process = process_of(*asking.process, number);
  return process != nullptr ? &process->threads[0] : nullptr;
}

// Processors that the machine lacks are removed from the set, as on Linux.
bool SystemCalls::affinity(Thread& asking, ThreadSlot& slot) {
  Thread* thread = thread_of(asking, slot.argument[0]);
  if (thread == nullptr) return answer(slot, ESRCH);
  if (slot.argument[1] != 0) {
    abi::ProcessorSet set;
    std::memcpy(&set, slot.input, sizeof set);
    std::uint64_t any = 0;
    for (std::size_t i = 0; i < std::size(set.bits); ++i) any |= set.bits[i] &= params_.processors.bits[i];
    if (any == 0) return answer(slot, EINVAL);
    thread->affinity = set;
    thread->asked_to_move = true;
  }
  put_output(slot, thread->affinity.value_or(params_.processors));
  return true;
}

void SystemCalls::kill(const Process& process, const char* why) {
  const std::string text = fmt::format("{}: {} {}, and is killed", hosts_.of(process).name, process.label(), why);
  host::log_error(text);
  keeper_.disturbed(text);
  process.kill();
}

bool SystemCalls::await_exit(Process& process) {
  constexpr int kPatienceMs = 10'000;
  for (int waited = 0; !process.has_exited(); ++waited) {
    const bool goes_on = keeper_.look_around();
    if (goes_on && waited == kPatienceMs && !keeper_.is_patient()) kill(process, "does not end");
    if (!goes_on) process.kill();
    ::poll(nullptr, 0, waited < 20 ? 0 : 1);
  }
  process_died(process);
  return false;
}

// SIGCHLD record for the process's parent.
static abi::SignalRecord end_of(const Process& process) {
  const int status = exit_status_of(process.identity().pid);
  const int code = !WIFSIGNALED(status) ? CLD_EXITED : WCOREDUMP(status) ? CLD_DUMPED : CLD_KILLED;
  return {.number = SIGCHLD,
          .code = code,
          .pid = process.identity().virtual_pid,
          .uid = user_of(process.identity().pid),
          .value = std::uint64_t(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status))};
}

// The order of Linux: queue pairs go first, then regions, pages last.
void SystemCalls::detach(Process& process) {
  hosts_.of(process).kernel->detach(process.pasid,
                                    [&process, image = process.image()] { process.forget_memory(image); });
}

void SystemCalls::process_died(Process& process) {
  if (!process.alive) return;
  keeper_.end_process(process);
  network_.collect(now());
  detach(process);
  process.release();
  for (Process* orphan : families_[&process].running) orphan->header().virtual_parent_pid = orphan->parent_pid();
  families_.erase(&process);
  system_v_.process_ended(process);
  if (process.parent != nullptr && process.parent->alive) {
    Family& family = families_[process.parent];
    std::erase(family.running, &process);
    family.ended.push_back(&process);
    wake_parent(*process.parent);
    keeper_.signals().raise(*process.parent, end_of(process));
  }
  keeper_.signals().release_orphans(process);
  keeper_.relay_output();
  keeper_.threads().descriptors_may_be_ready();
  if (on_exit) on_exit(process);
}

// Ends waits of the parent for a child that has changed its state.
void SystemCalls::wake_parent(Process& parent) {
  for (Thread& waiting : parent.threads)
    if (const auto* wait = std::get_if<WaitForChild>(&waiting.wait);
        wait != nullptr && answer_wait(waiting, *wait, parent.slot(waiting.index)))
      keeper_.threads().resume(waiting, now() + keeper_.threads().times_of(parent).wakeup);
}

void SystemCalls::process_stopped(Process& process, int signal) {
  constexpr int kStopped = 0x7f, kGoesOn = 0xffff;  // as wait(2) encodes them
  Process* parent = process.parent;
  if (parent == nullptr || !parent->alive) return;
  process.child_status = signal == SIGCONT ? kGoesOn : signal << 8 | kStopped;
  wake_parent(*parent);
  if (std::atomic_ref(parent->header().no_child_stops).load() != 0) return;
  keeper_.signals().raise(*parent, {.number = SIGCHLD,
                                    .code = signal == SIGCONT ? CLD_CONTINUED : CLD_STOPPED,
                                    .pid = process.identity().virtual_pid,
                                    .uid = user_of(process.identity().pid),
                                    .value = std::uint64_t(signal)});
}

// Fills the slot with a child that matches the thread's wait. False: there is none.
bool SystemCalls::answer_wait(const Thread& thread, const WaitForChild& wait, ThreadSlot& slot) {
  Family& family = families_[thread.process];
  const auto options = wait.options;
  const bool leaves = (options & WNOWAIT) != 0;
  const auto is_wanted = [&](const Process* child) {
    return wait.number == 0 || child->identity().virtual_pid == wait.number;
  };
  const auto did = [&](const Process* child) {
    return child->child_status != 0 && (options & (WIFCONTINUED(child->child_status) ? WCONTINUED : WSTOPPED)) != 0;
  };
  const auto tell = [&](const Process* child, int status) {
    slot.value = child->identity().virtual_pid;
    slot.argument[2] = std::uint64_t(child->identity().pid);
    slot.argument[3] = std::uint64_t(status);
    slot.argument[4] = std::uint64_t(family_time(*child).ps);
    return true;
  };
  const auto ended = (options & WEXITED) != 0 ? std::ranges::find_if(family.ended, is_wanted) : family.ended.end();
  if (ended != family.ended.end()) {
    tell(*ended, 0);
    if (!leaves) family.ended.erase(ended);
    return true;
  }
  for (Process* child : family.running)
    if (is_wanted(child) && did(child))
      return tell(child, leaves ? child->child_status : std::exchange(child->child_status, 0));
  return false;
}

bool SystemCalls::wait_child(Thread& thread, ThreadSlot& slot) {
  const WaitForChild wait{std::uint32_t(slot.argument[0]), slot.argument[1]};
  keeper_.find_the_dead();
  if (answer_wait(thread, wait, slot)) return true;
  const Family& family = families_[thread.process];
  const bool expected = std::ranges::any_of(family.running, [&](const Process* child) {
    return wait.number == 0 || child->identity().virtual_pid == wait.number;
  });
  if (!expected) return answer(slot, ECHILD);
  slot.value = 0;
  if ((wait.options & WNOHANG) != 0) return true;
  keeper_.threads().wait(thread, ThreadState::awaiting_child, std::nullopt, wait);
  return false;
}

}  // namespace rnicsim::sim
