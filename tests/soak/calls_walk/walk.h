// An ordinary program that does at random what programs do to wait and to tell each other something: threads of two
// hosts, and children of theirs. Each step has a model: what must hold of its time, its data and its order. Who begins
// what is drawn so that every step ends; the same seed makes the same walk on both hosts.
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

// Nanoseconds, of CLOCK_MONOTONIC where nothing else is said: all hosts' are the same.
using Time = std::int64_t;
constexpr Time kMicrosecond = 1'000;
constexpr Time kMillisecond = 1'000'000;
constexpr Time kNever = INT64_MAX;
// A thread that waited runs again within this: its wake-up, what calls cost, and how far clocks may be apart.
constexpr Time kSlack = 80 * kMicrosecond;

// What a thread stores while it is ahead of the world others may see this much too early (docs/virtual-time.md).
constexpr Time kAhead = 100 * kMicrosecond;

constexpr unsigned kMostWorkers = 6;

// --- Who walks.

struct Walker {
  std::uint64_t seed = 1;
  unsigned host = 0;
  unsigned worker = 0;
  bool is_child = false;  // a process that its worker has made for one scene
  unsigned round = 0;
  const char* step = "start";
  Dice dice{0};
  std::uint64_t digest = 0;  // of what happened, and when
};
extern thread_local Walker me;
// For a look at whether the walk itself is right: CALLS_WALK_REAL in the environment.
bool is_on_a_real_host();

// What the first broken rule is said by; ends the process.
[[noreturn]] void fail(const char* what, long got, long wanted);
inline void expect(bool holds, const char* what, long got = 0, long wanted = 0) {
  if (!holds) fail(what, got, wanted);
}
void expect_call(long result, const char* call);  // -1: says errno
void note(std::uint64_t value);

// --- Time.

Time now(clockid_t clock = CLOCK_MONOTONIC);
timespec to_timespec(Time time);
// A moment of CLOCK_MONOTONIC on another clock.
timespec on_clock(clockid_t clock, Time moment);
void sleep_until(Time moment);
void pause_a_little();  // or not: a random way of letting time pass
// From `began` until now at least, and at most kSlack more.
// (On a real host nobody knows.)
void expect_elapsed(Time began, Time least, const char* what, Time slack = kSlack);

// Ways of letting `length` pass (waits.cpp).
struct Wait {
  const char* name;
  void (*wait)(Time length);
  Time unit;           // a length is a multiple of it
  bool by_one_worker;  // of a process
  Time late = 3 * kSlack;
};
std::size_t wait_count();
const Wait& wait_number(std::size_t number);

// --- Lines: one way from one thread to another, for one message at a time (lines.cpp).

struct Message {
  std::int64_t token;
  Time sent;
};
struct Medium;
struct Line {
  const Medium* medium = nullptr;
  int descriptors[2] = {-1, -1};  // hears by the first
  int watch = -1;                 // an epoll descriptor of the first, made when it is wanted
  bool is_shared = false;         // by processes
  Message told{}, heard{};
  std::atomic<std::uint32_t> word{0};
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  sem_t semaphore;
  pid_t process = 0;  // who hears, by signals
  pthread_t thread{};
  unsigned signal = 0;
  char path[64];
};

enum Reach : unsigned { threads = 1, processes = 2, hosts = 4 };
struct Medium {
  const char* name;
  unsigned reach;
  bool times_out;  // hear() keeps deadlines
  Time early;      // before it was told, at most
  Time late;       // from the telling until one who waits has heard, at most
  void (*open)(Line& line);
  void (*close)(Line& line);
  void (*tell)(Line& line);
  bool (*hear)(Line& line, Time deadline);  // false: nothing came until then
};
const Medium& draw_medium(Dice& dice, unsigned reach);

void open_line(Line& line, const Medium& medium, bool shared);
void set_hearer(Line& line);  // by the thread that will hear
void close_line(Line& line);
void tell(Line& line, std::int64_t token);
// The token; its time is checked against the wait's.
bool hear(Line& line, Time deadline, Message& message);
std::int64_t hear(Line& line);
void write_whole(int fd, const void* bytes, std::size_t size);
void read_whole(int fd, void* bytes, std::size_t size);
// Waits by a random call until the descriptor is readable; false: not until the deadline.
bool await_readable(int fd, int* watch, Time deadline);

// --- Scenes of two: both draw them from the same dice (scenes.cpp).

struct Pair {
  Line there;  // from the leader to the other
  Line back;
  sem_t present[2];          // the leader, the other
  int stream[2] = {-1, -1};  // the leader writes, the other reads
  std::atomic<Time> signalled{0};
};
enum class Role : unsigned { leader, other };
void prepare(Pair& pair, bool shared);  // once, before either plays
void play_with_thread(Pair& pair, Role role, Dice common);
void play_with_child(Pair& pair, Dice common);
void play_with_host(Pair& pair, Role role, Dice common);
void prepare_handlers();

// --- Steps of one (steps.cpp), and on what all workers share (locks.cpp).

struct Step {
  const char* name;
  unsigned weight;
  bool of_children;  // a child process may do it
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
// With others of one's own (others.cpp).
void cancel_a_thread();
void execute_a_program();
void hand_over_a_descriptor();
int answer_questions(int code);  // of who executes this program; as it ends
// All workers of a process want the same lock.
void rush(Dice common);
// All workers meet; what happened before it is before what happens after it.
void meet();

// --- Between the hosts (network.cpp).

void connect_hosts(const char* peer, unsigned workers);  // nullptr: this one is called
// Of a worker: what it hears by, and tells by.
struct HostSockets {
  int connection = -1;
  int datagrams = -1;
};
const HostSockets& host_sockets(unsigned worker);

}  // namespace walk
