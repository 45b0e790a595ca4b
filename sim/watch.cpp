// SPDX-License-Identifier: Apache-2.0
#include "sim/watch.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "model/base/agenda.h"

namespace rnicsim::sim {
namespace {

constexpr suseconds_t kTickUs = 100'000;

// timeout(1) sends its signal to its child and then to the child's process group: count both as one request.
constexpr std::int64_t kOneWishNs = 1'000'000'000;

std::atomic<int> stop_signal{0};
std::atomic<std::int64_t> stopped_at_ns{0};
std::atomic<bool> report_asked{false};

std::int64_t present_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void on_stop(int signal) {
  const int saved = errno;
  if (stop_signal == 0) {
    stopped_at_ns = present_ns();
    stop_signal = signal;
    Agenda::interrupt();
  } else if (present_ns() - stopped_at_ns >= kOneWishNs) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // delivered when this handler returns
  }
  errno = saved;
}
void on_report(int) {
  report_asked = true;
  Agenda::interrupt();
}
void on_tick(int) { Agenda::interrupt(); }

void handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

void tick_every(suseconds_t us) {
  const itimerval timer{{0, us}, {0, us}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

Watch::Watch(const Limits& limits) : limits_(limits) {
  for (const int signal : {SIGINT, SIGTERM}) handle(signal, on_stop, SA_RESTART);
  handle(SIGUSR1, on_report, SA_RESTART);
  handle(SIGALRM, on_tick, SA_RESTART);
  tick_every(kTickUs);
}

Watch::~Watch() {
  tick_every(0);
  if (auto* agenda = Agenda::current()) agenda->on_interrupt = nullptr;
}

void Watch::look_with(std::function<void()> look) {
  if (auto* agenda = Agenda::current()) agenda->on_interrupt = std::move(look);
}

std::optional<Watch::End> Watch::end() const {
  if (const int signal = stop_signal; signal != 0)
    return End{fmt::format("ended by signal {} ({})", signal, ::strsignal(signal)), 128 + signal};
  if (limits_.wall && elapsed().count() * 1e12 >= double(limits_.wall->ps))
    return End{fmt::format("ended at the limit of {} of wall time", to_string(*limits_.wall)), kLimitStatus};
  return std::nullopt;
}

bool Watch::report_wanted() { return report_asked.exchange(false); }

Watch::End at_simulated_limit(Duration limit) {
  return {fmt::format("ended at the limit of {} of simulated time", to_string(limit)), kLimitStatus};
}

}  // namespace rnicsim::sim
