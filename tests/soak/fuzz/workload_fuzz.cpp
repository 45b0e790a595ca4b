// SPDX-License-Identifier: Apache-2.0
// Workload files and overriding keys. A refusal is one line; an accepted workload can be planned.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "sim/bench/plan.h"
#include "sim/bench/workload.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "tests/soak/fuzz/memory_file.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { file, override_key, kinds };

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto bytes = [](std::string_view text) { return Bytes(text.begin(), text.end()); };
  for (const auto& name : sim::data_names(sim::DataKind::workload)) {
    Script script;
    all.push_back(script.step(file, bytes(text_of(sim::find_data(sim::DataKind::workload, name)))));
    for (const char* text :
         {"flow[0].window=8", "flow.address={ stride = \"4 KiB\" }", "measure.operations=5", "flow.to=\"h1..h9\"",
          "flow.mix=[{ op = \"send\", size = \"1 B\" }]", "seed=-1", "topology=star", "flow[1].qps=2"}) {
      Script changed = script;
      all.push_back(changed.step(override_key, bytes(text)));
    }
  }
  Script rich;
  all.push_back(rich.step(file, bytes(R"(schema = 1
set = { a.b = "1 us", c = true, d = 1.5 }
measure = { warmup = "1 us", operations = 10 }
[[flow]]
from = ["h0", "h2..h4"]
to = "h1"
mix = [{ op = "read", weight = 3, size = "8 B" }, { op = "cmp_swap" }]
window = 64
window_per = "thread"
batch = 4
inline = "64 B"
signal_every = 2
mrs = 5
mr_size = "1 MiB"
pace = "10 Gb/s"
start = "1 us"
stop = "1 ms"
)")));
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  Input input(data, size);
  Bytes text;
  std::vector<std::string> overrides;
  for (int steps = 0; !input.empty() && steps < 10; ++steps) {
    const auto step = input.take_step();
    if (step.kind % kinds == file) {
      text.assign(step.body.begin(), step.body.end());
    } else if (const std::string key(step.body.begin(), step.body.end()); sim::bench::is_workload_key(key)) {
      overrides.push_back(key);
    }
  }
  try {
    auto workload = sim::bench::read_workload(MemoryFile(text).path(), overrides);
    // A plan for very many agents is valid, but takes long.
    for (const auto& flow : workload.flows)
      if (std::uint64_t(flow.threads) * flow.qps * flow.from.size() * flow.to.size() > 4096) return 0;
    const auto topology = sim::bench::topology_of(workload);
    if (!topology.starts_with("star:") && topology != "back-to-back") return 0;
    const auto config = sim::load_config("cx5-100g", topology, {});
    const auto plan = sim::bench::make_plan(workload, config);
    for (const auto& agent : plan.agents)
      for (std::size_t i = 0; i < agent.qps.size(); ++i) {
        const auto& peer = plan.agents.at(agent.qps[i].agent);
        if (peer.qps.empty() && !peer.sends) continue;  // this agent receives raw packets
        require(peer.qps.at(agent.qps[i].qp).qp == i, "a connection has one end");
        require(peer.host != agent.host && peer.sends != agent.sends, "a connection with itself");
      }
  } catch (const sim::ConfigError& error) {
    const std::string_view what = error.what();
    require(!what.empty(), "a refusal without a message");
    require(what.find('\n') == what.npos, error.what());
  }
  return 0;
}
