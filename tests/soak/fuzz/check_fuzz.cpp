// SPDX-License-Identifier: Apache-2.0
// Cases, expected results and results of `rnicsim check`. A refusal is one line. Accepted input can be checked, and
// saved results equal the originals.
#include <string_view>

#include "sim/check/case.h"
#include "sim/check/values.h"
#include "sim/config/config_error.h"
#include "tests/soak/fuzz/memory_file.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { case_file, expected, results, kinds };

constexpr std::string_view kCase = R"(schema = 1
on = [{ host = "h1", command = "ib_write_bw" }]
set = ["nic.tx.latency=1us"]
limit = "2 s"
[trace]
file = "a.trace"
times = ["20 ns", "1.5 %"]
leave_out = ["wqe_fetch"]
[results]
file = "a.json"
may_differ = [{ value = "*.nic.pcie.*", by = "1 %" }, { value = "end_ps", by = "5 us" }, { value = "*" }]
[[property]]
value = "h0.nic.port.tx_frames"
equals = "h1.nic.port.rx_frames"
within = 2
[[property]]
value = "flows[*].latency_ps.p99"
above = "1 us"
at_most = "1 ms"
)";
constexpr std::string_view kResults = R"({"end_ps": 5, "flows": [{"latency_ps": {"p99": 7.5, "max": null}, "op": "x"}],
"hosts": {"h0": {"counters": {"nic.port.tx_frames": 3}, "derived": {"a.b": null}},
          "h1": {"counters": {"nic.port.rx_frames": 3}}}, "simulator": {"cpu_s": 1}})";

Bytes bytes(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string_view text : {kCase, std::string_view("schema = 1\nsimulator = \"a @trace\"\n"),
                                      std::string_view("schema = 1\nworkload = \"write-4k\"\nstatus = 3\n")}) {
    Script script;
    script.step(case_file, bytes(text));
    script.step(expected, bytes(R"({"hosts": {"h0": {"counters": {"nic.port.tx_frames": 4}}}})"));
    all.push_back(script.step(results, bytes(kResults)));
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  using sim::Json;
  Input input(data, size);
  Bytes text;
  Json wanted = Json::object(), got = Json::object();
  for (int steps = 0; !input.empty() && steps < 10; ++steps) {
    const auto step = input.take_step();
    if (step.kind % kinds == case_file) {
      text.assign(step.body.begin(), step.body.end());
    } else if (auto json =
                   sim::check::parse_results({reinterpret_cast<const char*>(step.body.data()), step.body.size()})) {
      (step.kind % kinds == expected ? wanted : got) = std::move(*json);
    }
  }
  try {
    const auto read = sim::check::read_case(MemoryFile(text).path(), "case");
    const auto rules = read.results.value_or(sim::check::ExpectedResults{});
    sim::check::compare_results(rules, wanted, got);
    require(sim::check::compare_results(rules, sim::check::kept_results(got, nullptr), got).count == 0,
            "what was kept differs from itself");
    sim::check::compare_results(rules, sim::check::kept_results(got, &wanted), got);
    const auto values = sim::check::values_of(got);
    for (const auto& property : read.properties)
      if (const auto said = sim::check::violation(property, values))
        require(said->find('\n') == said->npos, "a property in several lines");
  } catch (const sim::ConfigError& error) {
    const std::string_view what = error.what();
    require(!what.empty(), "a refusal without a message");
    require(what.find('\n') == what.npos, error.what());
  }
  return 0;
}
