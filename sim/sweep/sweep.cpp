// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "sim/bench/bench.h"
#include "sim/config/config_error.h"
#include "sim/config/data_files.h"
#include "sim/os/child_pool.h"
#include "sim/os/progress_line.h"
#include "sim/rerun/rerun.h"
#include "sim/results/json_output.h"
#include "sim/sweep/results.h"
#include "sim/sweep/share.h"
#include "sim/sweep/slurm.h"
#include "sim/sweep/store.h"

namespace rnicsim::sim::sweep {
namespace {

using Clock = std::chrono::steady_clock;

std::string run_here(const SweepPlan& plan, const Run& run) {
  auto json = plan.is_of_recording() ? rerun::rerun_json(rerun_options_of(plan, run))
                                     : bench::bench_json(options_of(plan, run));
  json.erase("simulator");  // varies between equal runs
  return json.dump(1) + '\n';
}

std::string place_text(const SweepPlan& plan, const Run& run) {
  std::string text;
  const auto place = plan.place_of(run.point);
  for (std::size_t i = 0; i < place.size(); ++i)
    text += fmt::format("{}={} ", plan.axes[i].key, plan.axes[i].values[place[i]]);
  return text + fmt::format("seed={}", run.seed);
}

std::string time_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

// Progress line: "37 of 100 runs; 12.1 a second, 5 s left; flow.qps=16 seed=2: 3.01 Mop/s".
class Progress {
 public:
  explicit Progress(std::size_t runs) : runs_(runs) {}

  void done(const std::string& last) {
    ++done_;
    last_ = last;
  }
  void show() const {
    if (!progress_line::is_due()) return;
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    auto text = fmt::format("{} of {} runs", done_, runs_);
    if (done_ > 0)
      text += fmt::format("; {:.2g} a second, {} left; {}", static_cast<double>(done_) / elapsed,
                          time_text(elapsed / static_cast<double>(done_) * static_cast<double>(runs_ - done_)), last_);
    progress_line::show(text);
  }

 private:
  const std::size_t runs_;
  const Clock::time_point start_ = Clock::now();
  std::size_t done_ = 0;
  std::string last_;
};

std::string rate_text(const Json& results) {
  double rate = 0;
  for (const auto& flow : results.at("flows")) rate += flow.at("rate_per_s").get<double>();
  return fmt::format("{:.4g} Mop/s", rate / 1e6);
}

void run_local(const Store& store, const Share& share, unsigned jobs) {
  const auto& plan = store.plan();
  const auto open = open_runs(store, share);
  Progress progress(open.size());
  std::string told;  // last message, to suppress the same message of further seeds and points
  const auto done = [&](const ChildResult& result) {
    const auto run = run_of(plan, result.job);
    const auto place = place_text(plan, run);
    if (result.failure.empty()) {
      store.put(run, result.text);
      progress.done(fmt::format("{}: {}", place, rate_text(Json::parse(result.text))));
      return;
    }
    store.put_failure(run, result.failure);
    progress.done(fmt::format("{}: failed", place));
    progress_line::erase();
    if (std::exchange(told, result.failure) != result.failure)
      fmt::print(stderr, "rnicsim: {}: {}\n", place, result.failure);
  };
  run_in_children(open, jobs,
                  {.work = [&](std::size_t run) { return run_here(plan, run_of(plan, run)); },
                   .done = done,
                   .look = [&](const std::vector<std::size_t>&) { progress.show(); }});
  progress_line::erase();
}

Store open_store(const SweepOptions& options) {
  if (options.file.empty() && !options.plan) {
    if (options.out.empty())
      throw ConfigError("sweep: give a sweep file, or --out with the folder of an unfinished sweep");
    Store store(options.out);
    store.check_files();
    return store;
  }
  auto plan = options.plan ? *options.plan : read_sweep(find_data(DataKind::sweep, options.file));
  plan.check();
  const auto folder = options.out.empty() ? plan.name : options.out;
  return Store(folder, std::move(plan), options.invocation);
}

unsigned jobs_of(const SweepOptions& options, bool alone) {
  if (options.jobs != 0) return options.jobs;
  return alone ? std::max(1u, std::thread::hardware_concurrency()) : 1;
}

}  // namespace

int run_sweep(const SweepOptions& options) {
  JsonOutput json(options.json);
  const Store store = open_store(options);
  const auto rank = options.share.empty() ? share_of_rank() : parse_share(options.share);
  if (options.slurm) {
    constexpr std::size_t kMostTasks = 1000;
    const auto runs = store.plan().runs();
    run_by_slurm(store, std::min(runs, options.tasks == 0 ? kMostTasks : options.tasks), options.sbatch);
  } else {
    run_local(store, rank.value_or(Share{}), jobs_of(options, !rank));
  }
  const auto results = results_of(store);
  // Other processes still work; the last one writes the results.
  if (rank && results.tally.missing > 0) {
    fmt::print("{}: share {} of {} done; {} runs belong to other shares\n", store.plan().name, rank->number, rank->of,
               results.tally.missing);
    return 0;
  }
  store.write("results.json", results.json.dump(1) + '\n');
  store.write("results.csv", results.csv);
  json.write(results.json);
  for (const auto& metric : results.unknown)
    fmt::print(stderr, "rnicsim: metrics: '{}' is in no results; `rnicsim describe counters` lists them\n",
               shown(metric));
  const auto& tally = results.tally;
  fmt::print("{}: {} of {} runs done, {} failed, {} points; {}\n", store.plan().name, tally.done, store.plan().runs(),
             tally.failed, store.plan().points(), (store.folder() / "results.json").string());
  if (tally.equal > 0)
    fmt::print(
        "{}: the seeds have no effect at {} of {} points: these points have no random events, so the intervals of "
        "their rates are those of one run\n",
        store.plan().name, tally.equal, store.plan().points());
  return tally.failed + tally.missing == 0 ? 0 : 1;
}

}  // namespace rnicsim::sim::sweep
