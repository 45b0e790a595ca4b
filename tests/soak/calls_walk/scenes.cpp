// SPDX-License-Identifier: Apache-2.0
// Scenes of two threads. Both draw the scene from equal dice.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "tests/soak/calls_walk/walk.h"

namespace walk {
namespace {

thread_local volatile sig_atomic_t interruptions = 0;
void count_interruption(int) { interruptions = interruptions + 1; }

// Barrier: both continue at the time of the later one.
void meet_partner(Pair& pair, Role role) {
  const auto own = unsigned(role);
  expect_call(sem_post(&pair.present[own]), "sem_post");
  expect_call(sem_wait(&pair.present[1 - own]), "sem_wait");
}

// --- Messages in turn.

void exchange(Pair& pair, Role role, Dice& common) {
  const std::uint32_t times = common.between(1, 6);
  std::int64_t token = common.below(1'000'000);
  for (std::uint32_t i = 0; i < times; ++i, token += 2) {
    if (role == Role::leader) {
      pause_a_little();
      tell(pair.there, token);
      const std::int64_t answer = hear(pair.back);
      expect(answer == token + 1, "an answer", answer, token + 1);
    } else {
      const std::int64_t question = hear(pair.there);
      expect(question == token, "a question", question, token);
      pause_a_little();
      tell(pair.back, token + 1);
    }
  }
}

// --- A message at a random time against a deadline: the message is received if it is in time.

void race(Pair& pair, Role role, Dice& common) {
  constexpr std::uint32_t kLongest = 400;
  const bool leader_hears = common.once_in(2);
  Line& line = leader_hears ? pair.back : pair.there;
  Line& answer = leader_hears ? pair.there : pair.back;
  const Time told = common.below(kLongest) * kMicrosecond;
  const Time given_up = common.once_in(4) ? told : common.below(kLongest) * kMicrosecond;
  const std::int64_t token = common.below(1'000'000);
  const Time margin = is_on_a_real_host() ? 100 * kMillisecond : 200 * kMicrosecond;
  Time start = now() + pair.there.medium->late + pair.back.medium->late + margin;
  if (role == Role::leader) {
    tell(pair.there, start);
    hear(pair.back);
  } else {
    start = hear(pair.there);
    tell(pair.back, 0);
  }
  if ((role == Role::leader) == leader_hears) {
    if (me.dice.once_in(2)) sleep_until(start);
    const Time deadline = start + given_up;
    Message message{};
    if (line.medium->times_out && !hear(line, deadline, message)) {
      note(1);
      hear(line, kNever, message);
      const Time seen = message.sent + line.medium->late;
      expect(seen >= deadline || is_on_a_real_host(), "what was told in time was not heard", seen, deadline);
    } else if (!line.medium->times_out) {
      hear(line, kNever, message);
    }
    expect(message.token == token, "what was told", message.token, token);
    tell(answer, token);
  } else {
    sleep_until(start + told);
    pause_a_little();
    tell(line, token);
    const std::int64_t heard = hear(answer);
    expect(heard == token, "what was heard", heard, token);
  }
}

// --- Many bytes, in pieces: all of them, in order.

unsigned char byte_at(std::uint64_t place) { return static_cast<unsigned char>(place * 2654435761u >> 13); }

void stream(Pair& pair, Role role, Dice& common) {
  const std::size_t bytes = common.once_in(3) ? common.below(300'000) : common.below(3'000);
  const std::uint32_t pieces = common.once_in(3) ? 70'000 : 5'000;
  std::vector<unsigned char> piece(pieces);
  for (std::size_t place = 0; place < bytes;) {
    const std::size_t size = std::min<std::size_t>(bytes - place, 1 + me.dice.below(pieces));
    if (me.dice.once_in(4)) pause_a_little();
    if (role == Role::leader) {
      for (std::size_t i = 0; i < size; ++i) piece[i] = byte_at(place + i);
      write_whole(pair.stream[0], piece.data(), size);
      place += size;
      continue;
    }
    int watch = -1;
    if (me.dice.once_in(3)) await_readable(pair.stream[1], &watch, kNever);
    if (watch >= 0) close(watch);
    const ssize_t got = read(pair.stream[1], piece.data(), size);
    expect(got > 0, "read of a stream", errno);
    for (ssize_t i = 0; i < got; ++i)
      expect(piece[i] == byte_at(place + i), "a byte of a stream", piece[i], byte_at(place + i));
    place += std::size_t(got);
  }
  if (role == Role::other) tell(pair.back, std::int64_t(bytes));
  if (role == Role::leader) expect(hear(pair.back) == std::int64_t(bytes), "a stream's length");
}

// --- A signal ends the other thread's wait with EINTR; or its handler runs and the wait continues (SA_RESTART).

constexpr Time kLong = 50 * kMillisecond;
bool interrupted(long result) { return result == -1 && errno == EINTR; }

bool nanosleep_interrupted(int) {
  const timespec request = to_timespec(kLong);
  timespec left{};
  const Time began = now();
  const bool ended = interrupted(nanosleep(&request, &left));
  const Time sum = now() - began + left.tv_nsec;
  expect(sum >= kLong && (sum <= kLong + kSlack || is_on_a_real_host()), "what is left of a sleep", sum, kLong);
  return ended;
}
bool poll_interrupted(int fd) {
  pollfd wanted{fd, POLLIN, 0};
  return interrupted(poll(&wanted, 1, int(kLong / kMillisecond)));
}
bool select_interrupted(int fd) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(fd, &set);
  return interrupted(select(fd + 1, &set, nullptr, nullptr, nullptr));
}
bool epoll_interrupted(int) {
  const int set = epoll_create1(0);
  epoll_event event{};
  const bool ended = interrupted(epoll_wait(set, &event, 1, -1));
  const int saved = errno;
  close(set);
  errno = saved;
  return ended;
}
bool read_interrupted(int fd) {
  char byte;
  return interrupted(read(fd, &byte, 1));
}
bool semaphore_interrupted(int) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  return interrupted(sem_wait(&semaphore));
}
bool pause_interrupted(int) { return interrupted(pause()); }
bool sigtimedwait_interrupted(int) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMAX);
  return interrupted(sigwaitinfo(&set, nullptr));
}
// The signal is blocked until the wait begins, and may arrive before.
bool let_through(int fd, bool (*wait)(int fd, const sigset_t& mask)) {
  sigset_t signal, mask;
  sigemptyset(&signal);
  sigaddset(&signal, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signal, &mask);
  if (me.dice.once_in(2)) sleep_until(now() + 2 * kMillisecond);
  const bool ended = wait(fd, mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  return ended;
}
bool sigsuspend_interrupted(int fd) {
  return let_through(fd, [](int, const sigset_t& mask) { return interrupted(sigsuspend(&mask)); });
}
bool ppoll_interrupted(int fd) {
  return let_through(fd, [](int fd, const sigset_t& mask) {
    pollfd wanted{fd, POLLIN, 0};
    return interrupted(ppoll(&wanted, 1, nullptr, &mask));
  });
}
bool pselect_interrupted(int fd) {
  return let_through(fd, [](int fd, const sigset_t& mask) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    return interrupted(pselect(fd + 1, &set, nullptr, nullptr, nullptr, &mask));
  });
}
constexpr struct {
  const char* name;
  bool (*wait)(int fd);
} kInterruptible[] = {
    {"nanosleep", nanosleep_interrupted},
    {"poll", poll_interrupted},
    {"select", select_interrupted},
    {"epoll_wait", epoll_interrupted},
    {"read", read_interrupted},
    {"sem_wait", semaphore_interrupted},
    {"pause", pause_interrupted},
    {"sigwaitinfo", sigtimedwait_interrupted},
    {"sigsuspend", sigsuspend_interrupted},
    {"ppoll", ppoll_interrupted},
    {"pselect", pselect_interrupted},
};

