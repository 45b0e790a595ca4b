// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/rerun.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <stdexcept>

#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/config/param_list.h"
#include "sim/os/descriptor.h"
#include "sim/recording/recorder.h"
#include "sim/recording/trace_header.h"
#include "sim/rerun/recorded_software.h"
#include "sim/rerun/recorded_steps.h"
#include "sim/rerun/results.h"
#include "sim/results/json_output.h"
#include "sim/system.h"
#include "sim/trace/request_summary.h"
#include "sim/trace_file/trace_diff.h"

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
  return !options.nic.empty() || !options.host.empty() || !options.sets.empty() || !options.faults.empty() ||
         options.seed.has_value();
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
  for (const auto kind :
       {EventKind::command, EventKind::event_taken, EventKind::cm_sent, EventKind::cm_received, EventKind::cm_state})
    trace.leave_out(kind);
  for (auto kind = EventKind::mmio_write; kind < EventKind::count; kind = EventKind(int(kind) + 1))
    trace.leave_out(kind);
}

void simulate_to(Duration until) {
  while (now() < until && sc_core::sc_get_status() != sc_core::SC_STOPPED) sc_core::sc_start(to_sc_time(until - now()));
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

// An open trace that was recorded with the software's side.
class RecordedRun {
 public:
  explicit RecordedRun(const std::string& path) : file_(path, std::ios::binary), reader_(opened(file_, path), path) {
    if (reader_.header().system.empty())
      throw ConfigError(fmt::format("{}: recorded without --record-software: there is nothing to replay", path));
  }

  TraceReader& reader() { return reader_; }
  const TraceHeader& header() const { return reader_.header(); }
  Config with(const RerunOptions& options) const {
    auto config = configuration(options, header());
    if (hosts_of(config).size() != header().hosts.size())
      throw ConfigError(fmt::format("{}: the hosts of the recording and of its system differ", options.trace));
    return config;
  }

 private:
  static std::ifstream& opened(std::ifstream& file, const std::string& path) {
    if (!file) throw ConfigError(fmt::format("{}: {}", path, std::strerror(errno)));
    return file;
  }

  std::ifstream file_;
  TraceReader reader_;
};

RequestSummary requests_of(const std::string& trace) {
  std::ifstream file(trace, std::ios::binary);
  TraceReader reader(file, trace);
  RequestSummary requests(reader.header().hosts.size());
  for (TraceEvent event; reader.next(event);) requests.add(event);
  return requests;
}

struct Played {
  Duration end{}, recorded_end{};
  bool sound = true;
  std::string stuck;  // the event that a step waited for in vain; empty: all steps were done
  Json results;       // empty unless requested
};

// `replayed`: path of the trace to write.
Played play(const RerunOptions& options, const std::string& replayed, bool with_results) {
  RecordedRun recorded(options.trace);
  auto& trace = recorded.reader();
  const TraceHeader header = recorded.header();
  const Config config = recorded.with(options);
  const auto hosts = hosts_of(config);
  const RecordedSteps steps(trace, hosts);
  for (const auto& line : trace.unknown()) fmt::print(stderr, "rnicsim: {}\n", line);

  const std::set<std::uint32_t> guests(hosts.begin(), hosts.end());
  const auto seed = options.seed.value_or(header.seed);
  System system("system", config, seed, options.engine.fst, nullptr, guests);
  ObserverOptions watched = options.observers;
  watched.record.clear();
  TraceHeader new_header = trace_header(system, seed, TimeMode::simulated);
  new_header.commands = header.commands;  // a recording with commands shows memory addresses
  Observers observers(system, watched, new_header);
  Recording recording(system, new_header, replayed, {.tlps = options.observers.recorded.tlps});
  RecordedSoftware software("software", system, steps, options.as_possible ? Pace::as_possible : Pace::recorded);
  for (std::uint32_t i = 0; i < system.adapters(); ++i)
    recording.watch_root(i, software.root_complex(i), system.adapter(i).device());
  system.start();
  Played played;
  if (options.as_possible) played.stuck = play_out(software);
  // Stores may follow the last request: receives that are posted without a doorbell.
  simulate_to(options.as_possible ? std::max(software.played(), software.requested() + (trace.end() - steps.end()))
                                  : trace.end());
  recording.finish();
  played.sound = observers.finish();
  played.end = now();
  played.recorded_end = trace.end();
  if (with_results)
    played.results = results_json({options, header, played.recorded_end, requests_of(options.trace), system, played.end,
                                   requests_of(replayed), seed});
  return played;
}

std::string never_came(const RerunOptions& options, const std::string& stuck) {
  return fmt::format("{}: {}; the event did not occur", options.trace, stuck);
}

int run_again(const RerunOptions& options) {
  JsonOutput json(options.json);
  const ScratchFile scratch("replayed trace");
  const std::string replayed = options.observers.record.empty() ? scratch.path() : options.observers.record;
  const auto played = play(options, replayed, json.wanted());
  fmt::print("--- {} replayed, {} recorded\n", to_string(played.end), to_string(played.recorded_end));
  if (!played.stuck.empty()) {
    fmt::print(stderr, "rnicsim: {}\n", never_came(options, played.stuck));
    return 1;
  }
  json.write(played.results);
  if (changes_configuration(options)) return played.sound ? 0 : 1;
  const int status = compare(options.trace, replayed);
  return played.sound ? status : 1;
}

// An invalid trace is an error of the user's input.
template <class Act>
auto of_trace(Act&& act) try {
  return act();
} catch (const TraceError& error) {
  throw ConfigError(error.what());
}

}  // namespace

int rerun(const RerunOptions& options) {
  return of_trace([&] { return run_again(options); });
}

void check(const RerunOptions& options) {
  of_trace([&] { RecordedRun(options.trace).with(options); });
}

std::uint64_t recorded_seed(const std::string& trace) {
  return of_trace([&] { return RecordedRun(trace).header().seed; });
}

Json rerun_json(const RerunOptions& options) {
  return of_trace([&] {
    const ScratchFile scratch("replayed trace");
    auto played = play(options, scratch.path(), true);
    if (!played.stuck.empty()) throw std::runtime_error(never_came(options, played.stuck));
    return std::move(played.results);
  });
}

}  // namespace rnicsim::sim::rerun
