// SPDX-License-Identifier: Apache-2.0
// Random walk over librdmacm's calls: no sequence of calls may break the library or the kernel. Each of two hosts has a
// process with two threads, one with asynchronous and one with synchronous ids. The threads make random calls, legal
// and illegal, and connect to any listener. A model gives the allowed result of each call and the events that may or
// must come. At the end all objects can be destroyed, and nothing is left.
//
// RNICSIM_WALK_SEED (default 1), RNICSIM_WALK_STEPS of each thread (default 8,000; a tenth for synchronous ids). Long
// form: verbs_walk_long.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "model/base/kernel.h"
#include "model/host/host_kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/software_process.h"
#include "sim/adapter.h"
#include "tests/soak/connections_walk/walker.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {
namespace {

// With odd seeds the cable loses, duplicates and delays messages.
std::vector<std::string> faults_of(std::uint64_t seed) {
  if (seed % 2 == 0) return {};
  return {"drop=0.02", "duplicate=0.02", "delay=0.02,by=50us"};
}

class ConnectionsWalk : public TwoHosts {
 protected:
  static constexpr std::size_t kWalkers = 4;

  explicit ConnectionsWalk(std::uint64_t seed = number_of_environment("RNICSIM_WALK_SEED", 1))
      : TwoHosts({}, faults_of(seed), seed) {
    town_.seed = seed;
    for (std::uint32_t i = 0; i < kWalkers; ++i)
      walkers_.push_back(std::make_unique<ConnectionWalker>(town_, i, i / 2, i % 2 != 0));
  }

  // Barrier of all walkers.
  void gather(host::SoftwareProcess& process) {
    process.port().settle();
    const auto meeting = arrivals_++ / kWalkers;
    wake(arrived_);
    while (arrivals_ / kWalkers == meeting) sleep_on(arrived_);
  }

  void walk(ConnectionWalker& walker, host::SoftwareProcess& process) {
    walker.open(process);
    gather(process);
    while (!town_.broken && !all_have_walked()) {
      if (has_walked(walker)) rest(process);
      walker.step();
    }
    gather(process);
    for (int i = 0; i < 3; ++i) {
      if (!town_.broken) walker.settle();
      gather(process);
    }
    if (!town_.broken) walker.expect_settled();
    gather(process);
    if (!town_.broken) walker.destroy_all();
    gather(process);
    // Checked before the channels are closed, which would destroy remaining ids.
    for (std::size_t i = 0; i < 2 && !town_.broken; ++i) EXPECT_EQ(host(i).kernel().connection_ids(), 0u);
    gather(process);
    if (!town_.broken) walker.close();
    gather(process);
  }

  // A call of a synchronous id may take minutes: the other walkers continue slowly, so that the call finds its peers.
  static bool has_walked(const ConnectionWalker& walker) {
    const auto steps = number_of_environment("RNICSIM_WALK_STEPS", 8000);
    return walker.steps() >= (walker.synchronous() ? steps / 10 : steps);
  }
  bool all_have_walked() const {
    return std::ranges::all_of(walkers_, [](const auto& walker) { return has_walked(*walker); });
  }
  static void rest(host::SoftwareProcess& process) {
    process.port().settle();
    sleep_until(now() + Duration{100'000'000'000});
  }

  void walk_on(std::uint32_t host) {
    process(host).spawn("synchronous", [this, host] { walk(*walkers_[2 * host + 1], process(host)); });
    walk(*walkers_[2 * host], process(host));
    // Waits for the end of all timewaits.
    settle(host);
    sleep_until(now() + Duration{400'000'000'000'000});
    if (!town_.broken) {
      EXPECT_EQ(this->host(host).kernel().connection_ids(), 0u);
      EXPECT_EQ(this->host(host).kernel().connections(), 0u);
    }
  }

  ConnectionTown town_;
  std::vector<std::unique_ptr<ConnectionWalker>> walkers_;
  std::size_t arrivals_ = 0;
  sc_core::sc_event arrived_{"arrived"};
};

TEST_F(ConnectionsWalk, NothingBreaks) {
  run([&] { walk_on(0); }, [&] { walk_on(1); }, {4'000'000'000'000'000'000});
  std::cout << town_.calls << " calls, " << town_.established << " connections, " << town_.messages << " messages in "
            << to_string(now()) << "\n";
  if (town_.broken) return;
  EXPECT_GT(town_.established, 0u);
}

}  // namespace
}  // namespace rnicsim::testing
