// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/port_counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

#include "model/abi/host_files.h"
#include "model/abi/port_counters.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(close);

namespace rnicsim::clock {
namespace {

constexpr std::uint32_t kPort = 1;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// For example "rnic0/ports/1/counters/port_xmit_data".
PortCounter port_counter_below(std::string_view rest) {
  PortCounter counter;
  if (!take(rest, abi::kDevicePrefix)) return {};
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), counter.device);
  if (error != std::errc{}) return {};
  rest.remove_prefix(std::size_t(end - rest.data()));
  if (!take(rest, "/ports/1/")) return {};
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos) return {};
  const std::size_t place = abi::find_port_counter_file(rest.substr(0, slash), rest.substr(slash + 1));
  if (place == std::size(abi::kPortCounterFiles)) return {};
  counter.number = std::uint16_t(place + 1);
  return counter;
}

bool is_a_counter_s_name(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return std::ranges::find(abi::kPortCounterFiles, name, &abi::PortCounterFile::name) !=
         std::end(abi::kPortCounterFiles);
}

// The counter of an open file, also if the path went through a link or started at an open folder.
PortCounter port_counter_of(int fd) {
  char link[32], path[512];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = raw_call(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  return length > 0 ? port_counter_at({path, std::size_t(length)}) : PortCounter{};
}

bool write_value(int fd, std::uint64_t value) {
  char text[24];
  const int bytes = snprintf(text, sizeof text, "%llu\n", static_cast<unsigned long long>(value));
  return ::ftruncate(fd, 0) == 0 && ::pwrite(fd, text, std::size_t(bytes), 0) == bytes;
}

}  // namespace

// Only /sys/class/infiniband, and the folder `infiniband` of each device, have this name.
PortCounter port_counter_at(std::string_view path) {
  constexpr std::string_view kFolder = "/infiniband/";
  const std::size_t at = path.rfind(kFolder);
  return at != path.npos ? port_counter_below(path.substr(at + kFolder.size())) : PortCounter{};
}

std::optional<std::uint64_t> read_port_counter(abi::ThreadSlot& slot, PortCounter counter) {
  abi::CommandHeader command{};
  command.opcode = std::uint16_t(abi::CommandOpcode::query_port_counters);
  command.object = kPort;
  const std::uint32_t device = slot.device;
  charge(slot, abi::CpuCost::command);
  memcpy(slot.input, &command, sizeof command);
  slot.input_bytes = sizeof command;
  slot.device = counter.device;
  const int error = call_without_signals(slot, abi::Call::command, {0});
  slot.device = device;
  abi::PortCounters counters;
  memcpy(static_cast<void*>(&counters), slot.output, sizeof counters);
  raise_signals(slot);
  if (error != 0 || counters.result.status != abi::CommandStatus::ok) return std::nullopt;
  return abi::kPortCounterFiles[counter.number - 1].value(counters);
}

// The descriptor keeps its number, and leads to a file in memory that nothing else uses.
void know_port_counter(int fd, const char* given, int flags) {
  if (fd < 0 || (flags & O_ACCMODE) != O_RDONLY || !is_a_counter_s_name(given)) return;
  const int error = errno;
  abi::ThreadSlot* slot = simulated_slot();
  const PortCounter counter = slot != nullptr ? port_counter_of(fd) : PortCounter{};
  if (counter) {
    const int made = ::memfd_create(abi::kPortCounterFiles[counter.number - 1].name.data(), MFD_CLOEXEC);
    const auto value = made >= 0 ? read_port_counter(*slot, counter) : std::nullopt;
    if (value && write_value(made, *value) &&
        raw_call(SYS_dup3, made, fd, (flags & O_CLOEXEC) != 0 ? O_CLOEXEC : 0) == fd)
      remember(fd, {.port_counter = counter});
    if (made >= 0) next_close(made);
  }
  errno = error;
}

void refresh_port_counter(int fd, std::int64_t offset) {
  abi::ThreadSlot* slot = simulated_slot();
  const auto descriptor = slot != nullptr ? known(fd) : std::nullopt;
  if (!descriptor || !descriptor->port_counter) return;
  if (offset < 0) offset = ::lseek(fd, 0, SEEK_CUR);
  if (offset != 0) return;
  if (const auto value = read_port_counter(*slot, descriptor->port_counter)) write_value(fd, *value);
}

}  // namespace rnicsim::clock
