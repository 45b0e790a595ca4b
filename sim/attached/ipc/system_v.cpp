// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/ipc/system_v.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

// Adjacent input and output of a slot together hold data that is longer than each.
constexpr std::size_t kRoom = sizeof ThreadSlot::input + sizeof ThreadSlot::output;
static_assert(offsetof(ThreadSlot, output) == offsetof(ThreadSlot, input) + sizeof ThreadSlot::input);
static_assert(MessageQueues::kMostBytes <= kRoom && Semaphores::kMostOfASet * sizeof(std::uint16_t) <= kRoom);
std::byte* room(ThreadSlot& slot) { return reinterpret_cast<std::byte*>(&slot) + offsetof(ThreadSlot, input); }

template <class Value>
Value input(const ThreadSlot& slot) {
  Value value;
  static_assert(sizeof value <= sizeof slot.input);
  std::memcpy(&value, slot.input, sizeof value);
  return value;
}

void put_message(ThreadSlot& slot, const MessageQueues::Message& message) {
  std::ranges::copy(message.bytes, room(slot));
  slot.value = message.bytes.size();
  slot.argument[1] = std::uint64_t(message.type);
}

std::optional<Duration> end_of_wait(std::uint64_t ps) {
  return ps == abi::kForever ? std::nullopt : std::optional(duration(ps));
}

}  // namespace

SystemV::SystemV(TimeKeeper& keeper, std::size_t hosts, std::uint64_t epoch)
    : keeper_(keeper), epoch_(epoch), hosts_(hosts) {
  for (Host& host : hosts_) {
    host.semaphores.goes_on = host.queues.goes_on = [this](IpcWait wait) { return waiting(wait) != nullptr; };
    host.semaphores.ended = [this](IpcWait wait, int error) { end_wait(wait, error); };
    host.queues.ended = [this](IpcWait wait, int error, const MessageQueues::Message* message) {
      Thread* thread = waiting(wait);
      if (thread != nullptr && message != nullptr) put_message(slot_of(*thread), *message);
      end_wait(wait, error);
    };
  }
}

bool SystemV::execute(Thread& thread) {
  ThreadSlot& slot = slot_of(thread);
  Process& process = *thread.process;
  Host& host = hosts_[process.identity().host];
  switch (slot.call) {
    case Call::sem_get:
      return answer(slot, host.semaphores.get(key_t(slot.argument[0]), std::int64_t(slot.argument[1]),
                                              int(slot.argument[2]), caller(process, slot.argument[3]), slot.value));
    case Call::sem_operate: return operate(thread, slot);
    case Call::sem_control: return answer(slot, control_semaphores(host, process, slot));
    case Call::msg_get:
      return answer(slot, host.queues.get(key_t(slot.argument[0]), int(slot.argument[1]),
                                          caller(process, slot.argument[2]), slot.value));
    case Call::msg_send: return send(thread, slot);
    case Call::msg_receive: return receive(thread, slot);
    default: return answer(slot, control_queues(host, process, slot));
  }
}

void SystemV::process_ended(const Process& process) {
  hosts_[process.identity().host].semaphores.process_ended(process.identity().virtual_pid, caller(process, 0).time);
}

IpcCaller SystemV::caller(const Process& process, std::uint64_t user) const {
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  return {process.identity().virtual_pid, std::uint32_t(user), std::int64_t(epoch_) + now().ps / kSecond};
}

// --- Waits.

IpcWait SystemV::new_wait(const Thread& thread) {
  std::erase_if(waits_, [this](const auto& entry) { return waiting(entry.first) == nullptr; });
  waits_.emplace(++last_wait_, Place{thread.process, thread.index});
  return last_wait_;
}

bool SystemV::wait(Thread& thread, IpcWait wait, std::optional<Duration> until) {
  keeper_.threads().wait(thread, ThreadState::awaiting_ipc, until, WaitForIpc{wait});
  return false;
}

// nullptr: the wait has ended by its deadline, a signal, or the thread's death.
Thread* SystemV::waiting(IpcWait wait) {
  const auto found = waits_.find(wait);
  if (found == waits_.end() || !found->second.process->alive) return nullptr;
  auto& threads = found->second.process->threads;
  if (found->second.index >= threads.size()) return nullptr;
  Thread& thread = threads[found->second.index];
  const auto* of_thread = std::get_if<WaitForIpc>(&thread.wait);
  return of_thread != nullptr && of_thread->number == wait ? &thread : nullptr;
}

void SystemV::end_wait(IpcWait wait, int error) {
  Thread* thread = waiting(wait);
  if (thread == nullptr) return;
  waits_.erase(wait);
  keeper_.threads().resume(
      *thread, std::max(now(), clock_of(*thread)) + keeper_.threads().times_of(*thread->process).wakeup, error);
}

// --- Semaphores.

