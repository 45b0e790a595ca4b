// SPDX-License-Identifier: Apache-2.0
// Media for lines: ways in which a thread sends a message to a thread of the same process, a child, or another host.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

void by_nothing(Line&) {}

// --- Descriptors that carry the message.

void open_pipe(Line& line) {
  expect_call(pipe2(line.descriptors, me.dice.once_in(2) ? O_CLOEXEC : 0), "pipe");
  // A duplicated descriptor behaves the same.
  if (!me.dice.once_in(4)) return;
  const int copy = dup(line.descriptors[1]);
  close(line.descriptors[1]);
  line.descriptors[1] = copy;
}
void open_sockets(Line& line, int type) { expect_call(socketpair(AF_UNIX, type, 0, line.descriptors), "socketpair"); }
void open_stream(Line& line) { open_sockets(line, SOCK_STREAM); }
void open_datagrams(Line& line) { open_sockets(line, SOCK_DGRAM); }
void open_packets(Line& line) { open_sockets(line, SOCK_SEQPACKET); }
void close_descriptors(Line& line) {
  for (int& fd : line.descriptors)
    if (fd >= 0) close(std::exchange(fd, -1));
}

void tell_descriptor(Line& line) {
  expect(write(line.descriptors[1], &line.told, sizeof line.told) == sizeof line.told, "write", errno);
}
bool hear_descriptor(Line& line, Time deadline) {
  // A read waits, too.
  const bool waits_by_read = deadline == kNever && me.dice.once_in(3);
  if (!waits_by_read && !await_readable(line.descriptors[0], &line.watch, deadline)) return false;
  read_whole(line.descriptors[0], &line.heard, sizeof line.heard);
  return true;
}

// --- The counter of an eventfd.

void open_event(Line& line) {
  line.descriptors[0] = eventfd(0, 0);
  line.descriptors[1] = dup(line.descriptors[0]);
  expect_call(line.descriptors[1], "eventfd");
}
void tell_event(Line& line) {
  const std::uint64_t one = 1;
  expect(write(line.descriptors[1], &one, sizeof one) == sizeof one, "write of an event", errno);
}
bool hear_event(Line& line, Time deadline) {
  const bool waits_by_read = deadline == kNever && me.dice.once_in(3);
  if (!waits_by_read && !await_readable(line.descriptors[0], &line.watch, deadline)) return false;
  std::uint64_t count = 0;
  read_whole(line.descriptors[0], &count, sizeof count);
  expect(count == 1, "events", long(count), 1);
  return true;
}

// --- A file that is created.

