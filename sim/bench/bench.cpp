// SPDX-License-Identifier: Apache-2.0
#include "sim/bench/bench.h"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/bench/results/bench_json.h"
#include "sim/bench/results/results.h"
#include "sim/bench/runner.h"
#include "sim/bench/service_levels.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/engine_choice.h"
#include "sim/os/descriptor_limit.h"
#include "sim/processes/boundary.h"
#include "sim/results/json_output.h"
#include "sim/system.h"
#include "sim/warnings/control_settings.h"
#include "sim/warnings/pause_settings.h"
#include "sim/warnings/round_trips.h"
#include "sim/warnings/unused_priorities.h"

namespace rnicsim::sim::bench {
namespace {

// A signal or a limit ended the run.
struct Ended : std::runtime_error {
  explicit Ended(const Watch::End& end) : std::runtime_error(end.why), status(end.status) {}
  int status;
};

// Runs `make`. If it fails with ConfigError in one process, it fails in all processes.
template <class Make>
void make_together(Boundary* boundary, Make&& make) {
  if (boundary == nullptr) return make();
  std::string failure;
  try {
    make();
  } catch (const ConfigError& error) {
    failure = error.what();
  }
  failure = boundary->first_failure(failure);
  if (!failure.empty()) throw ConfigError(failure);
}

void print(const std::vector<std::string>& warnings) {
  for (const auto& warning : warnings) fmt::print(stderr, "rnicsim: warning: {}\n", warning);
}

// False: a counter disagrees with the trace.
template <class Then>
bool run(const BenchOptions& options, const Prepared& prepared, Then&& then, Boundary* boundary = nullptr) {
  raise_descriptor_limit();  // each context has descriptors of its own
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  System system("system", prepared.config, prepared.workload.seed, options.engine.fst, boundary);
  auto header = trace_header(system, prepared.workload.seed, TimeMode::simulated);
  header.commands.push_back(fmt::format("bench {}", options.workload));
  std::optional<Observers> observers;
  make_together(boundary, [&] { observers.emplace(system, options.observers, header); });
  if (system.writes_files()) {
    print(pause_warnings(prepared.config));
    print(control_warnings(prepared.config));
    print(round_trip_warnings(prepared.config));
    print(service_level_warnings(prepared.workload, prepared.config));
  }
  Runner runner(system, prepared.workload, prepared.plan);
  Watch watch(options.limits);
  const auto failure = runner.execute(&watch);
  print(system.pause_storms());
  system.engines().check();
  if (const auto& end = runner.ended()) throw Ended({failure, end->status});
  if (!failure.empty()) throw std::runtime_error(failure);
  print(priority_warnings(system));
  then(BenchResult{prepared.workload, prepared.plan, runner, system, observers->waterfall(), options.all_counters});
  return observers->finish();
}

}  // namespace

Prepared prepare(const BenchOptions& options) {
  std::vector<std::string> own, parameters;
  for (const auto& set : options.sets) (is_workload_key(set) ? own : parameters).push_back(set);
  Prepared prepared;
  Workload& workload = prepared.workload;
  workload = read_workload(find_data(DataKind::workload, options.workload), own);
  if (options.nic) workload.nic = *options.nic;
  if (options.host) workload.host = *options.host;
  if (options.topology) workload.topology = *options.topology;
  if (options.seed) workload.seed = *options.seed;
  auto sets = workload.sets;
  sets.insert(sets.end(), parameters.begin(), parameters.end());
  options.engine.add_to(sets);
  auto faults = workload.faults;
  faults.insert(faults.end(), options.faults.begin(), options.faults.end());
  try {
    prepared.config = load_config(workload.nic, topology_of(workload), sets, faults, workload.host);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", workload.file, error.what()));
  }
  prepared.plan = make_plan(workload, prepared.config);
  return prepared;
}

Json bench_json(const BenchOptions& options) {
  Json json;
  run(options, prepare(options), [&](const BenchResult& result) { json = results_json(result); });
  return json;
}

Prepared prepare_shared(const BenchOptions& options) {
  Prepared prepared = prepare(options);
  // Output that would have to be merged over the processes, which is not built yet.
  const auto& observers = options.observers;
  if (observers.follow.waterfall || !observers.follow.perfetto.empty() || !observers.log.empty() ||
      !options.engine.fst.empty())
    throw ConfigError("--processes cannot be combined with --log, --waterfall, --perfetto or --fst");
  if (prepared.workload.measure.operations)
    throw ConfigError(
        fmt::format("{}: measure.operations: several processes need measure.duration instead", prepared.workload.file));
  return prepared;
}

namespace {

int run_shared(const BenchOptions& options) {
  const Prepared prepared = prepare_shared(options);
  const auto peers = mpi_peers();
  if (options.processes > 1 && options.processes != peers->count())
    throw ConfigError(fmt::format("--processes: {}, but MPI started {}", options.processes, peers->count()));
  Boundary boundary(*peers, prepared.config);
  const bool tells = peers->rank() == 0;
  if (tells) print(prepared.config.warnings);
  std::optional<JsonOutput> json;
  const auto show = [&](const BenchResult& result) {
    if (!tells) return;
    fmt::print("{}", results_text(result));
    if (json->wanted()) json->write(results_json(result));
  };
  // The process of rank 0 reports a failure, with its status.
  try {
    make_together(&boundary, [&] { json.emplace(tells ? options.json : std::string()); });
    return run(options, prepared, show, &boundary) || !tells ? 0 : 1;
  } catch (const Ended& end) {
    if (!tells) return 0;
    fmt::print(stderr, "rnicsim: {}\n", end.what());
    return end.status;
  } catch (const std::runtime_error&) {
    if (tells) throw;
    return 0;
  }
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (started_by_mpi()) return run_shared(options);
  const Prepared prepared = prepare(options);
  print(prepared.config.warnings);
  JsonOutput json(options.json);
  try {
    const bool agrees = run(options, prepared, [&](const BenchResult& result) {
      fmt::print("{}", results_text(result));
      if (json.wanted()) json.write(results_json(result));
    });
    return agrees ? 0 : 1;
  } catch (const Ended& end) {
    fmt::print(stderr, "rnicsim: {}\n", end.what());
    return end.status;
  }
}

}  // namespace rnicsim::sim::bench
