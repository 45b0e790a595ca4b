// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/nic_rows.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/bench/bench.h"

namespace rnicsim::sim::calibrate {
namespace {

// An estimate that differs between two hosts becomes fixed.
void merge(Estimates& all, Estimates other) {
  const auto is_fixed = [&](const std::string& path) {
    return std::ranges::find(all.fixed, path, &Unsearched::path) != all.fixed.end();
  };
  for (auto& estimate : other.searched) {
    if (is_fixed(estimate.path)) continue;
    const auto same = std::ranges::find(all.searched, estimate.path, &Estimate::path);
    if (same == all.searched.end()) {
      all.searched.push_back(std::move(estimate));
    } else if (*same != estimate) {
      all.fixed.push_back({estimate.path, same->text(same->value), "not the same in all hosts of the experiments"});
      all.searched.erase(same);
    }
  }
  for (auto& fixed : other.fixed)
    if (!is_fixed(fixed.path)) all.fixed.push_back(std::move(fixed));
}

}  // namespace

NicRows::NicRows(std::string nic, const std::vector<Row>& rows) : nic_(std::move(nic)) {
  for (const auto& row : rows) {
    NicRow own{row, {}};
    for (std::size_t i = 0; i < row.points.size(); ++i)
      if (prepared(row.points[i]).workload.nic == nic_) own.points.push_back(i);
    if (own.points.empty()) continue;
    std::erase_if(own.row.checks, [&](const Check& check) { return !check.nic.empty() && check.nic != nic_; });
    rows_.push_back(std::move(own));
  }
  for (auto& own : rows_) {
    own.first_number = checks_.size();
    for (const auto& check : own.row.checks) checks_.push_back(&check);
  }
}

std::vector<std::size_t> NicRows::all() const {
  std::vector<std::size_t> all(rows_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Estimates NicRows::estimates() const {
  Estimates all;
  std::set<std::string> hosts;
  for (const auto& own : rows_)
    for (const auto point : own.points) {
      auto run = prepared(own.row.points[point]);
      if (!hosts.insert(run.workload.host).second) continue;
      merge(all, estimates_of(marked_settings(nic_, run.workload.host), ParamList(run.config)));
    }
  std::ranges::sort(all.searched, {}, &Estimate::path);
  std::ranges::sort(all.fixed, {}, &Unsearched::path);
  return all;
}

bool NicRows::can_be(const std::vector<std::string>& sets) const {
  return std::ranges::all_of(rows_, [&](const NicRow& own) {
    return std::ranges::all_of(own.points, [&](auto point) { return is_possible(own.row.points[point].with(sets)); });
  });
}

std::vector<std::vector<double>> NicRows::run(const std::vector<Trial>& trials, unsigned jobs) const {
  std::vector<Point> points;
  for (const auto& trial : trials)
    for (const auto row : trial.rows)
      for (const auto point : rows_[row].points) points.push_back(rows_[row].row.points[point].with(trial.sets));
  auto results = run_points(points, jobs);
  auto next = results.begin();
  std::vector<std::vector<double>> numbers;
  for (const auto& trial : trials) {
    auto& own = numbers.emplace_back(checks_.size());
    for (const auto row : trial.rows) {
      std::vector<Json> of_row(rows_[row].row.points.size());
      for (const auto point : rows_[row].points) of_row[point] = std::move(*next++);
      const Measured measured(of_row);
      auto number = rows_[row].first_number;
      for (const auto& check : rows_[row].row.checks) own[number++] = check.simulated(measured);
    }
  }
  return numbers;
}

}  // namespace rnicsim::sim::calibrate
