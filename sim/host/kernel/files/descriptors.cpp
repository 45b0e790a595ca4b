// SPDX-License-Identifier: Apache-2.0
// Waits for descriptors. A thread in its turn must not block in the real kernel, because the world stands still until
// the thread gives its turn back.

#include "sim/host/kernel/files/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/kernel/signals/signals.h"
#include "sim/host/kernel/sockets/simulated_sockets.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/shim/spin/timed_look.h"
#include "sim/host/time/timeline.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(poll);
RNICSIM_NEXT(ppoll);
RNICSIM_NEXT(select);
RNICSIM_NEXT(pselect);
RNICSIM_NEXT(epoll_wait);
RNICSIM_NEXT(epoll_pwait);
RNICSIM_NEXT(close);

namespace rnicsim::clock {
namespace {

std::uint64_t deadline_after_ms(const abi::ThreadSlot& slot, int milliseconds) {
  return milliseconds < 0 ? abi::kForever : slot.now + std::uint64_t(milliseconds) * kMillisecond;
}
std::uint64_t deadline_after(const abi::ThreadSlot& slot, const timespec* time) {
  if (time == nullptr) return abi::kForever;
  return after(slot.now, picoseconds(*time));
}

// Makes a call that does not wait, and repeats it while the simulator's own signals interrupt it. errno stays on
// success.
template <class Call>
int undisturbed(Call call) {
  const int before = errno;
  int result;
  do result = call();
  while (result < 0 && errno == EINTR);
  if (result >= 0) errno = before;
  return result;
}

// Events that are ready now.
int epoll_now(int fd, epoll_event* events, int most) {
  return undisturbed([&] { return next_epoll_wait(fd, events, most, 0); });
}

// poll and epoll use the same bits. poll may name one descriptor several times: its events are joined.
std::uint32_t wanted_of(int fd, std::span<const pollfd> descriptors) {
  std::uint32_t wanted = 0;
  for (const pollfd& descriptor : descriptors)
    if (descriptor.fd == fd) wanted |= std::uint16_t(descriptor.events);
  return wanted;
}

// An epoll descriptor that is readable when one of `descriptors` is ready; -1 with errno. Files that are always ready
// are left out.
int gather(std::span<const pollfd> descriptors) {
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  for (const pollfd& descriptor : descriptors) {
    if (set < 0 || descriptor.fd < 0) continue;
    epoll_event event{};
    event.events = std::uint16_t(descriptor.events);
    if (::epoll_ctl(set, EPOLL_CTL_ADD, descriptor.fd, &event) == 0 || errno == EPERM) continue;
    event.events = wanted_of(descriptor.fd, descriptors);
    if (errno == EEXIST && ::epoll_ctl(set, EPOLL_CTL_MOD, descriptor.fd, &event) == 0) continue;
    next_close(set);
    return -1;
  }
  return set;
}

// Sends copies of the descriptors to the simulator; `count` is their number. False, with errno: not possible.
bool send_watched(abi::ThreadSlot& slot, std::span<const pollfd> descriptors, std::uint32_t& count) {
  int watched[abi::kMaxDescriptors];
  std::uint32_t events[abi::kMaxDescriptors];
  const auto wanted = std::ranges::count_if(descriptors, [](const pollfd& descriptor) { return descriptor.fd >= 0; });
  int set = -1;
  count = 0;
  if (wanted > std::ptrdiff_t(abi::kMaxDescriptors)) {
    set = gather(descriptors);
    if (set < 0) return false;
    watched[count] = set;
    events[count++] = POLLIN;
  } else {
    for (const pollfd& descriptor : descriptors) {
      if (descriptor.fd < 0) continue;
      watched[count] = descriptor.fd;
      events[count++] = std::uint16_t(descriptor.events);
    }
  }
  memcpy(slot.input, events, count * sizeof events[0]);
  slot.input_bytes = count * sizeof events[0];
  const bool sent = count == 0 || send_descriptors({watched, count});
  if (set >= 0) next_close(set);
  if (!sent) errno = ENOMEM;
  return sent;
}

// Longest wait of a call on a socket, in ps (SO_RCVTIMEO, SO_SNDTIMEO).
std::uint64_t patience_of(int fd, short events) {
  timeval limit{};
  socklen_t length = sizeof limit;
  const int name = events == POLLOUT ? SO_SNDTIMEO : SO_RCVTIMEO;
  const bool limited =
      raw_call(SYS_getsockopt, fd, SOL_SOCKET, name, &limit, &length) == 0 && (limit.tv_sec != 0 || limit.tv_usec != 0);
  return limited ? picoseconds(limit) : abi::kForever;
}

// True for a pipe, a socket within the host and an eventfd: others read what is written there at once, whatever their
// clocks. (The bytes of a TCP socket carry their time.)
bool tells_at_once(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && !S_ISREG(file.st_mode) && !S_ISCHR(file.st_mode) && !is_stream(fd);
}

// A program that only polls one socket of the network waits for it: after many polls, each poll waits in the simulator.
void look_again(abi::ThreadSlot& slot, int fd) {
  constexpr std::uint64_t kWait = 1000 * kMicrosecond;  // or until data arrive
  constinit thread_local static Repetition looks;
  constinit thread_local static int last = -1;
  const std::uint64_t before = looks.begin(fd == std::exchange(last, fd));
  charge(slot, abi::CpuCost::system_call);
  sync(slot);
  pollfd descriptor{fd, POLLIN, 0};
  if (poll_now({&descriptor, 1}) != 0) return looks.end_in_success();
  if (before >= kMostRepeated) wait_descriptors(slot, {&descriptor, 1}, slot.now + kWait);
  looks.end();
}

}  // namespace

int poll_now(std::span<pollfd> descriptors) {
  return undisturbed([&] { return next_poll(descriptors.data(), nfds_t(descriptors.size()), 0); });
}

int wait_descriptors(abi::ThreadSlot& slot, std::span<pollfd> descriptors, std::uint64_t deadline) {
  if (deadline <= slot.now) {
    sync(slot);
    return poll_now(descriptors);
  }
  for (;;) {
    std::uint32_t count = 0;
    cancellation_point();  // before the simulator has copies of the descriptors
    if (!send_watched(slot, descriptors, count)) return -1;
    const int error = call(slot, abi::Call::wait_descriptors, {deadline, count});
    if (ended_by_cancellation(error)) continue;
    if (error != 0 && error != ETIMEDOUT) {
      errno = error;
      return -1;
    }
    const int ready = poll_now(descriptors);
    if (ready != 0 || error == ETIMEDOUT) return ready;
  }
}

// False: the call does not wait, because the descriptor does not block or is not open for it.
static bool may_wait(int fd, short events) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int cannot = events == POLLIN ? O_WRONLY : O_RDONLY;
  return flags >= 0 && (flags & O_NONBLOCK) == 0 && (flags & O_ACCMODE) != cannot;
}
bool has_no_type(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && (file.st_mode & S_IFMT) == 0;
}

