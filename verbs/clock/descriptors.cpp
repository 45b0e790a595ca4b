// Reads and waits that may block. A thread in its turn must not block in the real kernel: the world stands
// still until it comes back.

#include "verbs/clock/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "verbs/clock/cancellation.h"
#include "verbs/clock/event_descriptors.h"
#include "verbs/clock/known_descriptors.h"
#include "verbs/clock/message_sockets.h"
#include "verbs/clock/network.h"
#include "verbs/clock/next.h"
#include "verbs/clock/random.h"
#include "verbs/clock/raw_call.h"
#include "verbs/clock/session.h"
#include "verbs/clock/signal_descriptors.h"
#include "verbs/clock/signals.h"
#include "verbs/clock/timeline.h"
#include "verbs/clock/turn.h"
#include "verbs/clock/unix_sockets.h"

RNICSIM_NEXT(poll);
RNICSIM_NEXT(ppoll);
RNICSIM_NEXT(select);
RNICSIM_NEXT(pselect);
RNICSIM_NEXT(epoll_wait);
RNICSIM_NEXT(epoll_pwait);
RNICSIM_NEXT(read);
RNICSIM_NEXT(readv);
RNICSIM_NEXT(recv);
RNICSIM_NEXT(recvfrom);
RNICSIM_NEXT(recvmsg);
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

// A call that does not wait, as if the simulator's own signals had not come: no EINTR, and none left in errno.
template <class Call>
int undisturbed(Call call) {
  const int before = errno;
  int result;
  do result = call();
  while (result < 0 && errno == EINTR);
  if (result >= 0) errno = before;
  return result;
}

// What is ready now.
int epoll_now(int fd, epoll_event* events, int most) {
  return undisturbed([&] { return next_epoll_wait(fd, events, most, 0); });
}

// The bits of poll and epoll are the same. poll may name one descriptor several times.
std::uint32_t wanted_of(int fd, std::span<const pollfd> descriptors) {
  std::uint32_t wanted = 0;
  for (const pollfd& descriptor : descriptors)
    if (descriptor.fd == fd) wanted |= std::uint16_t(descriptor.events);
  return wanted;
}

// One descriptor that is readable when one of these is ready; -1 and errno. What is always ready is no part of it.
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

// Copies of what is to be watched go to the simulator, so many. False, with errno: they can't.
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

// How long a call on a socket may wait: SO_RCVTIMEO, SO_SNDTIMEO.
std::uint64_t patience_of(int fd, short events) {
  timeval limit{};
  socklen_t length = sizeof limit;
  const int name = events == POLLOUT ? SO_SNDTIMEO : SO_RCVTIMEO;
  const bool limited = raw_call(SYS_getsockopt, fd, SOL_SOCKET, name, &limit, &length) == 0 &&
                       (limit.tv_sec != 0 || limit.tv_usec != 0);
  return limited ? picoseconds(limit) : abi::kForever;
}

// A pipe, a socket within the host, a counter of events: what is written there others read at once, whatever their
// clocks. (A stream's bytes carry their time.)
bool tells_at_once(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && !S_ISREG(file.st_mode) && !S_ISCHR(file.st_mode) && !is_stream(fd);
}

