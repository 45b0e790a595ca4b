// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/calibrate/surrogate.h"
#include "sim/calibrate/verdict.h"
#include "sim/config/config_error.h"

namespace rnicsim::sim::calibrate {
namespace {

constexpr double kFirstRegion = 0.25;
constexpr double kUnmoved = 0.001;  // relative to a tolerance, or to the distance between bounds
constexpr const char* kUnmoving = "changes no number of these experiments";

// By estimate: the change from the profile's value, relative to the distance between the bounds.
using Moves = std::vector<double>;

class Fitter {
 public:
  Fitter(const NicRows& rows, const FitOptions& options)
      : rows_(rows),
        jobs_(options.jobs),
        off_([&rows](std::size_t number, double value) { return tolerances_off(*rows.checks()[number], value); }) {
    fit_.estimates = rows.estimates();
  }

  Fit find(unsigned rounds) {
    measure();
    if (searched().empty())
      throw ConfigError(
          fmt::format("{}: no estimate with bounds changes a measured number: nothing to fit", rows_.nic()));
    improve(rounds);
    if (rows_.rows().size() > 1) hold_out();
    return std::move(fit_);
  }

 private:
  const std::vector<Estimate>& searched() const { return fit_.estimates.searched; }

  // Value for a first step: as far as the region allows, or by one step of a count. Without a possible step on this
  // side, or with an impossible combination of values, the estimate's own value.
  double probe(const Estimate& of, double way) const {
    double number = of.nearest(of.value + way * kFirstRegion * of.width());
    if (number == of.value) number = of.nearest(of.value + way * of.step);
    return number != of.value && rows_.can_be({of.set(number)}) ? number : of.value;
  }

  // Measures the changes with each estimate alone. Estimates that move no number become fixed.
  void measure() {
    const auto estimates = std::exchange(fit_.estimates.searched, {});
    std::vector<Trial> trials = {{{}, rows_.all()}};
    std::vector<std::pair<double, double>> probes;
    for (const auto& estimate : estimates) {
      probes.emplace_back(probe(estimate, -1), probe(estimate, 1));
      for (const double number : {probes.back().first, probes.back().second})
        if (number != estimate.value) trials.push_back({{estimate.set(number)}, rows_.all()});
    }
    const auto numbers = rows_.run(trials, jobs_);
    fit_.profile = model_.start = numbers.front();
    auto next = numbers.begin() + 1;
    for (std::size_t i = 0; i < estimates.size(); ++i) {
      Curve curve;
      bool moves_any = false;
      for (const double number : {probes[i].first, probes[i].second}) {
        if (number == estimates[i].value) continue;
        auto change = change_to(*next++);
        moves_any = moves_any || is_a_change(change);
        curve.add(move_to(estimates[i], number), std::move(change));
      }
      if (moves_any)
        take(estimates[i], probes[i], std::move(curve));
      else
        fit_.estimates.fixed.push_back({estimates[i].path, estimates[i].text(estimates[i].value), kUnmoving});
    }
    std::ranges::sort(fit_.estimates.fixed, {}, &Unsearched::path);
  }

  // On a side without a possible step the bound is 0.
  void take(const Estimate& estimate, std::pair<double, double> probes, Curve curve) {
    bounds_.low.push_back(probes.first != estimate.value ? move_to(estimate, estimate.low) : 0);
    bounds_.high.push_back(probes.second != estimate.value ? move_to(estimate, estimate.high) : 0);
    model_.curves.push_back(std::move(curve));
    fit_.estimates.searched.push_back(estimate);
  }

  static double move_to(const Estimate& estimate, double number) {
    return (number - estimate.value) / estimate.width();
  }

  Numbers change_to(const Numbers& numbers) const {
    Numbers change(numbers.size());
    for (std::size_t i = 0; i < change.size(); ++i) change[i] = numbers[i] - model_.start[i];
    return change;
  }

  bool is_a_change(const Numbers& change) const {
    for (std::size_t i = 0; i < change.size(); ++i)
      if (std::abs(change[i]) > kUnmoved * tolerance_of(*rows_.checks()[i])) return true;
    return false;
  }

  // Measures each of these values alone, if the model does not know it yet.
  void measure_alone(const Values& values) {
    const auto moves = moves_of(values);
    std::vector<Trial> trials;
    std::vector<std::size_t> estimates;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto set = searched()[i].set(values[i]);
      if (model_.curves[i].knows(moves[i]) || !rows_.can_be({set})) continue;
      trials.push_back({{set}, rows_.all()});
      estimates.push_back(i);
    }
    const auto numbers = rows_.run(trials, jobs_);
    for (std::size_t i = 0; i < estimates.size(); ++i)
      model_.curves[estimates[i]].add(moves[estimates[i]], change_to(numbers[i]));
  }

