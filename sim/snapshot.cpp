// SPDX-License-Identifier: Apache-2.0
#include "sim/snapshot.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "model/base/kernel.h"
#include "model/fabric/switch_params.h"
#include "sim/adapter.h"
#include "sim/adapter_counters.h"
#include "sim/config/config.h"
#include "sim/results/json.h"
#include "sim/system.h"

namespace rnicsim::sim {
namespace {

constexpr int kFormat = 1;

std::string command_line() {
  std::ifstream in("/proc/self/cmdline");
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (text.ends_with('\0')) text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  // Without the folder of the program.
  return text.substr(text.rfind('/', text.find(' ')) + 1);
}

// A number; for a counter of several units an array: the sum, then the value of each unit.
Json value_json(const CounterEntry& entry) {
  if (entry.each.empty()) return entry.value;
  Json values = Json::array({entry.value});
  for (const Counter each : entry.each) values.push_back(each);
  return values;
}

void read_value(const Json& json, CounterEntry& entry) {
  entry.value = (json.is_array() ? json.at(0) : json).get<Counter>();
  entry.each.clear();
  if (!json.is_array()) return;
  for (std::size_t i = 1; i < json.size(); ++i) entry.each.push_back(json[i].get<Counter>());
}

// Names and units of the counters are written once, for all blocks of a kind.
Json blocks_json(const std::vector<Snapshot::Block>& blocks) {
  Json counters = Json::array(), all = Json::array();
  for (const auto& block : blocks) {
    Json values = Json::array();
    for (const auto& entry : block.counters.entries()) {
      values.push_back(value_json(entry));
      if (all.empty()) counters.push_back({entry.path, entry.unit, int(entry.kind), entry.units});
    }
    all.push_back({{"label", block.label}, {"values", std::move(values)}});
  }
  return {{"counters", std::move(counters)}, {"all", std::move(all)}};
}

CounterEntry::Kind kind_of(int number) {
  if (number < 0 || number > int(CounterEntry::Kind::most)) throw std::runtime_error("a counter of no known kind");
  return CounterEntry::Kind(number);
}

std::vector<Snapshot::Block> read_blocks(const Json& json) {
  std::vector<CounterEntry> counters;
  for (const auto& each : json.at("counters")) {
    CounterEntry entry{each.at(0).get<std::string>(),  0,
                       each.at(1).get<std::string>(),  {},
                       kind_of(each.at(2).get<int>()), each.at(3).get<std::uint32_t>()};
    entry.units = std::max(1u, entry.units);
    counters.push_back(std::move(entry));
  }
  std::vector<Snapshot::Block> blocks;
  for (const auto& each : json.at("all")) {
    const auto& values = each.at("values");
    for (std::size_t i = 0; i < counters.size(); ++i) read_value(values.at(i), counters[i]);
    blocks.push_back({each.at("label").get<std::string>(), CounterList(counters)});
  }
  return blocks;
}

}  // namespace

Snapshot take_snapshot(const System& system) {
  Snapshot snapshot;
  snapshot.pid = std::uint32_t(::getpid());
  snapshot.command = command_line();
  snapshot.time = now();
  snapshot.wall_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  for (std::size_t i = 0; i < system.adapters(); ++i)
    snapshot.adapters.push_back({system.adapter(i).label(), CounterList(system.counters(i))});
  for (std::size_t i = 0; i < system.switches(); ++i)
    snapshot.switches.push_back({system.config().topology.switches[i], CounterList(system.switch_counters(i))});
  return snapshot;
}

std::string snapshot_text(const Snapshot& snapshot) {
  Json json{{"format", kFormat},
            {"pid", snapshot.pid},
            {"command", snapshot.command},
            {"time_ps", snapshot.time.ps},
            {"wall_ns", snapshot.wall_ns},
            {"adapters", blocks_json(snapshot.adapters)},
            {"switches", blocks_json(snapshot.switches)},
            {"programs", Json::array()},
            {"work", snapshot.work}};
  for (const auto& program : snapshot.programs)
    json["programs"].push_back({{"host", program.host}, {"name", program.name}, {"threads", program.threads}});
  // Program names need not be UTF-8; dump() replaces invalid bytes.
  return json.dump() + '\n';
}

Snapshot read_snapshot(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != Json(kFormat)) throw std::runtime_error("written by another version");
    Snapshot snapshot;
    json.at("pid").get_to(snapshot.pid);
    json.at("command").get_to(snapshot.command);
    snapshot.time = Duration{json.at("time_ps").get<std::int64_t>()};
    json.at("wall_ns").get_to(snapshot.wall_ns);
    snapshot.adapters = read_blocks(json.at("adapters"));
    snapshot.switches = read_blocks(json.at("switches"));
    for (const auto& program : json.at("programs"))
      snapshot.programs.push_back({program.at("host").get<std::string>(), program.at("name").get<std::string>(),
                                   program.at("threads").get<std::vector<std::string>>()});
    json.at("work").get_to(snapshot.work);
    return snapshot;
  } catch (const JsonError& error) {
    throw std::runtime_error(error.what());
  }
}

}  // namespace rnicsim::sim
