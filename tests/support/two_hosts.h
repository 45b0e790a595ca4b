// SPDX-License-Identifier: Apache-2.0
// Two hosts and a cable inside the test's process. A test has one body for each host. Bodies are software threads that
// call the real verbs library. All frames on the wire are recorded.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::host {
class SoftwareProcess;
}

namespace rnicsim::nic {
struct CapabilityParams;
}

namespace rnicsim::sim {
class Adapter;
class CounterAudit;
class System;
}  // namespace rnicsim::sim

namespace rnicsim::testing {

// Adds parameters from the environment to `sets`. RNICSIM_TEST_SETS="nic.contexts.qpc.l1_entries=0,..." runs the same
// tests on another device, RNICSIM_TEST_ENGINE=rtl or lockstep on another engine. The test's own settings come last.
std::vector<std::string> with_sets_of_environment(const std::vector<std::string>& sets = {});

struct WireFrame {
  Duration at;                   // time at which the last bit left
  std::uint32_t from;            // index of the sending host
  std::vector<std::byte> bytes;  // without FCS
};

// A condition on which simulated threads wait.
class Signal {
 public:
  explicit Signal(const char* name);
  ~Signal();
  void wake_all();
  void wait();

 private:
  struct Event;
  const std::unique_ptr<Event> event_;
};

// Two threads exchange one value each.
template <class Value>
class Exchange {
 public:
  // Waits for the other thread's value.
  Value swap(std::size_t me, Value mine) {
    values_[me] = std::move(mine);
    given_.wake_all();
    while (!values_[1 - me]) given_.wait();
    return *values_[1 - me];
  }

 private:
  std::array<std::optional<Value>, 2> values_;
  Signal given_{"given"};
};

class TwoHosts : public ::testing::Test {
 protected:
  // Parameters and fault rules in the syntax of --set and --fault.
  explicit TwoHosts(const std::vector<std::string>& sets = {}, const std::vector<std::string>& faults = {},
                    std::uint64_t seed = 1);
  ~TwoHosts() override;  // fails the test if the counter audit or an engine's reference model found an error

  // Call once per test. Fails the test if a body has not ended by the simulated time `most`.
  void run(std::function<void()> on_h0, std::function<void()> on_h1, Duration most = {1'000'000'000'000});

  sim::System& system() { return *system_; }
  sim::Adapter& host(std::size_t index);
  // The software process on a host: PASID and port.
  host::SoftwareProcess& process(std::size_t index) { return *processes_[index]; }
  const std::vector<WireFrame>& wire() const { return wire_; }
  // Capabilities of the device under test.
  const nic::CapabilityParams& capabilities() const;
  bool invalidates() const;
  bool windows() const;
  bool shares_receives() const;
  // The calling thread of that process waits until its charged CPU time has passed.
  void settle(std::size_t process);
  // Barrier of the two threads.
  void meet(std::size_t me);

 private:
  std::unique_ptr<sim::System> system_;
  std::unique_ptr<sim::CounterAudit> audit_;
  std::vector<std::unique_ptr<host::SoftwareProcess>> processes_;
  std::vector<WireFrame> wire_;
  std::array<std::uint32_t, 2> meetings_{};
  Signal met_{"met"};
};

}  // namespace rnicsim::testing