void signal_other(Pair& pair, int number) {
  pair.signalled = now();
  const Line& line = pair.there;
  const int error = line.process == getpid() ? pthread_kill(line.thread, number) : kill(line.process, number);
  expect(error == 0, "kill", error);
}

void interrupt(Pair& pair, Role role, Dice& common) {
  const auto& way = kInterruptible[common.below(std::size(kInterruptible))];
  // Enough time to begin the wait.
  const Time delay = kSlack * 2 + common.below(800) * kMicrosecond;
  if (role == Role::leader) {
    hear(pair.back);
    sleep_until(now() + delay);
    signal_other(pair, SIGUSR1);
    hear(pair.back);
    return;
  }
  interruptions = 0;
  tell(pair.back, 1);
  const Time began = now();
  errno = 0;
  const bool ended = way.wait(pair.stream[1]);
  expect(ended, way.name, errno, EINTR);
  expect(interruptions == 1, "runs of a signal's handler", interruptions, 1);
  const Time late = now() - std::max(pair.signalled.load(), began);
  expect(late >= 0 && (late <= kSlack + 2 * kMillisecond || is_on_a_real_host()), "a signal comes late", late, kSlack);
  tell(pair.back, 2);
}

void go_on_after_signal(Pair& pair, Role role, Dice& common) {
  const bool reads = common.once_in(2);
  const std::uint32_t signals = common.between(1, 3);
  if (role == Role::leader) {
    hear(pair.back);
    for (std::uint32_t i = 0; i < signals; ++i) {
      sleep_until(now() + 2 * kSlack);
      signal_other(pair, SIGUSR2);
    }
    sleep_until(now() + 2 * kSlack);
    if (reads) {
      write_whole(pair.stream[0], "x", 1);
    } else {
      sem_post(&pair.present[0]);
    }
    hear(pair.back);
    return;
  }
  interruptions = 0;
  tell(pair.back, 1);
  char byte = 0;
  if (reads) {
    expect(read(pair.stream[1], &byte, 1) == 1 && byte == 'x', "a read that goes on after a signal", errno);
  } else {
    expect_call(sem_wait(&pair.present[0]), "sem_wait that goes on after a signal");
  }
  expect(interruptions == int(signals) || is_on_a_real_host(), "runs of a signal's handler", interruptions, signals);
  tell(pair.back, 2);
}

