// SPDX-License-Identifier: Apache-2.0
#include "sim/wire_workload/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/engine_choice.h"
#include "sim/os/child_pool.h"
#include "sim/recording/recorder.h"
#include "sim/recording/trace_header.h"
#include "sim/replay/replay_wire.h"
#include "sim/results/json.h"
#include "sim/results/part_file.h"
#include "sim/system.h"
#include "sim/wire_workload/implied_workload.h"
#include "sim/wire_workload/import_report.h"
#include "sim/wire_workload/stage.h"
#include "sim/wire_workload/wire_host.h"

namespace rnicsim::sim::wire_workload {
namespace {

using namespace rnicsim::literals;

// Addresses of the hosts' memory. They are the same in all runs, because requests contain them.
constexpr std::uintptr_t kFirstMemory = 0x2000'0000'0000;
constexpr std::uintptr_t kMemoryApart = 2 << 20;
// Longer than all retries of a queue pair.
constexpr Duration kPatience = 60'000_ms;
// A datagram may still be on its way at the completion of its sender.
constexpr Duration kLastFrames = 1_ms;

std::string topology_of(const Workload& workload) {
  const auto hosts = std::max<std::size_t>(2, workload.hosts.size());
  return hosts == 2 ? "back-to-back" : fmt::format("star:{}", hosts);
}

// The simulated hosts that execute a workload.
class Hosts {
 public:
  Hosts(System& system, const Workload& workload) : stage_(workload.hosts.size()) {
    std::uintptr_t memory_at = kFirstMemory;
    for (std::uint32_t i = 0; i < workload.hosts.size(); ++i) {
      hosts_.push_back(std::make_unique<WireHost>(system, workload, i, memory_at, stage_, all_));
      all_.push_back(&hosts_.back()->objects());
      memory_at += (hosts_.back()->objects().memory() / kMemoryApart + 1) * kMemoryApart;
    }
    for (const auto& qp : workload.qps)
      if (!qp.requests.empty()) last_ = std::max(last_, qp.requests.back().at);
  }

  // Runs until each request has its completion, or no completion arrives any more. std::runtime_error: a host failed.
  void run() {
    while (stage_.failure().empty() && stage_.open() != 0) {
      const auto until = std::max(stage_.begin() + last_, stage_.progress()) + kPatience;
      if (now() >= until) break;
      run_until(until);
    }
    if (!stage_.failure().empty()) throw std::runtime_error(stage_.failure());
    run_until(now() + kLastFrames);
  }

  const std::vector<std::unique_ptr<WireHost>>& all() const { return hosts_; }

 private:
  Stage stage_;
  std::vector<WireObjects*> all_;
  std::vector<std::unique_ptr<WireHost>> hosts_;
  Duration last_{};
};

// Compares each host in a process of its own, because an engine without a system begins a simulation, as a system does.
std::vector<Assessment> validated(std::span<const replay::CapturedFrame> frames, const Workload& workload) {
  std::vector<Assessment> assessments;
  std::vector<std::size_t> jobs;
  for (const auto& host : workload.hosts) {
    if (host.address != roce::Gid{}) jobs.push_back(assessments.size());
    assessments.push_back({host.address});
  }
  const auto validate = [&](std::size_t host) {
    const auto replay = replay::replay_as(frames, workload.hosts[host].address, {});
    return Json{{"compared", replay.compared()}, {"differences", replay.differences()}}.dump();
  };
  const auto take = [&](const ChildResult& result) {
    if (!result.failure.empty()) return;  // an address without packets to compare; the workload has a sentence on it
    const auto json = Json::parse(result.text);
    auto& assessment = assessments[result.job];
    assessment.compared = json.at("compared").get<std::uint64_t>();
    assessment.differences = json.at("differences").get<std::uint64_t>();
  };
  run_in_children(jobs, std::max(1u, std::thread::hardware_concurrency()), {.work = validate, .done = take});
  std::erase_if(assessments, [](const Assessment& assessment) { return assessment.compared == 0; });
  return assessments;
}

// Puts the file's name before the text of an error.
template <class Act>
auto of_file(const std::string& file, Act&& act) try {
  return act();
} catch (const std::runtime_error& error) {
  throw ConfigError(fmt::format("{}: {}", shown(file), error.what()));
}

}  // namespace

int import_capture(const ImportOptions& options) {
  const auto frames = replay::read_capture(options.pcap);
  const auto capture = of_file(options.pcap, [&] { return replay::parse_capture(frames); });
  const auto workload = of_file(options.pcap, [&] { return implied_workload(capture); });
  const auto assessments = validated(frames, workload);
  const auto config = load_config(options.nic, topology_of(workload), options.sets, {}, options.host);
  constexpr std::uint64_t kSeed = 1;
  System system("system", config, kSeed);
  auto header = trace_header(system, kSeed, TimeMode::simulated);
  header.commands.push_back("trace import " + std::filesystem::path(options.pcap).filename().string());
  PartFile part(options.output);
  Recording recording(system, header, part.path(), {.software = true});
  Hosts hosts(system, workload);
  system.start();
  of_file(options.pcap, [&] { hosts.run(); });
  system.engines().check();
  recording.finish();
  part.take_name();
  fmt::print("{}", import_text(options.pcap, capture, workload, hosts.all(), assessments));
  fmt::print("written: {}, {}\n", shown(options.output), to_string(now()));
  return 0;
}

}  // namespace rnicsim::sim::wire_workload
