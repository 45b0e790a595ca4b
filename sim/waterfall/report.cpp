// SPDX-License-Identifier: Apache-2.0
// The waterfall's summary as text and as JSON.
#include <fmt/format.h>

#include "sim/results/json.h"
#include "sim/waterfall/waterfall.h"

namespace rnicsim::sim {
namespace {

constexpr std::size_t kNameWidth = 14;

std::string nanoseconds(Duration value) { return fmt::format("{}.{:03}", value.ps / 1000, value.ps % 1000); }

std::string row(const char* name, const Spread& spread) {
  return fmt::format("      {:<{}} {:>14} {:>14} {:>14}\n", name, kNameWidth, nanoseconds(spread.mean),
                     nanoseconds(spread.p50), nanoseconds(spread.p99));
}

Json spread_json(const Spread& spread) {
  return {{"sum_ps", spread.sum.ps}, {"mean_ps", spread.mean.ps},   {"p50_ps", spread.p50.ps},
          {"p99_ps", spread.p99.ps}, {"least_ps", spread.least.ps}, {"most_ps", spread.most.ps}};
}

}  // namespace

std::string waterfall_text(const WaterfallSummary& summary) {
  std::string text = fmt::format("--- waterfall{:>{}}{:>15}{:>15}   ns\n", "mean", kNameWidth + 8, "p50", "p99");
  for (const auto& operation : summary.operations) {
    text +=
        fmt::format("    {}{}, {} work request{}\n", to_string(operation.opcode), operation.one_way ? ", one way" : "",
                    operation.latency.count, operation.latency.count == 1 ? "" : "s");
    for (std::size_t i = 0; i < kStages; ++i)
      if (operation.stages[i].most != Duration{}) text += row(to_string(Stage(i)), operation.stages[i]);
    text += row("in all", operation.latency);
  }
  if (summary.operations.empty()) text += "    no work request was finished\n";
  if (summary.failed != 0) text += fmt::format("    {} completed with an error or were flushed\n", summary.failed);
  if (summary.unfinished != 0) text += fmt::format("    {} were not completed, or not polled\n", summary.unfinished);
  if (summary.irregular != 0) text += fmt::format("    {} could not be explained\n", summary.irregular);
  return text;
}

Json waterfall_json(const WaterfallSummary& summary) {
  Json operations = Json::array();
  for (const auto& operation : summary.operations) {
    Json entry{{"operation", to_string(operation.opcode)},
               {"one_way", operation.one_way},
               {"work_requests", operation.latency.count},
               {"latency", spread_json(operation.latency)}};
    for (std::size_t i = 0; i < kStages; ++i) entry["stages"][to_string(Stage(i))] = spread_json(operation.stages[i]);
    operations.push_back(std::move(entry));
  }
  return {{"operations", std::move(operations)},
          {"failed", summary.failed},
          {"unfinished", summary.unfinished},
          {"irregular", summary.irregular}};
}

}  // namespace rnicsim::sim
