// SPDX-License-Identifier: Apache-2.0
// A random walk over system calls with which programs wait and exchange data: an ordinary program with threads and
// child processes on two hosts. Each step has a model: conditions on its time, data and order. Partners and steps are
// drawn so that every step ends. The same seed makes the same walk on both hosts.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "tests/soak/dice.h"

namespace walk {

using rnicsim::testing::Dice;

// Nanoseconds. The clock is CLOCK_MONOTONIC unless another clock is named; all hosts have the same CLOCK_MONOTONIC.
using Time = std::int64_t;
constexpr Time kMicrosecond = 1'000;
constexpr Time kMillisecond = 1'000'000;
constexpr Time kNever = INT64_MAX;
// Longest time from a wake-up until the thread runs: the wake-up, the cost of calls, and the difference of clocks.
constexpr Time kSlack = 80 * kMicrosecond;

// A thread may run ahead of simulated time; other threads may see its stores too early by this much
// (docs/virtual-time.md).
constexpr Time kAhead = 100 * kMicrosecond;

constexpr unsigned kMostWorkers = 6;

// --- The walkers.

struct Walker {
  std::uint64_t seed = 1;
  unsigned host = 0;
  unsigned worker = 0;
  bool is_child = false;  // a process that a worker has forked for one scene
  unsigned round = 0;
  const char* step = "start";
  Dice dice{0};
  std::uint64_t digest = 0;  // hash of events and their times
};
extern thread_local Walker me;
// CALLS_WALK_REAL is set: the walk runs on a real kernel, to check the walk itself.
bool is_on_a_real_host();

// Prints the first broken rule and ends the process.
[[noreturn]] void fail(const char* what, long got, long wanted);
inline void expect(bool holds, const char* what, long got = 0, long wanted = 0) {
  if (!holds) fail(what, got, wanted);
}
void expect_call(long result, const char* call);  // -1 fails with errno's text
void note(std::uint64_t value);

// --- Time.

Time now(clockid_t clock = CLOCK_MONOTONIC);
timespec to_timespec(Time time);
// Converts a time of CLOCK_MONOTONIC to another clock.
timespec on_clock(clockid_t clock, Time moment);
void sleep_until(Time moment);
void pause_a_little();  // lets time pass in a random way, or does nothing
// Fails unless at least `least` and at most `least` + `slack` have passed since `began`. On a real host the upper bound
// is not checked.
void expect_elapsed(Time began, Time least, const char* what, Time slack = kSlack);

// Ways of letting `length` pass (waits.cpp).
struct Wait {
  const char* name;
  void (*wait)(Time length);
  Time unit;           // granularity: a length is a multiple of it
  bool by_one_worker;  // only one worker of a process may use this way
  Time late = 3 * kSlack;
};
std::size_t wait_count();
const Wait& wait_number(std::size_t number);

// --- Lines: one-way channels from one thread to another, with one message at a time (lines.cpp).

struct Message {
  std::int64_t token;
  Time sent;
};
struct Medium;
struct Line {
  const Medium* medium = nullptr;
  int descriptors[2] = {-1, -1};  // the receiver uses the first
  int watch = -1;                 // an epoll descriptor for descriptors[0]; -1: not created yet
  bool is_shared = false;         // sender and receiver are in different processes
  Message told{}, heard{};
  std::atomic<std::uint32_t> word{0};
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  sem_t semaphore;
  pid_t process = 0;  // receiver, for media that use signals
  pthread_t thread{};
  unsigned signal = 0;
  char path[64];
};

enum Reach : unsigned { threads = 1, processes = 2, hosts = 4 };
struct Medium {
  const char* name;
  unsigned reach;
  bool times_out;  // hear() supports deadlines
  Time early;      // most that the receiver's time may lie before the time of sending
  Time late;       // most time from sending until a waiting receiver has the message
  void (*open)(Line& line);
  void (*close)(Line& line);
  void (*tell)(Line& line);
  bool (*hear)(Line& line, Time deadline);  // false: deadline passed
};
const Medium& draw_medium(Dice& dice, unsigned reach);

void open_line(Line& line, const Medium& medium, bool shared);
void set_hearer(Line& line);  // called by the receiving thread
void close_line(Line& line);
void tell(Line& line, std::int64_t token);
// Receives a message and checks its time. False: the deadline passed.
bool hear(Line& line, Time deadline, Message& message);
std::int64_t hear(Line& line);
void write_whole(int fd, const void* bytes, std::size_t size);
void read_whole(int fd, void* bytes, std::size_t size);
// Waits with a random call until the descriptor is readable. False: the deadline passed.
bool await_readable(int fd, int* watch, Time deadline);

// --- Scenes of two: both participants draw them from equal dice (scenes.cpp).

struct Pair {
  Line there;  // from the leader to the other
  Line back;
  sem_t present[2];          // [0]: the leader is present, [1]: the other
  int stream[2] = {-1, -1};  // [0]: the leader writes, [1]: the other reads
  std::atomic<Time> signalled{0};
};
enum class Role : unsigned { leader, other };
void prepare(Pair& pair, bool shared);  // called once, before either participant plays
void play_with_thread(Pair& pair, Role role, Dice common);
void play_with_child(Pair& pair, Dice common);
void play_with_host(Pair& pair, Role role, Dice common);
void prepare_handlers();

// --- Steps of a single worker (steps.cpp), and steps on objects that all workers share (locks.cpp).

struct Step {
  const char* name;
  unsigned weight;
  bool of_children;  // a child process may run the step
  void (*run)();
};
const Step& draw_step();
void make_shared_locks(unsigned workers);
void lock_a_mutex();
void lock_for_reading_or_writing();
void take_a_permit();
void pass_through_queue();
void leave_a_robust_mutex();
void count_down_together();
// Steps with a new thread or process (others.cpp).
void cancel_a_thread();
void execute_a_program();
void hand_over_a_descriptor();
int answer_questions(int code);  // main of the executed program; returns the exit status
// All workers of a process contend for one lock.
void rush(Dice common);
// Barrier of all workers.
void meet();

// --- Steps between the hosts (network.cpp).

void connect_hosts(const char* peer, unsigned workers);  // nullptr: this host waits for connections
// Sockets of a worker to its peer on the other host.
struct HostSockets {
  int connection = -1;
  int datagrams = -1;
};
const HostSockets& host_sockets(unsigned worker);

}  // namespace walk