  Moves moves_of(const Values& values) const {
    Moves moves;
    for (std::size_t i = 0; i < values.size(); ++i) moves.push_back(move_to(searched()[i], values[i]));
    return moves;
  }
  Values values_of(const Moves& moves) const {
    Values values;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const auto& of = searched()[i];
      // A negligible move is no move: the profile's value stays.
      const bool moved = std::abs(moves[i]) > kUnmoved;
      values.push_back(moved ? of.nearest(of.value + moves[i] * of.width()) : of.value);
    }
    return values;
  }
  Values profile_values() const { return values_of(Moves(searched().size())); }

  std::vector<std::string> sets_of(const Values& values) const {
    std::vector<std::string> sets;
    for (std::size_t i = 0; i < values.size(); ++i)
      if (values[i] != searched()[i].value) sets.push_back(searched()[i].set(values[i]));
    return sets;
  }

  // Best values for these numbers in `model`, within the region around `from`. Counts are rounded to their steps first,
  // then the other estimates are optimized again.
  Values best(const Surrogate& model, const std::vector<std::size_t>& numbers, const Values& from) const {
    const auto centre = moves_of(from);
    auto box = bounds_;
    for (std::size_t i = 0; i < centre.size(); ++i) {
      box.low[i] = std::max(box.low[i], centre[i] - region_);
      box.high[i] = std::min(box.high[i], centre[i] + region_);
    }
    auto moves = least_squares(model, off_, numbers, box, centre);
    const auto whole = moves_of(values_of(moves));
    for (std::size_t i = 0; i < moves.size(); ++i)
      if (searched()[i].step > 0) box.low[i] = box.high[i] = moves[i] = whole[i];
    return values_of(least_squares(model, off_, numbers, box, moves));
  }

  std::vector<std::size_t> numbers_without(const NicRow* row) const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < rows_.checks().size(); ++i)
      if (row == nullptr || i < row->first_number || i >= row->end_number()) numbers.push_back(i);
    return numbers;
  }

  void improve(unsigned rounds) {
    fit_.values = profile_values();
    fit_.fitted = fit_.profile;
    fit_.rounds.push_back({0, misfit(rows_, fit_.fitted), true});
    for (unsigned round = 0; round < rounds; ++round) {
      const auto values = best(model_from_here(), numbers_without(nullptr), fit_.values);
      if (values == fit_.values) return;
      if (is_taken(values)) continue;
      measure_alone(values);
      region_ /= 2;
    }
  }

  // The curves begin at the profile. The model is shifted to the simulated numbers at the present values.
  Surrogate model_from_here() const {
    auto model = model_;
    const auto believed = model.at(moves_of(fit_.values));
    for (std::size_t i = 0; i < believed.size(); ++i) model.start[i] += fit_.fitted[i] - believed[i];
    return model;
  }

  bool is_taken(const Values& values) {
    const auto sets = sets_of(values);
    if (!rows_.can_be(sets)) return false;
    auto numbers = rows_.run({{sets, rows_.all()}}, jobs_).front();
    const double least = misfit(rows_, fit_.fitted), now = misfit(rows_, numbers);
    fit_.rounds.push_back({region_, now, now < least});
    if (now >= least) return false;
    fit_.values = values;
    fit_.fitted = std::move(numbers);
    return true;
  }

  // Fits begin at the profile, within the region that the last round had.
  void hold_out() {
    std::vector<Trial> trials;
    for (const auto row : rows_.all()) {
      fit_.values_without.push_back(best(model_, numbers_without(&rows_.rows()[row]), profile_values()));
      trials.push_back({sets_of(fit_.values_without.back()), {row}});
    }
    const auto numbers = rows_.run(trials, jobs_);
    for (const auto row : rows_.all()) {
      const auto first = numbers[row].begin() + static_cast<std::ptrdiff_t>(fit_.held_out.size());
      fit_.held_out.insert(fit_.held_out.end(), first,
                           first + static_cast<std::ptrdiff_t>(rows_.rows()[row].row.checks.size()));
    }
  }

  const NicRows& rows_;
  unsigned jobs_;
  Off off_;
  Surrogate model_;
  Box bounds_;  // bounds of the moves
  double region_ = kFirstRegion;
  Fit fit_;
};

}  // namespace

double misfit(const NicRows& rows, const Numbers& numbers) {
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) sum += std::pow(tolerances_off(*rows.checks()[i], numbers[i]), 2);
  return sum;
}

Fit fit_of(const NicRows& rows, const FitOptions& options) { return Fitter(rows, options).find(options.rounds); }

}  // namespace rnicsim::sim::calibrate
