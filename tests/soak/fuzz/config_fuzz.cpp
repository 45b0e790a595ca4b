// SPDX-License-Identifier: Apache-2.0
// Configuration: files, --set and --fault. A refusal has a message; an accepted configuration can be written and read
// again.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/fault_record.h"
#include "sim/config/loader.h"
#include "tests/soak/fuzz/memory_file.h"

namespace rnicsim::fuzz {
namespace {

enum Step : std::uint8_t { nic_file, topology_file, set, fault, kinds };

struct Attempt {
  sim::Config config;
  sim::ParamList params{config};
  sim::Loader loader{params, config.topology};
};

void take(Attempt& attempt, const Input::Step& step) {
  const std::string text(step.body.begin(), step.body.end());
  switch (step.kind % kinds) {
    case nic_file: return attempt.loader.load(sim::DataKind::nic, MemoryFile(step.body).path());
    case topology_file: return attempt.loader.load(sim::DataKind::topology, MemoryFile(step.body).path());
    case set: return attempt.loader.set(text);
    default: return attempt.loader.fault(text);
  }
}

bool resolve(Attempt& attempt) {
  if (attempt.config.topology.interfaces.empty()) return false;
  sim::settle(attempt.config, attempt.loader);
  for (const auto& record : attempt.loader.faults()) {
    attempt.config.faults.push_back(sim::to_fault(record, attempt.config.topology, attempt.config.faults.size() + 1));
    require(!sim::fault_text(attempt.config.faults.back()).empty(), "a fault rule without text");
  }
  return true;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const auto step = [](Script& script, Step kind, std::string_view text) -> Script& {
    return script.step(kind, Bytes(text.begin(), text.end()));
  };
  const auto one = [&](Step kind, std::string_view text) {
    Script script;
    all.push_back(step(script, kind, text));
  };
  Script shipped;
  step(shipped, nic_file, text_of(sim::find_data(sim::DataKind::nic, "cx5-100g")));
  step(shipped, topology_file, text_of(sim::find_data(sim::DataKind::topology, "back-to-back")));
  all.push_back(shipped);
  sim::Config config = sim::load_config("cx5-100g", "back-to-back", {});
  one(topology_file, sim::to_toml(config));
  constexpr const char* kHosts = R"([[hosts]]
name = "h0"
ipv4 = "10.1.2.3/16"
ipv6 = "fd00::1/64"
mac = "02:00:00:00:00:01"
[[hosts]]
name = "h1"
[[cables]]
from = "h0"
to = "h1"
[[fault]]
action = "drop"
probability = 0.25
nth = [1, "3-5", "7-"]
)";
  constexpr const char* kProfiles = R"(base = "leaf-spine:2,2,1"
[hosts."h[0-1]"]
nic = "fast"
type = "slow"
[switches.leaf0]
type = "slow"
[cables.h0-leaf0]
link = "long"
port = "wide"
[nics.fast]
base = "cx6-200g"
tx.latency = "1 us"
[host_types.slow]
[switch_types.slow]
latency = "1 us"
[links.long]
latency = "5 us"
[ports.wide]
rate = "400 Gb/s"
)";
  for (const char* text : {kHosts, kProfiles, "base = \"cx5-100g\"\n[nic.tx]\nlatency = \"1 us\"\n",
                           "a.b.c = 1\n[nic]\ntx.latency = '2 ns'\n",
                           "x = [[1, 2], [\"a\"]]\ny = { z = 1979-05-27T07:32:00Z }\n", "nic = 1e400\nhost = -0x1\n"})
    one(topology_file, text);
  for (const char* text : {"nic.pcie.read_latency=600ns", "nic.pcie.burst=4 KiB", "nic.port.rate=400 Gb/s",
                           "host.cpu.detect=1e3 ns", "hosts.h0.nic=cx6-200g", "cables.h0-h1.port=x",
                           "nic.capabilities.max_qp=12", "network.latency=9223372036854775807 ps", "nic=", "=", "x"}) {
    Script script = shipped;
    all.push_back(step(script, set, text));
  }
  for (const char* text :
       {"drop=0.1", "drop,nth=3-5+7-,host=h0,opcode=WRITE+SEND_ONLY", "delay=0.5,by=2us,psn=0x10-0xffffff",
        "corrupt,qp=0x11,count=3", "reorder,by=3,limit=1ms", "duplicate,nth=1"}) {
    Script script = shipped;
    all.push_back(step(script, fault, text));
  }
  return all;
}

}  // namespace rnicsim::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rnicsim;
  using namespace rnicsim::fuzz;
  Attempt attempt;
  Input input(data, size);
  try {
    for (int steps = 0; !input.empty() && steps < 20; ++steps) take(attempt, input.take_step());
    if (!resolve(attempt)) return 0;
  } catch (const sim::ConfigError& error) {
    require(*error.what() != 0, "a refusal without a message");
    return 0;
  }
  const auto written = sim::to_toml(attempt.config);
  Attempt again;
  try {
    again.loader.load(sim::DataKind::topology,
                      MemoryFile({reinterpret_cast<const std::uint8_t*>(written.data()), written.size()}).path());
    require(resolve(again), "a configuration that was written has no hosts");
  } catch (const sim::ConfigError& error) {
    fail(error.what());
  }
  require(sim::to_toml(again.config) == written, "a configuration changes when written and read");
  return 0;
}
