// SPDX-License-Identifier: Apache-2.0
// rnicsim vm: boots guests, executes commands in the guests, and ends the guests.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"
#include "sim/guest/vm/guest_devices.h"
#include "sim/guest/vm/guest_image.h"
#include "sim/watch.h"

namespace rnicsim::sim {

struct GuestCommandLine {
  std::size_t guest;
  std::string line;  // for the guest's shell
};

struct GuestOptions {
  std::size_t guests = 2;
  ByteCount memory{256u << 20};
  ImageOptions image;
  std::string kernel_words;                // additional parameters of the kernel
  std::string consoles;                    // a folder; empty: console output is not kept
  std::vector<GuestCommandLine> commands;  // in the order in which they start
  Limits limits;
  Duration boot_limit{300'000'000'000'000};
  // A command starts when the command before it has ended or sleeps, at the latest after this time.
  Duration most_gap{10'000'000'000'000};
};

// The commands of "--on GUESTS COMMAND", where GUESTS is "g0" or "g[0-3]". ConfigError.
std::vector<GuestCommandLine> guest_commands(const std::vector<std::pair<std::string, std::string>>& on,
                                             std::size_t guests);

// Returns the exit status: the largest status of the commands, at least 1 if a guest's kernel reported a fault; 1 if a
// guest is lost; kLimitStatus at the limit of wall-clock time; 128 + signal. ConfigError, ImageFailed.
int run_guests(const GuestOptions& options, GuestDevices& devices);

}  // namespace rnicsim::sim
