// SPDX-License-Identifier: Apache-2.0
// Devices of the guests besides memory, console and the launcher's channel: network ports and NICs.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

// QEMU's arguments for the devices of a guest.
struct DeviceArguments {
  std::vector<std::string> words;
  std::vector<Descriptor> inherited;  // descriptors that the words refer to by number
};

class GuestDevices {
 public:
  virtual ~GuestDevices() = default;
  // Called once for each guest, before the first guest starts.
  virtual DeviceArguments arguments(std::size_t guest) = 0;
  // Runs the devices until one of `watched` is ready, for `longest` at most. Sets `revents` of `watched` as poll(2)
  // does. Called repeatedly while the guests run, from before their first instruction on.
  virtual void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) = 0;
  // The guests shut down now: the end of a connection is no longer reported.
  virtual void expect_end() {}
  // True: the devices have stopped, and the run has to end.
  virtual bool have_stopped() const { return false; }
  // Lines about the devices, for a run that was ended at a limit.
  virtual std::string state() const { return {}; }
};

}  // namespace rnicsim::sim
