// The files of a port's counters in sysfs. Each is read from the device when a program opens it, and again when the
// program reads it from its beginning, as of a real sysfs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/abi/attach.h"
#include "verbs/clock/known_descriptors.h"

namespace rnicsim::clock {

// Of an absolute path, by its class or by its device.
PortCounter port_counter_at(std::string_view path);
// The value now; nullopt: the host could not ask its device.
std::optional<std::uint64_t> read_port_counter(abi::ThreadSlot& slot, PortCounter counter);

// `fd` has just been opened with these flags, by the path that was given. If it is such a file, it has the counter's
// value from now on.
void know_port_counter(int fd, const char* given, int flags);
// Before a read of such a descriptor at `offset`; -1: where it stands.
void refresh_port_counter(int fd, std::int64_t offset = -1);

}  // namespace rnicsim::clock