// One part, of a message that is received without more.
ssize_t receive_part(int fd, const KnownDescriptor& socket, void* buffer, size_t bytes, int flags) {
  iovec part{buffer, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return receive_whole_message(fd, socket, message, flags);
}

KnownDescriptor known_in_turn(int fd) {
  return simulated_slot() != nullptr ? known(fd).value_or(KnownDescriptor{}) : KnownDescriptor{};
}

// A program that only asks one socket of the network waits for it, and the simulator is told.
void look_again(abi::ThreadSlot& slot, int fd) {
  constexpr std::uint64_t kWait = 1000 * kMicrosecond;  // or until something comes
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
    cancellation_point();  // before the simulator has copies of them
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

// A call that fails at once waits for nothing.
static bool may_wait(int fd, short events) {
  const int flags = ::fcntl(fd, F_GETFL);
  const int cannot = events == POLLIN ? O_WRONLY : O_RDONLY;
  return flags >= 0 && (flags & O_NONBLOCK) == 0 && (flags & O_ACCMODE) != cannot;
}
// An epoll descriptor, among others.
static bool has_no_type(int fd) {
  struct stat file {};
  return raw_call(SYS_fstat, fd, &file) == 0 && (file.st_mode & S_IFMT) == 0;
}

// Nothing is there at once; and a counter's eight bytes (eventfd, timerfd) are refused to less room, whatever it shows.
static bool reads_at_once(int fd, std::size_t bytes) {
  return bytes == 0 || (bytes < sizeof(std::uint64_t) && has_no_type(fd));
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
    if (ready > 0) return true;
    if (ready == 0) errno = EAGAIN;
    // With a time limit a call does not begin again.
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
  // What a program prints costs it nothing; the simulator takes it at the latest when the turn is its own.
  const bool prints = (fd == 1 || fd == 2) && events == POLLOUT;
  if (!prints) charge(*slot, abi::CpuCost::system_call);
  if (from_network || (!prints && events == POLLOUT && tells_at_once(fd))) sync(*slot);
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

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace rnicsim::clock

using namespace rnicsim;
using namespace rnicsim::clock;

RNICSIM_EXPORT ssize_t read(int fd, void* buffer, size_t bytes) {
  const KnownDescriptor descriptor = known_in_turn(fd);
  if (descriptor.is_random) {
    draw(buffer, bytes);
    return ssize_t(bytes);
  }
  if (descriptor.signals != 0) {
    iovec part{buffer, bytes};
    return read_signals(fd, descriptor.signals, {&part, 1});
  }
  if (const auto socket = find_message_socket(fd)) return bytes == 0 ? 0 : receive_part(fd, *socket, buffer, bytes, 0);
  // (A receive of nothing waits for data, as Linux's does.)
  // One that was set to a time that is past has ended.
  if (descriptor.timer != 0) sync(*simulated_slot());
  if (!prepare(fd, POLLIN, reads_at_once(fd, bytes))) return -1;
  return settle_end(fd, bytes, next_read(fd, buffer, bytes));
}
RNICSIM_EXPORT ssize_t readv(int fd, const iovec* parts, int count) {
  const KnownDescriptor descriptor = known_in_turn(fd);
  if (descriptor.is_random) {
    for (int i = 0; i < count; ++i) draw(parts[i].iov_base, parts[i].iov_len);
    return ssize_t(bytes_of({parts, std::size_t(std::max(count, 0))}));
  }
  const std::size_t bytes = bytes_of({parts, std::size_t(std::max(count, 0))});
  if (const auto socket = find_message_socket(fd); socket && count <= IOV_MAX) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = std::size_t(std::max(count, 0));
    return bytes == 0 ? 0 : receive_whole_message(fd, *socket, message, 0);
  }
  if (descriptor.signals != 0 && count >= 0 && count <= IOV_MAX)
    return read_signals(fd, descriptor.signals, {parts, std::size_t(count)});
  if (!prepare(fd, POLLIN, reads_at_once(fd, bytes))) return -1;
  return settle_end(fd, bytes, next_readv(fd, parts, count));
}

// MSG_WAITALL means to block for the rest; the rest is on its way in simulated time.
static bool waits_for_all(int fd, size_t bytes, int flags) {
  const bool is_asked = (flags & (MSG_WAITALL | MSG_DONTWAIT | MSG_PEEK)) == MSG_WAITALL;
  return is_asked && bytes != 0 && simulated_slot() != nullptr && is_stream_socket(fd);
}
// Until there are `bytes`, or what the last receive answered: the end, or an error.
static ssize_t receive_up_to(int fd, void* buffer, size_t bytes, int flags, size_t& got) {
  ssize_t part = 1;
  while (got < bytes && part > 0) {
    if (!prepare(fd, POLLIN, false)) return -1;
    part = next_recv(fd, static_cast<char*>(buffer) + got, bytes - got, flags & ~MSG_WAITALL);
    if (part > 0) got += size_t(part);
  }
  return part;
}
static ssize_t receive_all(int fd, void* buffer, size_t bytes, int flags) {
  size_t got = 0;
  const ssize_t last = receive_up_to(fd, buffer, bytes, flags, got);
  return got > 0 ? ssize_t(got) : settle_end(fd, bytes, last);
}
// A message, without control data, of which so much has been received. What ends it early is for the next receive.
static ssize_t receive_rest(int fd, const msghdr& message, size_t got, int flags) {
  size_t begin = 0;  // of a part
  for (size_t i = 0; i < message.msg_iovlen && got >= begin; ++i) {
    const iovec& part = message.msg_iov[i];
    size_t held = std::min(got - begin, part.iov_len);
    got -= held;
    receive_up_to(fd, part.iov_base, part.iov_len, flags, held);
    got += held;
    begin += part.iov_len;
  }
  return ssize_t(got);
}
RNICSIM_EXPORT ssize_t recv(int fd, void* buffer, size_t bytes, int flags) {
  if (const auto socket = find_message_socket(fd)) return receive_part(fd, *socket, buffer, bytes, flags);
  if (waits_for_all(fd, bytes, flags)) return receive_all(fd, buffer, bytes, flags);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  return settle_end(fd, bytes, next_recv(fd, buffer, bytes, flags));
}
RNICSIM_EXPORT ssize_t recvfrom(int fd, void* buffer, size_t bytes, int flags, sockaddr* from, socklen_t* length) {
  if (const auto socket = find_message_socket(fd)) {
    iovec part{buffer, bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_name = length != nullptr ? from : nullptr;
    message.msg_namelen = message.msg_name != nullptr ? *length : 0;
    const ssize_t result = receive_whole_message(fd, *socket, message, flags);
    if (result >= 0 && message.msg_name != nullptr) *length = message.msg_namelen;
    return result;
  }
  if (waits_for_all(fd, bytes, flags)) {
    if (from != nullptr && length != nullptr) *length = 0;
    return receive_all(fd, buffer, bytes, flags);
  }
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  return with_unix_name(from, length, [&] {
    return settle_end(fd, bytes, next_recvfrom(fd, buffer, bytes, flags, from, length));
  });
}
// Those that came with a message.
static void know_received(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received;
      memcpy(&received, CMSG_DATA(control) + i * sizeof received, sizeof received);
      know_inherited_socket(received);
      if (is_event_descriptor(received)) know_event(received);
    }
  }
}
RNICSIM_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (const auto socket = find_message_socket(fd)) return receive_whole_message(fd, *socket, *message, flags);
  if (!prepare(fd, POLLIN, (flags & MSG_DONTWAIT) != 0)) return -1;
  const socklen_t room = message->msg_namelen;
  const size_t bytes = bytes_of({message->msg_iov, message->msg_iovlen});
  // Control data ends a message.
  const bool for_all = (message->msg_controllen == 0 || is_stream(fd)) && waits_for_all(fd, bytes, flags);
  const ssize_t result = settle_end(fd, bytes, next_recvmsg(fd, message, for_all ? flags & ~MSG_WAITALL : flags));
  if (result < 0) return result;
  hide_unix_address(static_cast<sockaddr*>(message->msg_name), room, &message->msg_namelen);
  know_received(*message);
  return for_all && result > 0 ? receive_rest(fd, *message, size_t(result), flags) : result;
}

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
  timespec converted{};
  if (timeout != nullptr) converted = {timeout->tv_sec, timeout->tv_usec * 1000};
  return select_until(*slot, count, in, out, except, deadline_after(*slot, timeout != nullptr ? &converted : nullptr));
}
RNICSIM_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* except, const timespec* timeout,
                           const sigset_t* mask) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return next_pselect(count, in, out, except, timeout, mask);
  const MaskedWait masked(mask);
  if (masked.interrupted()) return -1;
  return select_until(*slot, count, in, out, except, deadline_after(*slot, timeout));
}

// An epoll descriptor is itself readable when something in it is ready.
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
