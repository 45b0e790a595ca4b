// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/event_counter.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rnicsim::sim {
namespace {

// Id of the eventfd plus 1, from the line "eventfd-id: 7" of /proc/<pid>/fdinfo. 0: not an eventfd.
std::uint64_t id_in(const std::filesystem::path& file) {
  constexpr std::string_view kName = "eventfd-id:";
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(kName)) return std::stoull(line.substr(kName.size())) + 1;
  return 0;
}

}  // namespace

bool EventCounter::is_ready(short events) const {
  pollfd wanted{fd_.get(), events, 0};
  return fd_ && ::poll(&wanted, 1, 0) == 1 && (wanted.revents & events) != 0;
}

void EventCounter::add() const {
  constexpr std::uint64_t kOne = 1;
  if (is_ready(POLLOUT)) [[maybe_unused]]
    const auto written = ::write(fd_.get(), &kOne, sizeof kOne);
}

void EventCounter::clear() const {
  std::uint64_t count;
  if (is_ready(POLLIN)) [[maybe_unused]]
    const auto got = ::read(fd_.get(), &count, sizeof count);
}

std::uint64_t EventCounter::id_of(int fd) { return fd < 0 ? 0 : id_in(fmt::format("/proc/self/fdinfo/{}", fd)); }

std::set<std::uint64_t> EventCounter::ids_of(pid_t process) {
  std::set<std::uint64_t> ids;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fdinfo", process), none))
    if (const auto id = id_in(entry.path()); id != 0) ids.insert(id);
  return ids;
}

}  // namespace rnicsim::sim
