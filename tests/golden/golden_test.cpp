// SPDX-License-Identifier: Apache-2.0
// Golden traces: each behaviour has a case (golden.check runs the cases), and a recording shows differences.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "model/nic/nic.h"
#include "model/nic/packets/port.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/check/case.h"
#include "sim/config/config.h"
#include "sim/recording/counter_audit.h"
#include "sim/system.h"
#include "sim/trace_file/trace_diff.h"
#include "tests/golden/behaviours.h"

namespace rnicsim::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

sim::TraceDifference compare(const std::string& a, const std::string& b) {
  std::istringstream first(a), second(b);
  sim::TraceReader left(first, "A"), right(second, "B");
  return sim::compare_traces(left, right);
}

const Behaviour& behaviour(std::string_view name) {
  for (const auto& candidate : behaviours())
    if (candidate.name == name) return candidate;
  throw std::runtime_error("no such behaviour");
}

TEST(Traces, FolderAndListAgree) {
  std::set<std::string> listed, there;
  for (const auto& one : behaviours()) {
    SCOPED_TRACE(one.name);
    EXPECT_TRUE(listed.insert(one.name + ".toml").second);
    EXPECT_TRUE(listed.insert(one.name + ".trace").second);
    const auto read = sim::check::read_case(kGoldenFolder / (one.name + ".toml"), one.name);
    EXPECT_EQ(read.title, one.title);
    EXPECT_THAT(std::get<sim::check::Simulator>(read.run).words,
                ::testing::ElementsAre("golden_behaviour", one.name, "@trace"));
    ASSERT_TRUE(read.trace);
    EXPECT_EQ(read.trace->file, golden_trace(one));
    EXPECT_TRUE(read.trace->times.exact() && read.trace->left_out.empty());
  }
  for (const auto& file : std::filesystem::directory_iterator(kGoldenFolder))
    there.insert(file.path().filename().string());
  EXPECT_EQ(there, listed);
}

TEST(Recording, TheSameRunGivesTheSameBytes) {
  for (const char* name : {"rc_send", "rnr_retry"}) {
    const auto first = BehaviourRun::record_apart(behaviour(name)).value();
    EXPECT_GT(first.size(), 1000u);
    EXPECT_EQ(BehaviourRun::record_apart(behaviour(name)), first) << name;
  }
}

// One parameter is larger by a nanosecond; `difference` is the first effect.
TEST(Recording, ANanosecondIsFoundAtItsFirstEffect) {
  struct Change {
    const char* set;
    const char* kind;
    const char* difference;
  };
  const auto& write = behaviour("rc_write");
  const auto before = BehaviourRun::record_apart(write).value();
  for (const auto& [set, kind, difference] :
       {Change{"nic.tx.latency=171ns", "  frame_sent  ", "time +1 ns"},
        Change{"nic.rx.latency=171ns", "  packet_received  ", "time +1 ns"},
        Change{"link.latency=91ns", "  frame_received  ", "arrives_in 90 ns -> 91 ns"},
        Change{"nic.pcie.read_latency=404ns", "  device_command  ", "time +2 ns"},
        Change{"host.mmio_write_latency=171ns", "  device_command  ", "time +1 ns"},
        Change{"host.cpu.ring_doorbell=41ns", "  doorbell  ", "time +1 ns"}}) {
    const auto result = compare(before, BehaviourRun::record_apart(write, {set}).value());
    EXPECT_FALSE(result.equal) << set;
    EXPECT_THAT(result.events, HasSubstr(kind)) << set;
    EXPECT_THAT(result.events, HasSubstr(difference)) << set;
    EXPECT_THAT(result.header, HasSubstr(std::string(set, std::string_view(set).find('=')))) << set;
  }
}

TEST(CounterAudit, FindsAMiscount) {
  sim::System system("system", sim::load_config("cx5-100g", "back-to-back", {}));
  const sim::CounterAudit audit(system);
  EXPECT_THAT(audit.disagreements(), IsEmpty());
  system.start();
  EXPECT_GT(system.counters(0).nic.command.commands, 0u);
  EXPECT_THAT(audit.disagreements(), IsEmpty());
  // Simulates a port that forgot to count a frame.
  system.adapter(1).nic().blocks().port.received({100, {}});
  EXPECT_THAT(audit.disagreements(),
              ::testing::ElementsAre("h1: nic.port.rx_frames is 0, but its trace points reported 1",
                                     "h1: nic.port.rx_bytes is 0, but its trace points reported 100"));
}

}  // namespace
}  // namespace rnicsim::testing
