// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/vm/console_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kLastLines = 20;
constexpr std::size_t kMostFaults = 10;
constexpr std::size_t kMostLine = 1000;

// Linux begins the report of a fault with one of these.
constexpr std::array<std::string_view, 7> kFaults = {
    "BUG: ", "Oops: ", "Kernel panic", "general protection fault", "WARNING: CPU: ", "kernel BUG at ", "UBSAN: "};

bool tells_of_fault(std::string_view line) {
  return std::ranges::any_of(kFaults, [&](std::string_view words) { return line.find(words) != line.npos; });
}

}  // namespace

ConsoleLog::ConsoleLog(const std::string& file) {
  if (file.empty()) return;
  file_.open(file, std::ios::binary);
  if (!file_) throw ConfigError(fmt::format("{}: {}", shown(file), std::strerror(errno)));
}

void ConsoleLog::add(std::string_view text) {
  if (file_.is_open()) file_.write(text.data(), std::streamsize(text.size())).flush();
  for (const char letter : text) {
    if (letter == '\n' || line_.size() >= kMostLine) end_line();
    if (letter != '\n' && letter != '\r') line_ += letter;
  }
}

void ConsoleLog::end_line() {
  if (tells_of_fault(line_) && faults_.size() < kMostFaults) faults_.push_back(shown(line_));
  last_.push_back(std::exchange(line_, {}));
  if (last_.size() > kLastLines) last_.pop_front();
}

std::vector<std::string> ConsoleLog::take_faults() { return std::exchange(faults_, {}); }

std::string ConsoleLog::last_lines() const {
  std::string text;
  for (const auto& line : last_) text += shown(line) + '\n';
  if (!line_.empty()) text += shown(line_) + '\n';
  return text;
}

}  // namespace rnicsim::sim
