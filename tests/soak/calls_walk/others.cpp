// SPDX-License-Identifier: Apache-2.0
// Steps that cancel a thread of the worker, execute a program, and pass a descriptor.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

// --- Cancellation.

struct Cancelled {
  int pipe[2] = {-1, -1};
  sem_t semaphore;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  void (*wait)(Cancelled& self) = nullptr;
  Time refuses_until = 0;
  Time cleaned = 0;
  bool has_mutex = false;
};

constexpr timespec kLong{100, 0};
struct {
  const char* name;
  void (*wait)(Cancelled& self);
} constexpr kCancellable[] = {
    {"nanosleep", [](Cancelled&) { nanosleep(&kLong, nullptr); }},
    {"pause", [](Cancelled&) { pause(); }},
    {"read",
     [](Cancelled& self) {
       char byte;
       expect(read(self.pipe[0], &byte, 1) < 0, "a read of nothing");
     }},
    {"poll",
     [](Cancelled& self) {
       pollfd wanted{self.pipe[0], POLLIN, 0};
       poll(&wanted, 1, -1);
     }},
    {"select",
     [](Cancelled& self) {
       fd_set set;
       FD_ZERO(&set);
       FD_SET(self.pipe[0], &set);
       select(self.pipe[0] + 1, &set, nullptr, nullptr, nullptr);
     }},
    {"sem_wait", [](Cancelled& self) { sem_wait(&self.semaphore); }},
    {"pthread_cond_wait",
     [](Cancelled& self) {
       pthread_mutex_lock(&self.mutex);
       self.has_mutex = true;
       for (;;) pthread_cond_wait(&self.condition, &self.mutex);
     }},
    {"sigwaitinfo",
     [](Cancelled&) {
       sigset_t set;
       sigemptyset(&set);
       sigaddset(&set, SIGRTMAX);
       sigwaitinfo(&set, nullptr);
     }},
    {"pthread_testcancel",
     [](Cancelled&) {
       for (;; usleep(20)) pthread_testcancel();
     }},
};

void clean_up(void* opaque) {
  auto& self = *static_cast<Cancelled*>(opaque);
  if (self.has_mutex) expect(pthread_mutex_unlock(&self.mutex) == 0, "a cancelled thread has its mutex");
  self.cleaned = now();
}
void* wait_to_be_cancelled(void* opaque) {
  auto& self = *static_cast<Cancelled*>(opaque);
  pthread_cleanup_push(clean_up, opaque);
  if (self.refuses_until != 0) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    sleep_until(self.refuses_until);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
  }
  self.wait(self);
  pthread_cleanup_pop(0);
  return nullptr;
}

}  // namespace

void cancel_a_thread() {
  Cancelled self;
  const auto& way = kCancellable[me.dice.below(std::size(kCancellable))];
  me.step = way.name;
  self.wait = way.wait;
  sem_init(&self.semaphore, 0, 0);
  expect_call(pipe(self.pipe), "pipe");
  const Time cancelled = now() + me.dice.below(500) * kMicrosecond;
  if (me.dice.once_in(3)) self.refuses_until = cancelled + me.dice.below(300) * kMicrosecond;
  pthread_t thread;
  expect(pthread_create(&thread, nullptr, wait_to_be_cancelled, &self) == 0, "pthread_create");
  sleep_until(cancelled);
  expect(pthread_cancel(thread) == 0, "pthread_cancel");
  void* result = nullptr;
  expect(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "the result of a cancelled thread",
         reinterpret_cast<long>(result), -1);
  const Time due = std::max(cancelled, self.refuses_until);
  expect(self.cleaned >= due - kAhead && (self.cleaned <= due + 2 * kSlack || is_on_a_real_host()),
         "when a thread is cancelled", self.cleaned, due);
  sem_destroy(&self.semaphore);
  for (const int end : self.pipe) close(end);
}

// --- An executed program that answers each question after a pause.

namespace {

struct Question {
  std::int64_t token;
  Time pause;
};
constexpr std::int64_t kNoMore = -1;

pid_t execute(char* const arguments[], int in, int out) {
  if (me.dice.once_in(3)) {
    pid_t child = -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    expect(posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ) == 0, "posix_spawn");
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }
  const bool shares_memory = me.dice.once_in(2);
  const pid_t child = shares_memory ? vfork() : fork();
  expect_call(child, "fork");
  if (child == 0) {
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0) _exit(1);
    execv("/proc/self/exe", arguments);
    _exit(2);
  }
  return child;
}

}  // namespace

