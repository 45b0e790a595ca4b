// rnicsim vm: boots guests, lets them execute commands, and ends them.
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
  std::string kernel_words;                // more parameters of the kernel
  std::string consoles;                    // a folder; empty: consoles are not kept
  std::vector<GuestCommandLine> commands;  // in the order in which they start
  Limits limits;
  Duration boot_limit{300'000'000'000'000};
  // A command starts when the one before it has ended or waits, and at the latest after this time.
  Duration most_gap{10'000'000'000'000};
};

// The commands of "--on GUESTS COMMAND", where GUESTS is "g0" or "g[0-3]". ConfigError.
std::vector<GuestCommandLine> guest_commands(const std::vector<std::pair<std::string, std::string>>& on,
                                             std::size_t guests);

// The exit status: the worst of the commands' own; 1 when a guest is lost, or its kernel told of a fault; kLimitStatus
// at the wall clock's limit; 128 + signal. ConfigError, ImageFailed.
int run_guests(const GuestOptions& options, GuestDevices& devices);

}  // namespace rnicsim::sim