// --- The list of scenes.

constexpr struct {
  const char* name;
  bool between_hosts;
  void (*play)(Pair& pair, Role role, Dice& common);
} kScenes[] = {
    {"exchange", true, exchange},
    {"race", true, race},
    {"race", true, race},
    {"stream", true, stream},
    {"interrupt", false, interrupt},
    {"signals", false, go_on_after_signal},
};

void play(Pair& pair, Role role, Dice& common, bool between_hosts) {
  for (std::uint32_t scenes = common.between(1, 3); scenes > 0;) {
    const auto& scene = kScenes[common.below(std::size(kScenes))];
    if (between_hosts && !scene.between_hosts) continue;
    me.step = scene.name;
    scene.play(pair, role, common);
    // A line has room for one message.
    if (!between_hosts) meet_partner(pair, role);
    note(std::uint64_t(now()));
    --scenes;
  }
}

void open_lines(Pair& pair, Dice& common, unsigned reach) {
  const bool shared = reach == Reach::processes;
  me.step = "lines";
  open_line(pair.there, draw_medium(common, reach), shared);
  open_line(pair.back, draw_medium(common, reach), shared);
  int ends[2];
  if (common.once_in(2)) {
    expect_call(pipe(ends), "pipe");
    std::swap(ends[0], ends[1]);
  } else {
    expect_call(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
  }
  std::copy(ends, ends + 2, pair.stream);
}

void close_lines(Pair& pair) {
  close_line(pair.there);
  close_line(pair.back);
  for (const int end : pair.stream) close(end);
}

}  // namespace

void prepare_handlers() {
  struct sigaction action {};
  action.sa_handler = count_interruption;
  sigaction(SIGUSR1, &action, nullptr);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
}

void prepare(Pair& pair, bool shared) {
  for (sem_t& present : pair.present) sem_init(&present, shared, 0);
}

void play_with_thread(Pair& pair, Role role, Dice common) {
  Dice script(common.bits());
  if (role == Role::leader) open_lines(pair, common, Reach::threads);
  meet();
  set_hearer(role == Role::leader ? pair.back : pair.there);
  meet_partner(pair, role);
  play(pair, role, script, false);
  meet_partner(pair, role);
  if (role == Role::leader) close_lines(pair);
}

void play_with_child(Pair& pair, Dice common) {
  Dice script(common.bits());
  open_lines(pair, common, Reach::processes);
  set_hearer(pair.back);
  prepare(pair, true);
  const int code = int(20 + common.below(100));
  const int ending = common.once_in(3) ? (common.once_in(2) ? SIGKILL : SIGTERM) : 0;
  const pid_t child = fork();
  expect_call(child, "fork");
  if (child == 0) {
    me.is_child = true;
    me.dice = Dice(me.seed * 1000 + me.worker + me.round * 100);
    set_hearer(pair.there);
    meet_partner(pair, Role::other);
    play(pair, Role::other, script, false);
    // A child that will be killed runs no step: it might hold a lock.
    if (ending == 0 && me.dice.once_in(2)) draw_step().run();
    while (ending != 0) pause();
    _exit(code);
  }
  meet_partner(pair, Role::leader);
  play(pair, Role::leader, script, false);
  me.step = "the end of a child";
  if (ending != 0) kill(child, ending);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) expect(errno == EINTR, "waitpid", errno);
  if (ending == 0) expect(WIFEXITED(status) && WEXITSTATUS(status) == code, "a child's exit status", status, code << 8);
  if (ending != 0) expect(WIFSIGNALED(status) && WTERMSIG(status) == ending, "a child's signal", status, ending);
  close_lines(pair);
}

void play_with_host(Pair& pair, Role role, Dice common) {
  const HostSockets& sockets = host_sockets(me.worker);
  me.step = "lines";
  open_line(pair.there, draw_medium(common, Reach::hosts), false);
  open_line(pair.back, draw_medium(common, Reach::hosts), false);
  Dice script(common.bits());
  for (Line* line : {&pair.there, &pair.back}) {
    const bool by_connection = line->medium->name[0] == 'c';
    line->descriptors[0] = line->descriptors[1] = by_connection ? sockets.connection : sockets.datagrams;
    set_hearer(*line);
  }
  pair.stream[0] = pair.stream[1] = sockets.connection;
  play(pair, role, script, true);
  close_line(pair.there);
  close_line(pair.back);
}

}  // namespace walk