void tell_file(Line& line) {
  char whole[sizeof line.path + 8];
  snprintf(whole, sizeof whole, "%s.new", line.path);
  const int fd = open(whole, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  expect_call(fd, "open of a new file");
  write_whole(fd, &line.told, sizeof line.told);
  close(fd);
  expect_call(rename(whole, line.path), "rename");
}
bool hear_file(Line& line, Time deadline) {
  int fd;
  while ((fd = open(line.path, O_RDONLY)) < 0) {
    expect(errno == ENOENT, "open of a file that is to come", errno, ENOENT);
    if (now() >= deadline) return false;
    usleep(20);
  }
  read_whole(fd, &line.heard, sizeof line.heard);
  close(fd);
  unlink(line.path);
  return true;
}

// --- Words of memory.

long futex(Line& line, int operation, std::uint32_t value, const timespec* time = nullptr) {
  return syscall(SYS_futex, &line.word, operation | (line.is_shared ? 0 : FUTEX_PRIVATE_FLAG), value, time, nullptr,
                 FUTEX_BITSET_MATCH_ANY);
}
void tell_futex(Line& line) {
  line.word = 1;
  futex(line, FUTEX_WAKE, 1);
}
bool hear_futex(Line& line, Time deadline) {
  while (line.word == 0) {
    if (now() >= deadline) return false;
    const timespec until = to_timespec(deadline);
    const long result = futex(line, FUTEX_WAIT_BITSET, 0, deadline == kNever ? nullptr : &until);
    expect(result == 0 || errno == EAGAIN || errno == ETIMEDOUT, "FUTEX_WAIT_BITSET", errno);
  }
  line.word = 0;
  return true;
}
void tell_word(Line& line) { line.word = 1; }
bool hear_word(Line& line, Time deadline) {
  if (deadline == kNever) {
    while (line.word == 0) continue;
  } else {
    while (line.word == 0)
      if (now() >= deadline) return false;
  }
  line.word = 0;
  return true;
}
bool hear_word_yielding(Line& line, Time deadline) {
  while (line.word == 0) {
    if (deadline != kNever && now() >= deadline) return false;
    sched_yield();
  }
  line.word = 0;
  return true;
}

// --- POSIX locks.

void open_locks(Line& line) {
  const int shared = line.is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, shared);
  pthread_mutex_init(&line.mutex, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, shared);
  pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
  pthread_cond_init(&line.condition, &condition);
  sem_init(&line.semaphore, line.is_shared, 0);
}
void close_locks(Line& line) {
  pthread_cond_destroy(&line.condition);
  pthread_mutex_destroy(&line.mutex);
  sem_destroy(&line.semaphore);
}
void tell_condition(Line& line) {
  const bool within = me.dice.once_in(2);
  pthread_mutex_lock(&line.mutex);
  line.word = 1;
  if (within) pthread_cond_signal(&line.condition);
  pthread_mutex_unlock(&line.mutex);
  if (!within) pthread_cond_broadcast(&line.condition);
}
bool hear_condition(Line& line, Time deadline) {
  const timespec until = to_timespec(deadline);
  pthread_mutex_lock(&line.mutex);
  int error = 0;
  while (line.word == 0 && error == 0) {
    error = deadline == kNever ? pthread_cond_wait(&line.condition, &line.mutex)
                               : pthread_cond_timedwait(&line.condition, &line.mutex, &until);
  }
  expect(error == 0 || error == ETIMEDOUT, "pthread_cond_timedwait", error);
  const bool heard = line.word != 0;
  line.word = 0;
  pthread_mutex_unlock(&line.mutex);
  return heard;
}
void tell_semaphore(Line& line) { sem_post(&line.semaphore); }
bool hear_semaphore(Line& line, Time deadline) {
  if (deadline == kNever) {
    expect_call(sem_wait(&line.semaphore), "sem_wait");
    return true;
  }
  const timespec until = to_timespec(deadline);
  const int result = sem_clockwait(&line.semaphore, CLOCK_MONOTONIC, &until);
  expect(result == 0 || errno == ETIMEDOUT, "sem_clockwait", errno);
  return result == 0;
}

// --- Signals. All threads block them.

void tell_signal(Line& line) {
  const sigval value{.sival_int = int(line.told.token)};
  const int number = int(line.signal);
  const int error = line.process == getpid() ? pthread_sigqueue(line.thread, number, value)
                                             : (sigqueue(line.process, number, value) == 0 ? 0 : errno);
  expect(error == 0, "sigqueue", error);
}
bool hear_signal(Line& line, Time deadline) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, int(line.signal));
  siginfo_t info{};
  const timespec left = to_timespec(std::max<Time>(deadline - now(), 0));
  const int came = deadline == kNever ? sigwaitinfo(&set, &info) : sigtimedwait(&set, &info, &left);
  if (came < 0) {
    expect(errno == EAGAIN && deadline != kNever, "sigtimedwait", errno, EAGAIN);
    return false;
  }
  expect(came == int(line.signal), "a signal", came, line.signal);
  expect(info.si_value.sival_int == int(line.told.token), "a signal's value", info.si_value.sival_int, line.told.token);
  return true;
}

