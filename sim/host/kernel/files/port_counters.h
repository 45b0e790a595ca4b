// SPDX-License-Identifier: Apache-2.0
// Files of a port's counters in sysfs. As in real sysfs, the value is read from the device when a program opens such a
// file, and again when the program reads the file from its beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/abi/attach.h"
#include "sim/host/kernel/files/known_descriptors.h"

namespace rnicsim::clock {

// The counter of an absolute path: below /sys/class/infiniband, or below the device's own folder.
PortCounter port_counter_at(std::string_view path);
// The present value; nullopt: the host could not ask its device.
std::optional<std::uint64_t> read_port_counter(abi::ThreadSlot& slot, PortCounter counter);

// `fd` was just opened with `flags` by the path `given`. If the path is that of a counter, `fd` leads to a file with
// the counter's value from now on.
void know_port_counter(int fd, const char* given, int flags);
// Call before a read at `offset` (-1: the file position). Renews the value of a counter that is read from its
// beginning.
void refresh_port_counter(int fd, std::int64_t offset = -1);

}  // namespace rnicsim::clock
