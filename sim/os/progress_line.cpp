// SPDX-License-Identifier: Apache-2.0
#include "sim/os/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

namespace rnicsim::sim::progress_line {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kInterval = std::chrono::milliseconds(250);

// One line in a process: there is one terminal.
struct Line {
  bool shown = false;
  bool off = false;
  Clock::time_point at = Clock::now();  // a run that ends soon shows no line
  Clock::time_point paced_at = Clock::now();
  Duration paced;
};
Line line;

bool on_terminal() {
  if (line.off) return false;
  static const bool is = [] {
    const char* kind = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
  }();
  return is;
}

std::size_t width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

void show(const std::string& text) {
  if (!on_terminal()) return;
  fmt::print(stderr, "\r\x1b[K{}", std::string_view(text).substr(0, width()));
  std::fflush(stderr);
  line.shown = true;
}

void erase() {
  if (!line.shown) return;
  line.shown = false;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
}

void turn_off() {
  erase();
  line.off = true;
}

bool is_due() {
  if (!on_terminal() || Clock::now() - line.at < kInterval) return false;
  line.at = Clock::now();
  return true;
}

std::string pace(Duration simulated) {
  const auto at = Clock::now();
  const double seconds = std::chrono::duration<double>(at - line.paced_at).count();
  const Duration rate{seconds > 0 ? std::int64_t(double((simulated - line.paced).ps) / seconds) : 0};
  line.paced_at = at;
  line.paced = simulated;
  // Three digits are enough: further ones change too fast to read.
  Duration rounded = rate;
  for (std::int64_t step = 1; rounded.ps / step >= 1000; step *= 10) rounded.ps = rate.ps / (step * 10) * (step * 10);
  return fmt::format("{} simulated, {} a second", to_string(simulated), to_string(rounded));
}

}  // namespace rnicsim::sim::progress_line
