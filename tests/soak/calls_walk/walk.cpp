// SPDX-License-Identifier: Apache-2.0
// usage: calls_walk SEED ROUNDS [PEER]     (the host with a PEER connects to it)
//        calls_walk answer CODE            (executed by the walk itself)
#include "tests/soak/calls_walk/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <vector>

namespace walk {

thread_local Walker me;

namespace {

// Mixes three numbers so that threads and rounds draw independent values.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t value = a * 0x9e3779b97f4a7c15 ^ (b + 1) * 0xbf58476d1ce4e5b9 ^ (c + 1) * 0x94d049bb133111eb;
  value ^= value >> 31;
  return value * 0xd6e8feb86659fd93;
}

struct Walk {
  std::uint64_t seed;
  unsigned rounds;
  unsigned host;
  unsigned workers;
  Pair* of_threads;  // owned by the leader
  Pair* of_others;   // by worker, in memory that children share
};

struct Start {
  const Walk* walk;
  unsigned worker;
  std::uint64_t digest;
};

// A scene with another thread, with a child, or with the worker of the other host. All workers of both hosts draw the
// same kind.
void play_a_scene(const Walk& walk, unsigned round) {
  Dice common(mixed(walk.seed, round, 1000));
  const std::uint32_t with = common.below(4);
  const auto common_of = [&](unsigned worker, unsigned host) {
    return Dice(mixed(walk.seed, round, worker * 2 + host));
  };
  const unsigned leader = me.worker & ~1u;
  switch (with) {
    case 0:
      return play_with_thread(walk.of_threads[leader], me.worker == leader ? Role::leader : Role::other,
                              common_of(leader, walk.host));
    case 1:
      if (me.dice.once_in(2)) return;
      return play_with_child(walk.of_others[me.worker], common_of(me.worker, walk.host));
    default: {
      const bool leads = (me.worker + round) % 2 == walk.host;
      return play_with_host(walk.of_others[me.worker], leads ? Role::leader : Role::other, common_of(me.worker, 7));
    }
  }
}

void* work(void* opaque) {
  auto& start = *static_cast<Start*>(opaque);
  const Walk& walk = *start.walk;
  me.seed = walk.seed;
  me.host = walk.host;
  me.worker = start.worker;
  me.dice = Dice(mixed(walk.seed, walk.host, start.worker));
  const bool is_traced = getenv("CALLS_WALK_TRACE") != nullptr;
  for (me.round = 0; me.round < walk.rounds; ++me.round) {
    for (std::uint32_t steps = me.dice.below(4); steps > 0; --steps) {
      const Step& step = draw_step();
      if (is_traced) dprintf(2, "%ld worker %u round %u: %s\n", long(now()), me.worker, me.round, step.name);
      step.run();
      note(std::uint64_t(now()));
    }
    if (is_traced) dprintf(2, "%ld worker %u round %u: scene\n", long(now()), me.worker, me.round);
    play_a_scene(walk, me.round);
    if (me.round % 3 != 2) continue;
    me.step = "rush";
    meet();
    rush(Dice(mixed(walk.seed, me.round, walk.host)));
    note(std::uint64_t(now()));
  }
  start.digest = me.digest;
  return nullptr;
}

void run(const Walk& walk, const char* peer) {
  me.seed = walk.seed;
  me.host = walk.host;
  me.worker = kMostWorkers;  // the first thread is no worker
  // Signals that are taken with sigwait are blocked; threads inherit the mask.
  sigset_t waited_for;
  sigemptyset(&waited_for);
  sigaddset(&waited_for, SIGALRM);
  for (int signal = SIGRTMIN + 2; signal <= SIGRTMAX; ++signal) sigaddset(&waited_for, signal);
  pthread_sigmask(SIG_BLOCK, &waited_for, nullptr);
  prepare_handlers();
  make_shared_locks(walk.workers);
  me.step = "connect";
  connect_hosts(peer, walk.workers);
  std::vector<pthread_t> threads(walk.workers);
  std::vector<Start> starts;
  for (unsigned i = 0; i < walk.workers; ++i) starts.push_back({&walk, i, 0});
  for (unsigned i = 0; i < walk.workers; ++i)
    expect(pthread_create(&threads[i], nullptr, work, &starts[i]) == 0, "pthread_create");
  for (unsigned i = 0; i < walk.workers; ++i) {
    me.step = "the end";
    expect(pthread_join(threads[i], nullptr) == 0, "pthread_join");
    printf("worker %u: %016lx, ended by %ld\n", i, long(starts[i].digest), long(now()));
  }
  printf("ends at %ld\n", long(now()));
}

}  // namespace

void fail(const char* what, long got, long wanted) {
  dprintf(1, "seed %lu host %u worker %u%s round %u, %s: %s: %ld, not %ld, at %ld\n", long(me.seed), me.host, me.worker,
          me.is_child ? "'s child" : "", me.round, me.step, what, got, wanted, long(now()));
  _exit(1);
}
void expect_call(long result, const char* call) {
  if (result == -1) fail(call, errno, 0);
}
void note(std::uint64_t value) { me.digest = mixed(me.digest, value, 0); }

bool is_on_a_real_host() {
  static const bool is = getenv("CALLS_WALK_REAL") != nullptr;
  return is;
}

Time now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Time(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
timespec to_timespec(Time time) { return {time / 1'000'000'000, time % 1'000'000'000}; }
timespec on_clock(clockid_t clock, Time moment) {
  if (clock == CLOCK_MONOTONIC) return to_timespec(moment);
  // Read once: the difference of two reads would include the cost of a read.
  static const Time apart = now(CLOCK_REALTIME) - now();
  return to_timespec(moment + apart);
}
void sleep_until(Time moment) {
  const timespec until = to_timespec(moment);
  int error;
  do error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  while (error == EINTR);
  expect(error == 0 && now() >= moment, "clock_nanosleep until", error);
}
// Makes calls that cost time but never wait.
static void run_ahead() {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (std::uint32_t calls = me.dice.below(200); calls > 0; --calls) expect(write(nowhere, "", 1) == 1, "write");
}
void pause_a_little() {
  switch (me.dice.below(6)) {
    case 0: usleep(me.dice.below(40)); break;
    case 1:
      for (const Time end = now() + me.dice.below(20'000); now() < end;) continue;
      break;
    case 2: sched_yield(); break;
    case 3: run_ahead(); break;
    default: break;
  }
}
void expect_elapsed(Time began, Time least, const char* what, Time slack) {
  const Time elapsed = now() - began;
  expect(elapsed >= least && (elapsed <= least + slack || is_on_a_real_host()), what, elapsed, least);
}

}  // namespace walk

int main(int count, char** arguments) {
  if (count < 3) return 2;
  if (strcmp(arguments[1], "answer") == 0) return walk::answer_questions(atoi(arguments[2]));
  walk::Walk walk{};
  walk.seed = strtoull(arguments[1], nullptr, 10);
  walk.rounds = unsigned(strtoul(arguments[2], nullptr, 10));
  walk.host = count > 3 ? 1 : 0;
  walk.workers = 2 * walk::Dice(walk.seed).between(1, walk::kMostWorkers / 2);
  walk::Pair of_threads[walk::kMostWorkers];
  for (walk::Pair& pair : of_threads) walk::prepare(pair, false);
  walk.of_threads = of_threads;
  walk.of_others = new (mmap(nullptr, walk::kMostWorkers * sizeof(walk::Pair), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)) walk::Pair[walk::kMostWorkers];
  walk::run(walk, count > 3 ? arguments[3] : nullptr);
  return 0;
}