void execute_a_program() {
  int questions[2], answers[2];
  expect_call(pipe2(questions, O_CLOEXEC), "pipe2");
  expect_call(pipe2(answers, O_CLOEXEC), "pipe2");
  char name[] = "calls_walk", mode[] = "answer", code[8];
  const int wanted = int(me.dice.between(20, 99));
  snprintf(code, sizeof code, "%d", wanted);
  char* const arguments[] = {name, mode, code, nullptr};
  const pid_t child = execute(arguments, questions[0], answers[1]);
  const std::uint32_t count = me.dice.below(5);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Question question{me.dice.below(1'000'000), Time(me.dice.below(300)) * kMicrosecond};
    const Time asked = now();
    write_whole(questions[1], &question, sizeof question);
    std::int64_t answer = 0;
    read_whole(answers[0], &answer, sizeof answer);
    expect(answer == question.token + 1, "a program's answer", answer, question.token + 1);
    // The first answer includes the start of the program.
    if (i != 0) expect_elapsed(asked, question.pause, "the time that a program takes", 3 * kSlack);
  }
  const Question last{kNoMore, 0};
  write_whole(questions[1], &last, sizeof last);
  int status = 0;
  expect(waitpid(child, &status, 0) == child, "waitpid", errno);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == wanted, "a program's exit status", status, wanted << 8);
  for (const int end : {questions[0], questions[1], answers[0], answers[1]}) close(end);
}

int answer_questions(int code) {
  for (;;) {
    Question question{};
    read_whole(0, &question, sizeof question);
    if (question.token == kNoMore) return code;
    sleep_until(now() + question.pause);
    ++question.token;
    write_whole(1, &question.token, sizeof question.token);
  }
}

// --- A descriptor: a child makes a pipe, and passes the read end to its parent.

namespace {

// A message of one byte with room for a descriptor.
struct Carrier {
  char byte = 'd';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  Carrier() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
};

void send_descriptor(int socket, int descriptor) {
  Carrier carrier;
  cmsghdr* header = CMSG_FIRSTHDR(&carrier.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  expect(sendmsg(socket, &carrier.message, 0) == 1, "sendmsg with a descriptor", errno);
}
int receive_descriptor(int socket) {
  Carrier carrier;
  carrier.byte = 0;
  expect(recvmsg(socket, &carrier.message, MSG_CMSG_CLOEXEC) == 1 && carrier.byte == 'd', "recvmsg", errno);
  const cmsghdr* header = CMSG_FIRSTHDR(&carrier.message);
  expect(header != nullptr && header->cmsg_type == SCM_RIGHTS, "a message with a descriptor");
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

}  // namespace

void hand_over_a_descriptor() {
  constexpr int kTypes[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
  int ends[2];
  expect_call(socketpair(AF_UNIX, kTypes[me.dice.below(std::size(kTypes))] | SOCK_CLOEXEC, 0, ends), "socketpair");
  const std::uint32_t count = me.dice.between(1, 6);
  const Time pause = me.dice.below(200) * kMicrosecond;
  const Time began = now();
  const pid_t child = fork();
  expect_call(child, "fork");
  if (child == 0) {
    int handed[2];
    expect_call(pipe(handed), "pipe");
    if (me.dice.once_in(2)) sleep_until(now() + pause);
    send_descriptor(ends[1], handed[0]);
    close(handed[0]);
    for (std::uint32_t i = 0; i < count; ++i) {
      sleep_until(now() + pause);
      const std::uint32_t bytes[2] = {i, i * 7};
      write_whole(handed[1], bytes, sizeof bytes);
    }
    _exit(0);
  }
  const int handed = receive_descriptor(ends[0]);
  int watch = -1;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (me.dice.once_in(2)) await_readable(handed, &watch, kNever);
    std::uint32_t bytes[2] = {};
    read_whole(handed, bytes, sizeof bytes);
    expect(bytes[0] == i && bytes[1] == i * 7, "what comes by a descriptor that was handed over", bytes[0], i);
  }
  expect_elapsed(began, count * pause, "what comes by a descriptor that was handed over", pause + (count + 4) * kSlack);
  if (watch >= 0) close(watch);
  close(handed);
  expect(waitpid(child, nullptr, 0) == child, "waitpid", errno);
  for (const int end : ends) close(end);
}

}  // namespace walk