constexpr unsigned kLocal = Reach::threads | Reach::processes;
constexpr Medium kMedia[] = {
    {"pipe", kLocal, true, 0, kSlack, open_pipe, close_descriptors, tell_descriptor, hear_descriptor},
    {"socketpair", kLocal, true, 0, kSlack, open_stream, close_descriptors, tell_descriptor, hear_descriptor},
    {"socketpair of datagrams", kLocal, true, 0, kSlack, open_datagrams, close_descriptors, tell_descriptor,
     hear_descriptor},
    {"socketpair of packets", kLocal, true, 0, kSlack, open_packets, close_descriptors, tell_descriptor,
     hear_descriptor},
    {"eventfd", kLocal, true, 0, kSlack, open_event, close_descriptors, tell_event, hear_event},
    {"file", kLocal, true, kAhead, 100 * kMicrosecond, by_nothing, by_nothing, tell_file, hear_file},
    {"futex", kLocal, true, kAhead, kSlack, by_nothing, by_nothing, tell_futex, hear_futex},
    {"spinning", kLocal, true, kAhead, kSlack, by_nothing, by_nothing, tell_word, hear_word},
    {"yielding", kLocal, true, kAhead, 2 * kSlack, by_nothing, by_nothing, tell_word, hear_word_yielding},
    {"condition", kLocal, true, kAhead, kSlack, open_locks, close_locks, tell_condition, hear_condition},
    {"semaphore", kLocal, true, kAhead, kSlack, open_locks, close_locks, tell_semaphore, hear_semaphore},
    {"signal", kLocal, true, 0, kSlack, by_nothing, by_nothing, tell_signal, hear_signal},
    {"connection", Reach::hosts, true, 0, 2 * kSlack, by_nothing, by_nothing, tell_descriptor, hear_descriptor},
    {"datagrams", Reach::hosts, true, 0, 2 * kSlack, by_nothing, by_nothing, tell_descriptor, hear_descriptor},
};

bool carries_message(const Line& line) {
  return line.medium->tell == tell_descriptor || line.medium->tell == tell_file;
}

}  // namespace

const Medium& draw_medium(Dice& dice, unsigned reach) {
  for (;;) {
    const Medium& medium = kMedia[dice.below(std::size(kMedia))];
    if ((medium.reach & reach) != 0) return medium;
  }
}

void open_line(Line& line, const Medium& medium, bool shared) {
  static std::atomic<unsigned> number{0};
  line.medium = &medium;
  line.is_shared = shared;
  line.told = line.heard = {};
  line.word = 0;
  line.watch = -1;
  snprintf(line.path, sizeof line.path, "/tmp/calls_walk.%d.%u.%u", getpid(), me.worker, number++);
  medium.open(line);
}
void set_hearer(Line& line) {
  line.process = getpid();
  line.thread = pthread_self();
  line.signal = unsigned(SIGRTMIN) + 2 + me.worker;
}
void close_line(Line& line) {
  if (line.watch >= 0 && line.process == getpid()) close(line.watch);
  line.watch = -1;
  line.medium->close(line);
  line.medium = nullptr;
}

void tell(Line& line, std::int64_t token) {
  line.told = {token, now()};
  line.medium->tell(line);
}

bool hear(Line& line, Time deadline, Message& message) {
  const Time began = now();
  if (!line.medium->hear(line, deadline)) {
    expect_elapsed(began, std::max<Time>(deadline - began, 0), line.medium->name, line.medium->late);
    return false;
  }
  message = carries_message(line) ? line.heard : line.told;
  const Time heard = now();
  if (heard < message.sent - line.medium->early) fail(line.medium->name, heard, message.sent);
  const Time late = heard - std::max(began, message.sent);
  if (late > line.medium->late && !is_on_a_real_host()) fail(line.medium->name, late, line.medium->late);
  return true;
}
std::int64_t hear(Line& line) {
  Message message;
  hear(line, kNever, message);
  return message.token;
}

void write_whole(int fd, const void* bytes, std::size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t part = write(fd, next, size);
    expect_call(part, "write");
    next += part;
    size -= std::size_t(part);
  }
}
void read_whole(int fd, void* bytes, std::size_t size) {
  char* next = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t part = read(fd, next, size);
    expect_call(part, "read");
    expect(part != 0, "the end, with bytes still to come", long(size));
    next += part;
    size -= std::size_t(part);
  }
}

}  // namespace walk
