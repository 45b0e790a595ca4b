// SPDX-License-Identifier: Apache-2.0
#include "sim/python/running.h"

#include <pybind11/pybind11.h>

#include <chrono>

#include "model/base/kernel.h"

namespace rnicsim::sim::python {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWhile = std::chrono::milliseconds(50);
constexpr unsigned kAlarmsPerLook = 256;  // between two reads of the clock

// While it exists, the run is paused when kWhile of wall time has passed.
class Break {
 public:
  Break() {
    Agenda::current()->on_interrupt = [this] { look(); };
    Agenda::interrupt();
  }
  ~Break() { Agenda::current()->on_interrupt = nullptr; }
  Break(const Break&) = delete;
  Break& operator=(const Break&) = delete;

 private:
  // Called between two alarms.
  void look() {
    if (++alarms_ % kAlarmsPerLook == 0 && Clock::now() >= end_) return pause_run();
    Agenda::interrupt();
  }

  const Clock::time_point end_ = Clock::now() + kWhile;
  unsigned alarms_ = 0;
};

}  // namespace

void run_for_a_while(Duration end) {
  {
    const Break brk;
    run_until(end);
  }
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace rnicsim::sim::python