bool blocks(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) == 0;
}

bool wait_ready(abi::ThreadSlot& slot, int fd, short events) {
  pollfd descriptor{fd, events, 0};
  if (poll_now({&descriptor, 1}) != 0 || (has_no_type(fd) && is_epoll(fd))) return true;
  const std::uint64_t deadline = after(slot.now, patience_of(fd, events));
  for (;;) {
    const int ready = wait_descriptors(slot, {&descriptor, 1}, deadline);
    if (ready > 0) {
      end_quiet_time(slot);  // as in prepare()
      return true;
    }
    if (ready == 0) errno = EAGAIN;
    // A call with a time limit does not begin again.
    if (ready == 0 || errno != EINTR || deadline != abi::kForever || !restarts_after_signal()) return false;
  }
}

bool prepare(int fd, short events, bool dont_wait) {
  cancellation_point();
  if (is_kept(fd)) {
    errno = EBADF;
    return false;
  }
  if (const int refusal = refusal_of_stream(fd, events); refusal != 0) {
    errno = refusal;
    return false;
  }
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return true;
  const bool at_once = dont_wait || !may_wait(fd, events);
  const bool from_network = events == POLLIN && find_socket(fd);
  if (from_network && at_once) {
    look_again(*slot, fd);
    return true;
  }
  // Output of the program costs no time. The simulator reads it at the latest when it has the turn.
  const bool prints = (fd == 1 || fd == 2) && events == POLLOUT;
  if (!prints) charge(*slot, abi::CpuCost::system_call);
  const bool tells = !prints && tells_at_once(fd);
  if (from_network || (events == POLLOUT && tells)) sync(*slot);
  // Another thread may wait for these bytes or for this room; the simulator learns of them at the end of this turn.
  if (tells || from_network) end_quiet_time(*slot);
  return at_once || wait_ready(*slot, fd, events);
}

