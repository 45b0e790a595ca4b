// SPDX-License-Identifier: Apache-2.0
// Steps of one worker, alone or with its own threads and children.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

void wait_somehow() {
  const Wait& wait = wait_number(me.dice.below(wait_count()));
  if (wait.by_one_worker && (me.worker != 0 || me.is_child)) return;
  me.step = wait.name;
  const Time longest = wait.unit == kMillisecond ? 5 * kMillisecond : (me.dice.once_in(8) ? 3'000'000 : 200'000);
  const Time length = std::max<Time>(me.dice.below(std::uint64_t(longest)) / wait.unit * wait.unit, wait.unit);
  const Time began = now();
  wait.wait(length);
  expect_elapsed(began, length, wait.name, wait.late);
}

void compare_clocks() {
  const Time first = now();
  const Time wall = now(CLOCK_REALTIME);
  timeval day{};
  gettimeofday(&day, nullptr);
  timespec by_number{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &by_number);
  const Time last = now();
  const Time raw = Time(by_number.tv_sec) * 1'000'000'000 + by_number.tv_nsec;
  expect(first <= raw && raw <= last, "clock_gettime by number", raw, first);
  const Time of_day = (day.tv_sec * 1'000'000 + day.tv_usec) * kMicrosecond;
  expect(of_day >= wall - kMicrosecond && of_day <= wall + (last - first), "gettimeofday", of_day, wall);
  static const Time apart = now(CLOCK_REALTIME) - now();
  const Time error = wall - first - apart;
  expect(error >= -kMicrosecond && (error <= kSlack || is_on_a_real_host()), "the wall clock and the monotonic one",
         error);
}

// Each thread sleeps for `length` and adds `adds`.
struct Task {
  std::atomic<int>* sum;
  int adds;
  Time length;
};
void make_threads() {
  Task tasks[4];
  pthread_t threads[4];
  std::atomic<int> sum{0};
  const unsigned count = me.dice.between(1, 4);
  const bool detached = me.dice.once_in(4);
  const Time began = now();
  Time longest = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (unsigned i = 0; i < count; ++i) {
    tasks[i] = {&sum, 1 << i, me.dice.below(200'000)};
    longest = std::max(longest, tasks[i].length);
    const auto run = [](void* opaque) -> void* {
      const Task task = *static_cast<Task*>(opaque);
      const timespec request = to_timespec(task.length);
      nanosleep(&request, nullptr);
      *task.sum += task.adds;
      return opaque;
    };
    expect(pthread_create(&threads[i], &attributes, run, &tasks[i]) == 0, "pthread_create");
  }
  for (unsigned i = 0; i < count && !detached; ++i) {
    void* result = nullptr;
    expect(pthread_join(threads[i], &result) == 0 && result == &tasks[i], "pthread_join");
  }
  while (detached && sum != (1 << count) - 1) usleep(50);
  expect(sum == (1 << count) - 1, "what threads have added", sum);
  expect_elapsed(began, longest, "threads that sleep side by side", 2 * kSlack);
}

void make_child() {
  const int code = int(me.dice.between(20, 99));
  const Time length = me.dice.below(300) * kMicrosecond;
  const Time began = now();
  const pid_t self = getpid();
  const pid_t child = fork();
  expect_call(child, "fork");
  if (child == 0) {
    if (getppid() != self) _exit(1);
    sleep_until(began + length);
    _exit(code);
  }
  int status = 0;
  switch (me.dice.below(3)) {
    case 0: expect(waitpid(child, &status, 0) == child, "waitpid", errno); break;
    case 1:
      for (pid_t ended; (ended = waitpid(child, &status, WNOHANG)) != child; usleep(30))
        expect(ended == 0, "waitpid at once", ended);
      break;
    default: {
      siginfo_t info{};
      expect_call(waitid(P_PID, id_t(child), &info, WEXITED), "waitid");
      expect(info.si_pid == child && info.si_code == CLD_EXITED, "waitid", info.si_pid, child);
      status = info.si_status << 8;
    }
  }
  expect(status == code << 8, "a child's exit status", status, code << 8);
  expect(kill(child, 0) == -1 && errno == ESRCH, "a child that was waited for", errno, ESRCH);
  expect_elapsed(began, length, "a child's life", 4 * kSlack);
}

// --- Files.

void use_a_file() {
  char path[64], other[80];
  snprintf(path, sizeof path, "/tmp/calls_walk.file.%d.%d", getpid(), gettid());
  snprintf(other, sizeof other, "%s.moved", path);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  expect_call(fd, "open");
  char text[100], back[100];
  const std::size_t size = me.dice.between(1, sizeof text);
  for (std::size_t i = 0; i < size; ++i) text[i] = char(me.dice.bits());
  write_whole(fd, text, size);
  expect(pread(fd, back, sizeof back, 0) == ssize_t(size) && memcmp(text, back, size) == 0, "a file's bytes");
  expect_call(rename(path, other), "rename");
  struct stat status {};
  expect(stat(other, &status) == 0 && status.st_size == off_t(size), "a file's size", status.st_size, long(size));
  expect(access(path, F_OK) == -1 && errno == ENOENT, "a file that was moved");
  const int again = open(other, O_RDWR);
  expect(flock(fd, LOCK_EX) == 0, "flock", errno);
  expect(flock(again, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK, "flock of what is locked", errno, EWOULDBLOCK);
  expect(flock(fd, LOCK_UN) == 0 && flock(again, LOCK_EX | LOCK_NB) == 0, "flock of what is free", errno);
  close(fd);
  close(again);
  expect_call(unlink(other), "unlink");
}

// A child holds a file lock, and its parent waits for the lock.
void wait_for_a_file() {
  char path[64];
  snprintf(path, sizeof path, "/tmp/calls_walk.lock.%d.%d", getpid(), gettid());
  const int fd = open(path, O_RDWR | O_CREAT, 0600);
  expect_call(fd, "open");
  const bool whole = me.dice.once_in(2);
  const auto lock = [&](int file) {
    struct flock record {};
    record.l_type = F_WRLCK;
    expect_call(whole ? flock(file, LOCK_EX) : fcntl(file, F_SETLKW, &record), "a file's lock");
  };
  int told[2];
  expect_call(pipe(told), "pipe");
  const Time ends = now() + 3 * kMillisecond + me.dice.below(500) * kMicrosecond;
  const pid_t child = fork();
  expect_call(child, "fork");
  if (child == 0) {
    lock(open(path, O_RDWR));
    write_whole(told[1], "x", 1);
    sleep_until(ends);
    _exit(0);
  }
  char byte;
  read_whole(told[0], &byte, 1);
  lock(fd);
  expect(now() >= ends && (now() <= ends + kMillisecond + kSlack || is_on_a_real_host()), "a file's lock", now(), ends);
  expect(waitpid(child, nullptr, 0) == child, "waitpid", errno);
  for (const int end : {told[0], told[1], fd}) close(end);
  unlink(path);
}

// open() of a named pipe waits for the other end. Runs in a separate child: end of file comes only when no process has
// a copy of the write end, and children of other workers could have one.
void talk_by_named_pipe() {
  const pid_t child = fork();
  expect_call(child, "fork");
  if (child != 0) {
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0, "those at a named pipe", status);
    return;
  }
  me.is_child = true;
  char path[64], byte = 'x';
  snprintf(path, sizeof path, "/tmp/calls_walk.pipe.%d", getpid());
  expect_call(mkfifo(path, 0600), "mkfifo");
  const Time opened = now() + me.dice.below(3000) * kMicrosecond;
  const bool reads = me.dice.once_in(2);
  const pid_t grandchild = fork();
  expect_call(grandchild, "fork");
  if ((grandchild == 0) == me.dice.once_in(2)) sleep_until(opened);
  const bool is_reader = (grandchild == 0) == reads;
  const int fd = open(path, is_reader ? O_RDONLY : O_WRONLY);
  expect_call(fd, "open of a named pipe");
  expect(now() >= opened, "a named pipe was opened by one alone", now(), opened);
  if (is_reader) {
    read_whole(fd, &byte, 1);
    expect(read(fd, &byte, 1) == 0, "the end of a named pipe", errno);
  } else {
    pause_a_little();
    write_whole(fd, &byte, 1);
  }
  close(fd);
  int status = 0;
  if (grandchild != 0) {
    expect(waitpid(grandchild, &status, 0) == grandchild && status == 0, "the other one at a named pipe", status);
    unlink(path);
  }
  _exit(0);
}

// --- Memory.

void map_memory() {
  const std::size_t page = 4096;
  const std::size_t pages = me.dice.between(1, 20);
  auto* memory = static_cast<unsigned char*>(
      mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  expect(memory != MAP_FAILED, "mmap", errno);
  const unsigned char value = static_cast<unsigned char>(me.dice.bits());
  memset(memory, value, pages * page);
  memory = static_cast<unsigned char*>(mremap(memory, pages * page, 2 * pages * page, MREMAP_MAYMOVE));
  expect(memory != MAP_FAILED, "mremap", errno);
  pause_a_little();
  expect(memory[0] == value && memory[pages * page - 1] == value && memory[pages * page] == 0, "memory that was moved");
  expect_call(mprotect(memory, page, PROT_READ), "mprotect");
  expect_call(munmap(memory, 2 * pages * page), "munmap");
}

// --- Descriptors.

void fill_a_pipe() {
  int ends[2];
  expect_call(pipe2(ends, O_NONBLOCK), "pipe2");
  char piece[3000] = {};
  std::size_t in = 0, out = 0;
  for (ssize_t part; (part = write(ends[1], piece, sizeof piece)) > 0;) in += std::size_t(part);
  expect(errno == EAGAIN && in >= 4096, "a pipe that is full", errno, EAGAIN);
  pollfd wanted{ends[1], POLLOUT, 0};
  const timespec soon = to_timespec(10 * kMicrosecond);
  expect(ppoll(&wanted, 1, &soon, nullptr) == 0, "a full pipe has room", wanted.revents);
  for (ssize_t part; (part = read(ends[0], piece, sizeof piece)) > 0;) out += std::size_t(part);
  expect(errno == EAGAIN && in == out, "a pipe that is empty", long(out), long(in));
  // The end of file is not tested: a child of another worker may have a copy of the write end.
  close(ends[1]);
  close(ends[0]);
}
void copy_descriptors() {
  const int counter = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK);
  const int copy = fcntl(counter, F_DUPFD_CLOEXEC, 500 + 10 * int(me.worker));
  const int other = dup(counter);
  expect(copy >= 500 && other >= 0, "copies of a descriptor", errno);
  close(counter);
  std::uint64_t one = 0;
  for (int i = 0; i < 3; ++i)
    expect(read(i == 1 ? copy : other, &one, sizeof one) == sizeof one && one == 1, "a counter's read", long(one), 1);
  expect(read(other, &one, sizeof one) == -1 && errno == EAGAIN, "a counter at nought", errno, EAGAIN);
  close(other);
  close(copy);
}

// --- Signals to the own thread or process. Pending signals are taken once each, by number, and for equal numbers in
// order of sending.

void take_own_signals() {
  const int queued = SIGRTMIN + 2 + int(me.worker);
  const bool to_process = me.dice.once_in(2);
  sigset_t set, waiting, before;
  sigemptyset(&set);
  sigaddset(&set, queued);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  const int count = int(me.dice.between(1, 5));
  for (int i = 0; i < count; ++i) {
    const sigval value{.sival_int = i};
    expect((to_process ? sigqueue(getpid(), queued, value) : pthread_sigqueue(pthread_self(), queued, value)) == 0,
           "sigqueue");
  }
  sigpending(&waiting);
  expect(sigismember(&waiting, queued) == 1, "a signal that waits does not show");
  for (int i = 0; i < count; ++i) {
    siginfo_t info{};
    const timespec at_once{};
    expect(sigtimedwait(&set, &info, &at_once) == queued, "a signal that waits", errno);
    expect(info.si_value.sival_int == i && info.si_pid == getpid(), "the order of signals", info.si_value.sival_int, i);
  }
  sigpending(&waiting);
  expect(sigismember(&waiting, queued) == 0, "a signal that was taken");
}

void ask_for_numbers() {
  expect(getpid() == syscall(SYS_getpid), "getpid by number");
  expect(gettid() == syscall(SYS_gettid), "gettid by number");
  if (!me.is_child) expect((gettid() == getpid()) == (me.worker == kMostWorkers), "the first thread's number");
  for (std::uint32_t i = me.dice.below(40); i > 0; --i) sched_yield();
}

constexpr Step kSteps[] = {
    {"wait", 24, true, wait_somehow},
    {"clocks", 4, true, compare_clocks},
    {"mutex", 10, true, lock_a_mutex},
    {"rwlock", 6, true, lock_for_reading_or_writing},
    {"permits", 6, true, take_a_permit},
    {"queue", 8, false, pass_through_queue},
    {"robust mutex", 2, false, leave_a_robust_mutex},
    {"barrier with a child", 2, false, count_down_together},
    {"threads", 4, false, make_threads},
    {"child", 3, false, make_child},
    {"cancel", 3, false, cancel_a_thread},
    {"program", 2, false, execute_a_program},
    {"descriptor", 2, false, hand_over_a_descriptor},
    {"file", 3, true, use_a_file},
    {"file lock", 2, false, wait_for_a_file},
    {"named pipe", 2, false, talk_by_named_pipe},
    {"memory", 3, true, map_memory},
    {"full pipe", 2, true, fill_a_pipe},
    {"copies", 2, true, copy_descriptors},
    {"own signals", 4, true, take_own_signals},
    {"numbers", 2, true, ask_for_numbers},
};

}  // namespace

const Step& draw_step() {
  constexpr unsigned kAll = std::accumulate(std::begin(kSteps), std::end(kSteps), 0u,
                                            [](unsigned sum, const Step& step) { return sum + step.weight; });
  for (;;) {
    std::uint32_t drawn = me.dice.below(kAll);
    const Step* step = kSteps;
    for (; drawn >= step->weight; ++step) drawn -= step->weight;
    if (me.is_child && !step->of_children) continue;
    me.step = step->name;
    return *step;
  }
}

}  // namespace walk
