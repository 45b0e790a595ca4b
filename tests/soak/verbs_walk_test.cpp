// SPDX-License-Identifier: Apache-2.0
// Random walk over verbs: no sequence of calls may break the library, the kernel or the device. Three processes, two of
// them on one host, make random verbs calls, legal and illegal, between each other, over a lossy cable. A model gives
// the result of each call. Each work request completes once, in order, with a possible status and the right bytes.
// Memory changes only where its owner granted access. At the end all objects can be destroyed.
//
// RNICSIM_WALK_SEED (default 1), RNICSIM_WALK_STEPS of each process (default 30,000), RNICSIM_WALK_FEW=1: the device
// supports few flows, tables and counters, and they are exhausted. Long form: verbs_walk_long.py.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>

#include "model/base/kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/soak/dice.h"
#include "tests/soak/verbs_walk/walker.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {
namespace {

class VerbsWalk : public TwoHosts {
 protected:
  static constexpr std::size_t kProcesses = 3;
  static inline const std::vector<std::string> kFew = {"nic.capabilities.max_flows=5", "nic.capabilities.max_rss=2",
                                                       "nic.capabilities.max_flow_counters=3"};
  static bool few() { return number_of_environment("RNICSIM_WALK_FEW", 0) != 0; }

  VerbsWalk()
      : TwoHosts(few() ? kFew : std::vector<std::string>{}, {"drop=1e-3"},
                 number_of_environment("RNICSIM_WALK_SEED", 1)) {
    for (std::uint32_t i = 0; i < kProcesses; ++i)
      walkers_.push_back(std::make_unique<Walker>(town_, i, number_of_environment("RNICSIM_WALK_SEED", 1)));
    if (few()) town_.few = {.rules = 5, .spreads = 2, .counters = 3};
  }

  // Barrier of all processes.
  void gather(host::SoftwareProcess& process) {
    process.port().settle();
    const auto meeting = arrivals_++ / kProcesses;
    wake(arrived_);
    while (arrivals_ / kProcesses == meeting) sleep_on(arrived_);
  }

  void walk(std::size_t me, host::SoftwareProcess& process) {
    Walker& walker = *walkers_[me];
    walker.open(process);
    gather(process);
    const auto steps = number_of_environment("RNICSIM_WALK_STEPS", 30000);
    for (std::uint64_t i = 0; i < steps && !town_.broken; ++i) walker.step();
    gather(process);
    if (!town_.broken) walker.expect_progress();
    gather(process);
    if (!town_.broken) walker.flush();
    gather(process);
    if (!town_.broken) walker.close();
    gather(process);
  }

  Town town_;
  std::vector<std::unique_ptr<Walker>> walkers_;
  std::size_t arrivals_ = 0;
  sc_core::sc_event arrived_{"arrived"};
};

TEST_F(VerbsWalk, NothingBreaks) {
  std::unique_ptr<host::SoftwareProcess> third;
  third = std::make_unique<host::SoftwareProcess>("third", system().config().host, host(1).agent(),
                                                  [&] { walk(2, *third); });
  run([&] { walk(0, process(0)); },
      [&] {
        walk(1, process(1));
        while (!third->finished()) {
          settle(1);
          sleep_until(now() + Duration{1'000'000});
        }
      },
      {1'000'000'000'000'000});
  std::uint64_t completions = 0, frames = 0, extended = 0;
  for (const auto& walker : walkers_) {
    completions += walker->completions();
    frames += walker->frames();
    extended += walker->extended();
  }
  std::cout << completions << " completions, " << frames << " of raw packets received, " << extended
            << " of receives of XRC, in " << to_string(now()) << "\n";
  if (!town_.broken) {
    EXPECT_GT(completions, 0u);
    if (number_of_environment("RNICSIM_WALK_SEED", 1) == 1) {  // a run with another seed may have no frames
      EXPECT_GT(frames, 0u);
      EXPECT_GT(extended, 0u);
    }
  }
}

}  // namespace
}  // namespace rnicsim::testing
