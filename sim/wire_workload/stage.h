// SPDX-License-Identifier: Apache-2.0
// State that the hosts of a workload share: readiness, the time of the beginning, and a failure.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <systemc>
#include <utility>

#include "model/base/kernel.h"

namespace rnicsim::sim::wire_workload {

class Stage {
 public:
  explicit Stage(std::size_t hosts) : hosts_(hosts) {}

  // A thread of each host calls this and waits for the other hosts. std::runtime_error: another host has failed.
  void meet() {
    const auto wanted = (arrived_ / hosts_ + 1) * hosts_;
    if (++arrived_ == wanted) {
      begin_ = now();
      wake(met_);
    }
    while (arrived_ < wanted && failure_.empty()) sleep_on(met_);
    if (!failure_.empty()) throw std::runtime_error("another host has failed");
  }
  // Time of the last meeting of all hosts.
  Duration begin() const { return begin_; }

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    wake(met_);
    pause_run();
  }
  const std::string& failure() const { return failure_; }

  void expect(std::size_t requests) { open_ += requests; }
  void complete() {
    progress_ = now();
    if (--open_ == 0) pause_run();
  }
  std::size_t open() const { return open_; }  // requests without a completion
  Duration progress() const { return progress_; }

 private:
  const std::size_t hosts_;
  std::size_t arrived_ = 0;
  sc_core::sc_event met_{"wire_hosts_met"};
  Duration begin_{};
  std::string failure_;
  std::size_t open_ = 0;
  Duration progress_{};
};

}  // namespace rnicsim::sim::wire_workload
