// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/rerun.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>

#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/os/descriptor.h"
#include "sim/recording/recorder.h"
#include "sim/recording/trace_diff.h"
#include "sim/recording/trace_header.h"
#include "sim/rerun/recorded_software.h"
#include "sim/rerun/recorded_steps.h"
#include "sim/system.h"

namespace rnicsim::sim::rerun {
namespace {

// A temporary file in memory, without a name.
class ScratchFile {
 public:
  explicit ScratchFile(const char* what) : file_(::memfd_create(what, MFD_CLOEXEC)) {
    if (!file_) throw ConfigError(fmt::format("{}: {}", what, std::strerror(errno)));
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_.get()); }

 private:
  const Descriptor file_;
};

// Appends the parameters below `room` ("nic.", "host.") of a profile as settings.
void add_profile(const Config& profile, std::string_view room, std::vector<std::string>& sets) {
  Config config = profile;
  const ParamList parameters(config);
  for (const auto& entry : parameters.entries())
    if (std::string_view(entry.path).starts_with(room))
      sets.push_back(fmt::format("{}={}", entry.path, entry.value_text()));
}

bool changes_configuration(const RerunOptions& options) {
  return !options.nic.empty() || !options.host.empty() || !options.sets.empty() || !options.faults.empty();
}

Config configuration(const RerunOptions& options, const TraceHeader& header) {
  const ScratchFile file("configuration of the trace");
  std::ofstream(file.path()) << header.system;
  std::vector<std::string> sets;
  const std::string nic = options.nic.empty() ? "cx5-100g" : options.nic;
  if (!options.nic.empty()) add_profile(load_config(nic, "back-to-back", {}), "nic.", sets);
  if (!options.host.empty()) add_profile(load_config(nic, "back-to-back", {}, {}, options.host), "host.", sets);
  sets.insert(sets.end(), options.sets.begin(), options.sets.end());
  options.engine.add_to(sets);
  return load_config("cx5-100g", file.path(), sets, options.faults);
}

std::vector<std::uint32_t> hosts_of(const Config& config) {
  std::vector<std::uint32_t> hosts;
  for (const auto& interface : config.topology.interfaces) hosts.push_back(interface.host);
  return hosts;
}

// Skips events of kernels and programs, which the replay does not produce.
void leave_out_software(TraceReader& trace) {
  for (const auto kind : {EventKind::command, EventKind::event_taken, EventKind::cm_sent, EventKind::cm_received,
                          EventKind::cm_state})
    trace.leave_out(kind);
  for (auto kind = EventKind::mmio_write; kind < EventKind::count; kind = EventKind(int(kind) + 1))
    trace.leave_out(kind);
}

void simulate_to(Duration until) {
  while (now() < until && sc_core::sc_get_status() != sc_core::SC_STOPPED)
    sc_core::sc_start(to_sc_time(until - now()));
}

// Runs until all steps are done, or a host waits too long. Returns a description of the waits; empty: all done.
std::string play_out(const RecordedSoftware& software) {
  constexpr Duration kPatience{60'000'000'000'000};  // 60 s of simulated time, longer than all retries of a queue pair
  while (!software.has_ended() && sc_core::sc_get_status() != sc_core::SC_STOPPED) {
    const auto since = software.stuck_since();
    if (since && (!sc_core::sc_pending_activity() || now() - *since > kPatience)) return software.describe_waits();
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  }
  return {};
}

int compare(const std::string& recorded, const std::string& replayed) {
  std::ifstream old_file(recorded, std::ios::binary), new_file(replayed, std::ios::binary);
  TraceReader old_trace(old_file, recorded), new_trace(new_file, replayed);
  leave_out_software(old_trace);
  leave_out_software(new_trace);
  const auto difference = compare_traces(old_trace, new_trace);
  fmt::print("{}", difference.events);
  return difference.equal ? 0 : 1;
}

int run_again(const RerunOptions& options) {
  std::ifstream file(options.trace, std::ios::binary);
  if (!file) throw ConfigError(fmt::format("{}: {}", options.trace, std::strerror(errno)));
  TraceReader trace(file, options.trace);
  const TraceHeader header = trace.header();
  if (header.system.empty())
    throw ConfigError(fmt::format("{}: recorded without --record-software: there is nothing to replay", options.trace));
  const Config config = configuration(options, header);
  const auto hosts = hosts_of(config);
  if (hosts.size() != header.hosts.size())
    throw ConfigError(fmt::format("{}: its hosts are not those of its system", options.trace));
  const RecordedSteps steps(trace, hosts);

  const std::set<std::uint32_t> guests(hosts.begin(), hosts.end());
  System system("system", config, header.seed, options.engine.fst, nullptr, guests);
  const ScratchFile scratch("replayed trace");
  const std::string replayed = options.observers.record.empty() ? scratch.path() : options.observers.record;
  ObserverOptions watched = options.observers;
  watched.record.clear();
  TraceHeader new_header = trace_header(system, header.seed, TimeMode::simulated);
  new_header.commands = header.commands;  // a recording with commands shows memory addresses
  Observers observers(system, watched, new_header);
  Recording recording(system, new_header, replayed);
  RecordedSoftware software("software", system, steps,
                            options.as_possible ? Pace::as_possible : Pace::recorded);
  for (std::uint32_t i = 0; i < system.adapters(); ++i)
    recording.watch_root(i, software.root_complex(i), system.adapter(i).device());
  system.start();
  const std::string stuck = options.as_possible ? play_out(software) : "";
  simulate_to(options.as_possible ? software.played() + (trace.end() - steps.end()) : trace.end());
  recording.finish();
  const bool sound = observers.finish();
  fmt::print("--- {} replayed, {} recorded\n", to_string(now()), to_string(trace.end()));
  if (!stuck.empty()) {
    fmt::print(stderr, "rnicsim: {}: {}; this never came\n", options.trace, stuck);
    return 1;
  }
  if (changes_configuration(options)) return sound ? 0 : 1;
  const int status = compare(options.trace, replayed);
  return sound ? status : 1;
}

}  // namespace

int rerun(const RerunOptions& options) try {
  return run_again(options);
} catch (const TraceError& error) {
  throw ConfigError(error.what());
}

}  // namespace rnicsim::sim::rerun