bool is_stream_socket(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return raw_call(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}
bool is_pipe(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && S_ISFIFO(file.st_mode);
}
bool is_pipe_or_socket(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode));
}

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT int poll(pollfd* descriptors, nfds_t count, int timeout) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_poll(descriptors, count, timeout);
  charge(*slot, abi::CpuCost::system_call);
  return wait_descriptors(*slot, {descriptors, count}, deadline_after_ms(*slot, timeout));
}

RNICSIM_EXPORT int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_ppoll(descriptors, count, timeout, mask);
  charge(*slot, abi::CpuCost::system_call);
  const MaskedWait masked(mask);
  if (masked.interrupted()) return -1;
  return wait_descriptors(*slot, {descriptors, count}, deadline_after(*slot, timeout));
}

static int select_until(abi::ThreadSlot& slot, int count, fd_set* in, fd_set* out, fd_set* except,
                        std::uint64_t deadline) {
  pollfd descriptors[FD_SETSIZE];
  std::size_t used = 0;
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    short events = 0;
    if (in != nullptr && FD_ISSET(fd, in)) events |= POLLIN;
    if (out != nullptr && FD_ISSET(fd, out)) events |= POLLOUT;
    if (except != nullptr && FD_ISSET(fd, except)) events |= POLLPRI;
    if (events != 0) descriptors[used++] = {fd, events, 0};
  }
  charge(slot, abi::CpuCost::system_call);
  if (wait_descriptors(slot, {descriptors, used}, deadline) < 0) return -1;
  int ready = 0;
  for (const pollfd& descriptor : std::span(descriptors, used)) {
    const auto settle = [&](fd_set* set, short wanted, short seen) {
      if ((descriptor.events & wanted) == 0) return;
      if ((descriptor.revents & seen) != 0) {
        ++ready;
      } else {
        FD_CLR(descriptor.fd, set);
      }
    };
    settle(in, POLLIN, POLLIN | POLLHUP | POLLERR);
    settle(out, POLLOUT, POLLOUT | POLLERR);
    settle(except, POLLPRI, POLLPRI);
  }
  return ready;
}

RNICSIM_EXPORT int select(int count, fd_set* in, fd_set* out, fd_set* except, timeval* timeout) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_select(count, in, out, except, timeout);
  if (timeout == nullptr) return select_until(*slot, count, in, out, except, abi::kForever);
  const std::uint64_t deadline = after(slot->now, picoseconds(*timeout));
  const int ready = select_until(*slot, count, in, out, except, deadline);
  *timeout = to_timeval(deadline > slot->now ? deadline - slot->now : 0);  // Linux alone does this
  return ready;
}
RNICSIM_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                           const sigset_t* mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pselect(count, in, out, except, timeout, mask);
  const MaskedWait masked(mask);
  if (masked.interrupted()) return -1;
  return select_until(*slot, count, in, out, except, deadline_after(*slot, timeout));
}

// An epoll descriptor is itself readable when one of its descriptors is ready.
static int epoll_until(abi::ThreadSlot& slot, int fd, epoll_event* events, int most, std::uint64_t deadline) {
  charge(slot, abi::CpuCost::system_call);
  sync(slot);
  const int ready = epoll_now(fd, events, most);
  if (ready != 0 || deadline <= slot.now) return ready;
  pollfd descriptor{fd, POLLIN, 0};
  if (wait_descriptors(slot, {&descriptor, 1}, deadline) < 0) return -1;
  return epoll_now(fd, events, most);
}
RNICSIM_EXPORT int epoll_wait(int fd, epoll_event* events, int most, int timeout) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_epoll_wait(fd, events, most, timeout);
  return epoll_until(*slot, fd, events, most, deadline_after_ms(*slot, timeout));
}
RNICSIM_EXPORT int epoll_pwait(int fd, epoll_event* events, int most, int timeout, const sigset_t* mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_epoll_pwait(fd, events, most, timeout, mask);
  const MaskedWait masked(mask);
  if (masked.interrupted()) return -1;
  return epoll_until(*slot, fd, events, most, deadline_after_ms(*slot, timeout));
}
