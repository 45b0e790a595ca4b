// SPDX-License-Identifier: Apache-2.0
// File in the place of /proc/PID/schedstat: the test decides how long a thread has waited for a processor.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class SchedulerStatistics {
 public:
  SchedulerStatistics() { waited(std::chrono::nanoseconds(0)); }
  void waited(std::chrono::nanoseconds time) { write("1000000 " + std::to_string(time.count()) + " 3\n"); }
  void write(const std::string& text) {
    EXPECT_EQ(::ftruncate(file_.get(), 0), 0);
    EXPECT_EQ(::pwrite(file_.get(), text.data(), text.size(), 0), ssize_t(text.size()));
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  const Descriptor file_{::memfd_create("schedstat", MFD_CLOEXEC)};
};

}  // namespace rnicsim::sim
