// SPDX-License-Identifier: Apache-2.0
#include "sim/top/top.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "sim/config/config_error.h"
#include "sim/top/connection.h"
#include "sim/top/page.h"
#include "sim/top/screen.h"
#include "sim/top/view.h"

namespace rnicsim::sim::top {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A run serves its viewers ten times a second.
constexpr milliseconds kLongestAnswer{10'000};
constexpr milliseconds kLateAnswer{2'000};

milliseconds to_milliseconds(Duration duration) {
  return milliseconds(std::max<std::int64_t>(1, duration.ps / 1'000'000'000));
}

pid_t only_run() {
  const auto all = running_processes();
  if (all.empty())
    throw ConfigError("no simulation of yours is running: `run`, `bench`, `serve` and `shell` start one");
  if (all.size() == 1) return all.front().pid;
  std::string text = "several simulations are running: rnicsim top PID";
  for (const auto& process : all) text += fmt::format("\n  {:>7}  {}", process.pid, process.command);
  throw ConfigError(text);
}

std::string end_text(pid_t pid, const std::optional<Snapshot>& last) {
  const std::string when = last ? fmt::format(", last seen at {} of simulated time", to_string(last->time)) : "";
  return fmt::format("rnicsim: the simulation (pid {}) has ended{}\n", pid, when);
}

// Prints the rates between two snapshots; if the run ends before the second one, the rates since its start.
int print_once(const TopOptions& options, Connection& run) {
  auto first = run.ask_and_wait(kLongestAnswer);
  if (!first) {
    fmt::print(stderr, "rnicsim: the simulation (pid {}) {}\n", run.pid(),
               run.has_ended() ? "has ended" : "does not answer");
    return 1;
  }
  std::this_thread::sleep_for(to_milliseconds(options.delay));
  auto second = run.ask_and_wait(kLongestAnswer);
  const View view = second ? make_view(&*first, std::move(*second)) : make_view(nullptr, std::move(*first));
  if (options.json) {
    fmt::print("{}\n", view_json(view).dump(2));
    return 0;
  }
  constexpr std::size_t kWidth = 120;
  const Page page = make_page(view, kWidth, Order::host);
  for (const auto* lines : {&page.head, &page.body})
    for (const Line& line : *lines) fmt::print("{}\n", line.text);
  return 0;
}

// Updates the screen.
class Show {
 public:
  Show(Connection& run, milliseconds delay) : run_(run), delay_(delay) {}

  // Runs until the user quits, or the run ends.
  void go_on() {
    while (!quits_ && !Screen::was_ended() && !run_.has_ended()) {
      const auto time = Clock::now();
      if (!asked_at_ && time >= next_) {
        run_.ask();
        asked_at_ = time;
      }
      if (is_late() != shown_late_) draw();
      await(asked_at_ ? milliseconds(500) : std::chrono::ceil<milliseconds>(next_ - time));
      take_snapshot();
      take_keys();
    }
  }
  const std::optional<Snapshot>& last() const { return last_; }

 private:
  void await(milliseconds most) const {
    pollfd watched[] = {{STDIN_FILENO, POLLIN, 0}, {run_.descriptor(), POLLIN, 0}};
    ::poll(watched, 2, int(std::clamp<std::int64_t>(most.count(), 0, 60'000)));
  }

  void take_snapshot() {
    auto fresh = run_.receive();
    if (!fresh) return;
    view_ = make_view(last_ ? &*last_ : nullptr, *fresh);
    last_ = std::move(fresh);
    asked_at_.reset();
    next_ = Clock::now() + delay_;
    draw();
  }

  void take_keys() {
    for (Key key = screen_.key(); key != Key::none && !quits_; key = screen_.key()) {
      const std::size_t step = std::max<std::size_t>(1, screen_.height() / 2);
      switch (key) {
        case Key::quit: quits_ = true; break;
        case Key::help:
          help_ = !help_;
          offset_ = 0;
          break;
        case Key::order: order_ = Order((int(order_) + 1) % kOrders); break;
        case Key::up: offset_ -= std::min<std::size_t>(offset_, 1); break;
        case Key::down: ++offset_; break;
        case Key::page_up: offset_ -= std::min(offset_, step); break;
        case Key::page_down: offset_ += step; break;
        case Key::home: offset_ = 0; break;
        case Key::end: offset_ = SIZE_MAX / 2; break;
        case Key::resized:
        case Key::none: break;
      }
      draw();
    }
  }

  // True: the run does not answer. It is stopped, or waits for a program in a place where it does not serve viewers.
  bool is_late() const { return asked_at_ && Clock::now() - *asked_at_ > kLateAnswer; }

  void draw() {
    shown_late_ = is_late();
    if (help_) {
      offset_ = screen_.show({{}, help_lines()}, offset_, "h back  q quit");
      return;
    }
    if (!view_) {
      screen_.show({{}, {{fmt::format("waiting for the simulation (pid {})", run_.pid())}}}, 0, "q quit");
      return;
    }
    const std::string late = shown_late_ ? "THE RUN DOES NOT ANSWER  " : "";
    offset_ = screen_.show(make_page(*view_, screen_.width(), order_), offset_,
                           fmt::format("{}q quit  h help  s order: {}  arrows scroll", late, to_string(order_)));
  }

  Connection& run_;
  const milliseconds delay_;
  Screen screen_;
  std::optional<Snapshot> last_;
  std::optional<View> view_;
  std::optional<Clock::time_point> asked_at_;  // time of a request without an answer
  Clock::time_point next_ = Clock::now();
  std::size_t offset_ = 0;
  Order order_ = Order::host;
  bool help_ = false;
  bool quits_ = false;
  bool shown_late_ = false;
};

}  // namespace

int run_top(const TopOptions& options) {
  Connection run(options.pid ? *options.pid : only_run());
  if (options.once || options.json) return print_once(options, run);
  std::optional<Snapshot> last;
  {
    Show show(run, to_milliseconds(options.delay));
    show.go_on();
    last = show.last();
  }
  if (run.has_ended()) fmt::print("{}", end_text(run.pid(), last));
  return 0;
}

}  // namespace rnicsim::sim::top
