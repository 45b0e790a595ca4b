// SPDX-License-Identifier: Apache-2.0
// System V semaphores and message queues. The simulator keeps those of the host; waits for them end in simulated time.

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/own_memory.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(semget);
RNICSIM_NEXT(semop);
RNICSIM_NEXT(semtimedop);
RNICSIM_NEXT(semctl);
RNICSIM_NEXT(msgget);
RNICSIM_NEXT(msgsnd);
RNICSIM_NEXT(msgrcv);
RNICSIM_NEXT(msgctl);

namespace rnicsim::clock {
namespace {

constexpr std::size_t kMostOperations = 500;
constexpr std::size_t kRoom = sizeof abi::ThreadSlot::input + sizeof abi::ThreadSlot::output;

int fail(int error) {
  errno = error;
  return -1;
}

// Input and output of a slot are adjacent: together they hold data that are longer than either.
std::byte* room(abi::ThreadSlot& slot) {
  return reinterpret_cast<std::byte*>(&slot) + offsetof(abi::ThreadSlot, input);
}

// Signal handlers run where time is charged and at the end of a call, and make calls of their own. So the data of a
// call are written into its slot after the charge, and its results are taken before the handlers run.
template <class Take>
int call_and_take(abi::ThreadSlot& slot, abi::Call code, std::initializer_list<std::uint64_t> arguments, Take take) {
  const int error = call_without_signals(slot, code, arguments);
  const int taken = error == 0 ? take() : error;
  raise_signals(slot);
  return taken;
}

template <class Message>
auto cancellably(Message message) {
  cancellation_point();
  const auto result = message();
  if (result == -1 && errno == EINTR) cancellation_point();
  return result;
}

std::uint64_t user() { return ::geteuid(); }
std::uint64_t word(std::int64_t number) { return std::uint64_t(number); }

int operate(abi::ThreadSlot& slot, int number, const sembuf* operations, std::size_t count, const timespec* limit) {
  if (count == 0) return fail(EINVAL);
  if (count > kMostOperations) return fail(E2BIG);
  timespec wait{};
  if (limit != nullptr && !copy_in(&wait, limit, sizeof wait)) return fail(EFAULT);
  if (!valid(wait)) return fail(EINVAL);
  const std::size_t bytes = count * sizeof *operations;
  charge(slot, abi::CpuCost::system_call);
  if (!copy_in(slot.input, operations, bytes)) return fail(EFAULT);
  slot.input_bytes = std::uint32_t(bytes);
  const std::uint64_t deadline = limit != nullptr ? after(slot.now, picoseconds(wait)) : abi::kForever;
  const int error = call(slot, abi::Call::sem_operate, {word(number), deadline, user()});
  return error == 0 ? 0 : fail(error);
}

// The last argument of semctl() is a union, which fits a word.
int control_semaphores(abi::ThreadSlot& slot, int number, int which, int operation, long last) {
  charge(slot, abi::CpuCost::system_call);
  operation &= ~0x100;  // IPC_64
  void* memory = reinterpret_cast<void*>(last);
  std::uint64_t count = std::uint64_t(which);
  if (operation == IPC_SET && !copy_in(slot.input, memory, sizeof(semid_ds))) return fail(EFAULT);
  if (operation == SETALL) {
    const int error =
        call_and_take(slot, abi::Call::sem_control, {word(number), 0, SETALL, 1, user()}, [&] { return 0; });
    count = slot.argument[1];
    if (error != 0) return fail(error);
    if (!copy_in(room(slot), memory, count * sizeof(unsigned short))) return fail(EFAULT);
  }
  std::uint64_t result = 0;
  const auto give = [&](const void* from, std::size_t bytes) {
    result = slot.value;
    return memory != nullptr && copy_out(memory, from, bytes) ? 0 : EFAULT;
  };
  const std::uint64_t value = operation == SETVAL ? word(int(last)) : 0;
  const int error =
      call_and_take(slot, abi::Call::sem_control, {word(number), count, word(operation), value, user()}, [&] {
        switch (operation) {
          case IPC_STAT:
          case SEM_STAT:
          case SEM_STAT_ANY: return give(slot.output, sizeof(semid_ds));
          case IPC_INFO:
          case SEM_INFO: return give(slot.output, sizeof(seminfo));
          case GETALL: return give(room(slot), std::min(slot.argument[1] * sizeof(unsigned short), kRoom));
          default: result = slot.value; return 0;
        }
      });
  return error == 0 ? int(result) : fail(error);
}

struct MessageBegin {
  long type;
};

int send(abi::ThreadSlot& slot, int number, const void* message, std::size_t bytes, int flags) {
  MessageBegin begin{};
  if (bytes > kRoom) return fail(EINVAL);
  const auto* text = static_cast<const char*>(message) + sizeof begin;
  charge(slot, abi::CpuCost::system_call);
  if (!copy_in(&begin, message, sizeof begin) || (bytes != 0 && !copy_in(room(slot), text, bytes))) return fail(EFAULT);
  const int error = call(slot, abi::Call::msg_send, {word(number), word(begin.type), bytes, word(flags), user()});
  return error == 0 ? 0 : fail(error);
}

ssize_t receive(abi::ThreadSlot& slot, int number, void* message, std::size_t most, long type, int flags) {
  charge(slot, abi::CpuCost::system_call);
  std::uint64_t got = 0;
  const int error =
      call_and_take(slot, abi::Call::msg_receive, {word(number), word(type), most, word(flags), user()}, [&] {
        got = std::min<std::uint64_t>(slot.value, std::min(most, kRoom));
        const MessageBegin begin{long(slot.argument[1])};
        auto* text = static_cast<char*>(message) + sizeof begin;
        const bool taken = copy_out(message, &begin, sizeof begin) && (got == 0 || copy_out(text, room(slot), got));
        return taken ? 0 : EFAULT;
      });
  return error == 0 ? ssize_t(got) : fail(error);
}

int control_queue(abi::ThreadSlot& slot, int number, int operation, msqid_ds* queue) {
  charge(slot, abi::CpuCost::system_call);
  operation &= ~0x100;
  if (operation == IPC_SET && !copy_in(slot.input, queue, sizeof *queue)) return fail(EFAULT);
  std::uint64_t result = 0;
  const int error = call_and_take(slot, abi::Call::msg_control, {word(number), word(operation), user()}, [&] {
    const bool is_info = operation == IPC_INFO || operation == MSG_INFO;
    const bool tells = is_info || operation == IPC_STAT || operation == MSG_STAT || operation == MSG_STAT_ANY;
    result = slot.value;
    return !tells || copy_out(queue, slot.output, is_info ? sizeof(msginfo) : sizeof *queue) ? 0 : EFAULT;
  });
  return error == 0 ? int(result) : fail(error);
}

}  // namespace
}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int semget(key_t key, int count, int flags) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_semget(key, count, flags);
  charge(*slot, abi::CpuCost::system_call);
  const int error = call(*slot, abi::Call::sem_get, {std::uint32_t(key), word(count), word(flags), user()});
  return error == 0 ? int(slot->value) : fail(error);
}
RNICSIM_EXPORT int semtimedop(int number, sembuf* operations, size_t count, const timespec* limit) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_semtimedop(number, operations, count, limit);
  return operate(*slot, number, operations, count, limit);
}
RNICSIM_EXPORT int semop(int number, sembuf* operations, size_t count) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_semop(number, operations, count);
  return operate(*slot, number, operations, count, nullptr);
}
RNICSIM_EXPORT int semctl(int number, int which, int operation, ...) noexcept {
  va_list list;
  va_start(list, operation);
  const long last = va_arg(list, long);
  va_end(list);
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_semctl(number, which, operation, last);
  return control_semaphores(*slot, number, which, operation, last);
}

RNICSIM_EXPORT int msgget(key_t key, int flags) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_msgget(key, flags);
  charge(*slot, abi::CpuCost::system_call);
  const int error = call(*slot, abi::Call::msg_get, {std::uint32_t(key), word(flags), user()});
  return error == 0 ? int(slot->value) : fail(error);
}
RNICSIM_EXPORT int msgsnd(int number, const void* message, size_t bytes, int flags) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_msgsnd(number, message, bytes, flags);
  return cancellably([&] { return send(*slot, number, message, bytes, flags); });
}
RNICSIM_EXPORT ssize_t msgrcv(int number, void* message, size_t most, long type, int flags) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_msgrcv(number, message, most, type, flags);
  return cancellably([&] { return receive(*slot, number, message, most, type, flags); });
}
RNICSIM_EXPORT int msgctl(int number, int operation, msqid_ds* queue) noexcept {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_msgctl(number, operation, queue);
  return control_queue(*slot, number, operation, queue);
}