bool SystemV::operate(Thread& thread, ThreadSlot& slot) {
  if (slot.input_bytes > sizeof slot.input) return answer(slot, E2BIG);
  std::vector<sembuf> operations(slot.input_bytes / sizeof(sembuf));
  std::memcpy(operations.data(), slot.input, operations.size() * sizeof(sembuf));
  const auto until = end_of_wait(slot.argument[1]);
  const IpcWait id = new_wait(thread);
  const int result = hosts_[thread.process->identity().host].semaphores.operate(
      slot.argument[0], operations, caller(*thread.process, slot.argument[2]), id);
  if (result != Semaphores::kWaits) return answer(slot, result);
  if (until && *until <= now()) return answer(slot, EAGAIN);
  return wait(thread, id, until);
}

int SystemV::set_values(Semaphores& semaphores, ThreadSlot& slot, const IpcCaller& caller) const {
  std::vector<std::uint16_t> values(std::min<std::uint64_t>(slot.argument[1], Semaphores::kMostOfASet));
  std::memcpy(values.data(), room(slot), values.size() * sizeof values[0]);
  return semaphores.set_values(slot.argument[0], values, caller);
}

int SystemV::control_semaphores(Host& host, const Process& process, ThreadSlot& slot) const {
  Semaphores& semaphores = host.semaphores;
  const IpcCaller caller = this->caller(process, slot.argument[4]);
  auto number = slot.argument[0];
  const int operation = int(slot.argument[2]);
  semid_ds told{};
  std::vector<std::uint16_t> values;
  slot.value = 0;
  switch (operation) {
    case GETVAL:
    case GETPID:
    case GETNCNT:
    case GETZCNT: return semaphores.value(number, slot.argument[1], operation, caller, slot.value);
    case SETVAL: return semaphores.set_value(number, slot.argument[1], std::int64_t(slot.argument[3]), caller);
    case GETALL: {
      const int error = semaphores.values(number, caller, values);
      std::memcpy(room(slot), values.data(), values.size() * sizeof values[0]);
      slot.argument[1] = values.size();
      return error;
    }
    case SETALL:
      return slot.argument[3] == 1 ? semaphores.count(number, caller, slot.argument[1])
                                   : set_values(semaphores, slot, caller);
    case IPC_RMID: return semaphores.remove(number, caller);
    case IPC_SET: return semaphores.set_owner(number, input<semid_ds>(slot), caller);
    case IPC_INFO:
    case SEM_INFO:
      put_output(slot, semaphores.info(operation == SEM_INFO));
      slot.value = host.semaphores.size() > 0 ? host.semaphores.size() - 1 : 0;
      return 0;
    case SEM_STAT:
    case SEM_STAT_ANY:
      if (const auto at = semaphores.at(number)) {
        slot.value = number = std::uint64_t(*at);
      } else {
        return EINVAL;
      }
      [[fallthrough]];
    case IPC_STAT: {
      const int error = semaphores.stat(number, caller, told);
      put_output(slot, told);
      slot.argument[1] = told.sem_nsems;
      return error;
    }
    default: return EINVAL;
  }
}

// --- Message queues.

bool SystemV::send(Thread& thread, ThreadSlot& slot) {
  const auto bytes = slot.argument[2];
  if (bytes > MessageQueues::kMostBytes) return answer(slot, EINVAL);
  MessageQueues::Message message{std::int64_t(slot.argument[1]), {room(slot), room(slot) + bytes}};
  const IpcWait id = new_wait(thread);
  const int result = hosts_[thread.process->identity().host].queues.send(
      slot.argument[0], std::move(message), int(slot.argument[3]), caller(*thread.process, slot.argument[4]), id);
  return result != MessageQueues::kWaits ? answer(slot, result) : wait(thread, id, std::nullopt);
}

bool SystemV::receive(Thread& thread, ThreadSlot& slot) {
  const MessageQueues::Wanted wanted{std::int64_t(slot.argument[1]), slot.argument[2], int(slot.argument[3])};
  MessageQueues::Message message;
  const IpcWait id = new_wait(thread);
  const int result = hosts_[thread.process->identity().host].queues.receive(
      slot.argument[0], wanted, caller(*thread.process, slot.argument[4]), id, message);
  if (result == MessageQueues::kWaits) return wait(thread, id, std::nullopt);
  if (result == 0) put_message(slot, message);
  return answer(slot, result);
}

int SystemV::control_queues(Host& host, const Process& process, ThreadSlot& slot) const {
  MessageQueues& queues = host.queues;
  const IpcCaller caller = this->caller(process, slot.argument[2]);
  auto number = slot.argument[0];
  const int operation = int(slot.argument[1]);
  msqid_ds told{};
  slot.value = 0;
  switch (operation) {
    case IPC_RMID: return queues.remove(number, caller);
    case IPC_SET: return queues.set(number, input<msqid_ds>(slot), caller);
    case IPC_INFO:
    case MSG_INFO:
      put_output(slot, queues.info(operation == MSG_INFO));
      slot.value = queues.size() > 0 ? queues.size() - 1 : 0;
      return 0;
    case MSG_STAT:
    case MSG_STAT_ANY:
      if (const auto at = queues.at(number)) {
        slot.value = number = std::uint64_t(*at);
      } else {
        return EINVAL;
      }
      [[fallthrough]];
    case IPC_STAT: {
      const int error = queues.stat(number, caller, told);
      put_output(slot, told);
      return error;
    }
    default: return EINVAL;
  }
}

}  // namespace rnicsim::sim
