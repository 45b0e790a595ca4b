// What the guests have besides memory, console and the launcher's channel: their network ports and their NICs.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "sim/descriptor.h"

namespace rnicsim::sim {

// What QEMU is told of a guest's devices.
struct DeviceArguments {
  std::vector<std::string> words;
  std::vector<Descriptor> inherited;  // those that the words name, by their numbers
};

class GuestDevices {
 public:
  virtual ~GuestDevices() = default;
  // Asked once for each guest, before the first one starts.
  virtual DeviceArguments arguments(std::size_t guest) = 0;
  // The devices work until one of `watched` is ready, or for `longest`; as poll(2) leaves `watched`. Called over and
  // over while the guests live, from before their first instruction on.
  virtual void work(std::vector<pollfd>& watched, std::chrono::milliseconds longest) = 0;
  // The guests shut down now: from now on the end of a connection is no news.
  virtual void expect_end() {}
  // The devices work no longer: the run has to end.
  virtual bool have_stopped() const { return false; }
  // Lines about the devices, for a run that was ended at a limit.
  virtual std::string state() const { return {}; }
};

}  // namespace rnicsim::sim
