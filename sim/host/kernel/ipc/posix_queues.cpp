// SPDX-License-Identifier: Apache-2.0
// POSIX message queues: the real kernel's, under names of the simulated host. Waits for them end in simulated time.

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/host_path.h"
#include "sim/host/kernel/ipc/posix_queues.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/noted_calls.h"
#include "sim/host/shim/own_memory.h"
#include "sim/host/shim/perhaps_null.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(mq_open);
RNICSIM_NEXT(mq_unlink);
RNICSIM_NEXT(mq_timedsend);
RNICSIM_NEXT(mq_timedreceive);
RNICSIM_NEXT(mq_notify);

namespace rnicsim::clock {
namespace {

constexpr char kFolder[] = "/dev/shm/.mqueue";  // one of the host's own folders: a file for each queue that the
                                                // simulator removes at the end

class QueueName {
 public:
  explicit QueueName(const char* given) : name_(given) {
    if (session() == nullptr || given[0] != '/' || given[1] == 0 || strchr(given + 1, '/') != nullptr) return;
    if (snprintf(buffer_, sizeof buffer_, "/%s%s", host_tag(), given + 1) < int(sizeof buffer_)) name_ = buffer_;
    snprintf(note_, sizeof note_, "%s%s", kFolder, given);
  }
  const char* get() const { return name_; }
  void note() const {
    if (note_[0] == 0) return;
    const int saved = errno;
    ::mkdir(kFolder, 0700);
    const int fd = ::open(note_, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    errno = saved;
  }
  void forget() const {
    const int saved = errno;
    if (note_[0] != 0) ::unlink(note_);
    errno = saved;
  }

 private:
  const char* name_;
  char buffer_[PATH_MAX];
  char note_[PATH_MAX] = {};
};

bool refuse(int error) {
  errno = error;
  return false;
}

// True: the call fails at once, and does not wait.
bool is_refused(mqd_t queue, short events, std::size_t bytes) {
  const bool sends = events == POLLOUT;
  const int mode = ::fcntl(queue, F_GETFL);
  mq_attr attributes;
  if (mode < 0 || (mode & O_ACCMODE) == (sends ? O_RDONLY : O_WRONLY) || ::mq_getattr(queue, &attributes) != 0)
    return true;
  const auto most = std::size_t(attributes.mq_msgsize);
  return sends ? bytes > most : bytes < most;
}

// Waits before a call that would block. False: the call fails with errno.
bool wait_for_queue(mqd_t queue, short events, std::size_t bytes, const timespec* limit) {
  abi::ThreadSlot& slot = *simulated_slot();
  charge(slot, abi::CpuCost::system_call);
  sync(slot);
  pollfd wanted{queue, events, 0};
  if (!blocks(queue) || is_refused(queue, events, bytes)) return true;
  if (wait_descriptors(slot, {&wanted, 1}, slot.now) != 0) return true;
  timespec until{};
  if (limit != nullptr && !copy_in(&until, limit, sizeof until)) return refuse(EFAULT);
  if (limit != nullptr && (until.tv_sec < 0 || !valid_nanoseconds(until))) return refuse(EINVAL);
  const std::uint64_t deadline = limit != nullptr ? moment(CLOCK_REALTIME, until) : abi::kForever;
  for (;;) {
    const int ready = wait_descriptors(slot, {&wanted, 1}, deadline);
    if (ready > 0) return true;
    if (ready == 0) return refuse(ETIMEDOUT);
    if (errno != EINTR || !restarts_after_signal()) return false;
  }
}

}  // namespace

int open_queue(const char* name, int flags, mode_t mode, mq_attr* attributes) {
  const QueueName own(name);
  const auto queue = next_mq_open(own.get(), flags, mode, attributes);
  if (queue != mqd_t(-1) && (flags & O_CREAT) != 0) own.note();
  return queue;
}

// The kernel's names have no slash at the beginning.
int open_queue_call(const char* name, int flags, mode_t mode, mq_attr* attributes) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "/%s", name);
  return open_queue(whole, flags, mode, attributes);
}
int unlink_queue_call(const char* name) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "/%s", name);
  return ::mq_unlink(whole);
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT mqd_t mq_open(const char* name, int flags, ...) noexcept {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? mode_t(va_arg(list, unsigned)) : 0;
  mq_attr* attributes = (flags & O_CREAT) != 0 ? va_arg(list, mq_attr*) : nullptr;
  va_end(list);
  return open_queue(name, flags, mode, attributes);
}
RNICSIM_EXPORT int mq_unlink(const char* name) noexcept {
  const QueueName own(name);
  const int result = next_mq_unlink(own.get());
  if (result == 0) own.forget();
  return result;
}

// `limit` may be null: no limit.
// A queue that is ready in a thread's turn stays ready until the thread uses it.
static int send_to_queue(mqd_t queue, const char* message, size_t bytes, unsigned priority, const timespec* limit) {
  const bool is_simulated = simulated_slot() != nullptr;
  if (is_simulated && !wait_for_queue(queue, POLLOUT, bytes, limit)) return -1;
  return next_mq_timedsend(queue, message, bytes, priority, is_simulated ? nullptr : limit);
}
static ssize_t receive_from_queue(mqd_t queue, char* message, size_t bytes, unsigned* priority, const timespec* limit) {
  const bool is_simulated = simulated_slot() != nullptr;
  if (is_simulated && !wait_for_queue(queue, POLLIN, bytes, limit)) return -1;
  return next_mq_timedreceive(queue, message, bytes, priority, is_simulated ? nullptr : limit);
}

RNICSIM_EXPORT int mq_timedsend(mqd_t queue, const char* message, size_t bytes, unsigned priority,
                                const timespec* limit) {
  return send_to_queue(queue, message, bytes, priority, perhaps_null(limit));
}
RNICSIM_EXPORT int mq_send(mqd_t queue, const char* message, size_t bytes, unsigned priority) {
  return send_to_queue(queue, message, bytes, priority, nullptr);
}
RNICSIM_EXPORT ssize_t mq_timedreceive(mqd_t queue, char* __restrict message, size_t bytes,
                                       unsigned* __restrict priority, const timespec* __restrict limit) {
  return receive_from_queue(queue, message, bytes, priority, perhaps_null(limit));
}
RNICSIM_EXPORT ssize_t mq_receive(mqd_t queue, char* message, size_t bytes, unsigned* priority) {
  return receive_from_queue(queue, message, bytes, priority, nullptr);
}

// The real kernel sends the notification, at no fixed simulated time.
RNICSIM_EXPORT int mq_notify(mqd_t queue, const sigevent* event) noexcept {
  note_real_call(SYS_mq_notify);
  return next_mq_notify(queue, event);
}

// mq_open() in programs compiled with _FORTIFY_SOURCE.
RNICSIM_EXPORT mqd_t __mq_open_2(const char* name, int flags) noexcept { return open_queue(name, flags, 0, nullptr); }
