// SPDX-License-Identifier: Apache-2.0
// A run of bench inside the test: a workload, its system, and the growth of the system's counters.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "sim/bench/bench.h"
#include "sim/bench/runner.h"
#include "sim/system.h"

namespace rnicsim::sim::bench::run_test {

class BenchRun : public testing::Test {
 protected:
  BenchRun()
      : path_(std::filesystem::temp_directory_path() / ("rnicsim-bench-run-" + std::to_string(getpid()) + ".toml")) {
    spdlog::set_level(spdlog::level::off);
  }
  ~BenchRun() override {
    if (runner_) runner_->close();
    std::filesystem::remove(path_);
  }

  // Prepares a workload of one flow from h0 to h1, unless `keys` say otherwise. Measured from the start, unless
  // `measure` is empty or has a warm-up or a limit.
  void prepare_run(const std::string& keys, const std::string& measure = "operations = 100",
                   const std::string& head = "") {
    const bool whole =
        !measure.empty() && measure.find("warmup") == measure.npos && measure.find("limit") == measure.npos;
    std::ofstream(path_) << "schema = 1\n"
                         << head << "\n[measure]\n"
                         << (whole ? "warmup = \"0 s\"\n" : "") << measure << "\n[[flow]]\n"
                         << keys << '\n';
    prepared_.emplace(prepare({.workload = path_.string()}));
    system_ = std::make_unique<System>("system", prepared_->config);
    runner_ = std::make_unique<Runner>(*system_, prepared_->workload, prepared_->plan);
  }
  void run(const std::string& keys, const std::string& measure = "operations = 100", const std::string& head = "") {
    prepare_run(keys, measure, head);
    EXPECT_EQ(runner_->execute(), "");
  }
  std::string run_error(const std::string& keys, const std::string& measure = "operations = 100",
                        const std::string& head = "") {
    prepare_run(keys, measure, head);
    return runner_->execute();
  }

  // Prepares for another run.
  void restart() {
    runner_->close();
    runner_.reset();
    system_.reset();
    sc_core::sc_get_curr_simcontext()->reset();
  }

  const FlowState& flow(std::size_t index = 0) const { return runner_->flows()[index]; }
  // Growth of a counter in the measured interval.
  std::uint64_t grown(std::size_t host, const std::string& path) const {
    const auto& after = runner_->after().hosts[host].entries();
    const auto found = std::ranges::find(after, path, &CounterEntry::path);
    EXPECT_NE(found, after.end()) << path;
    return found->value -
           runner_->before().hosts[host].entries()[static_cast<std::size_t>(found - after.begin())].value;
  }

  std::filesystem::path path_;
  std::optional<Prepared> prepared_;
  std::unique_ptr<System> system_;
  std::unique_ptr<Runner> runner_;
};

inline constexpr const char* kOneByOne = "from = \"h0\"\nto = \"h1\"\nmtu = 1024\n";

}  // namespace rnicsim::sim::bench::run_test
