// SPDX-License-Identifier: Apache-2.0
#include "sim/history/page.h"

#include <fmt/format.h>

#include "sim/history/change_points.h"
#include "sim/history/database.h"
#include "sim/report/page.h"
#include "sim/results/json.h"
#include "sim/results/json_output.h"

namespace rnicsim::sim::history {
namespace {

Json number_json(const NumberHistory& number, std::size_t& changes) {
  std::vector<std::size_t> labels;
  std::vector<double> mean, least, most;
  for (const auto& sample : number.samples) {
    labels.push_back(sample.label);
    mean.push_back(sample.mean);
    least.push_back(sample.least);
    most.push_back(sample.most);
  }
  Json json{{"name", number.name}, {"labels", labels}, {"mean", mean}, {"least", least}, {"most", most}};
  json["changes"] = Json::array();
  for (const auto& change : change_points(mean)) {
    json["changes"].push_back({{"at", change.at}, {"before", change.before}, {"after", change.after}, {"p", change.p}});
    ++changes;
  }
  return json;
}

Json case_json(const CaseHistory& of, std::size_t labels, std::size_t& changes) {
  Json json = Json::object();
  json["name"] = of.name;
  json["outcomes"] = Json::array();
  for (std::size_t label = 0; label < labels; ++label) {
    const auto found = of.outcomes.find(label);
    json["outcomes"].push_back(found == of.outcomes.end() ? Json()
                                                          : Json::array({found->second.first, found->second.second}));
  }
  json["numbers"] = Json::array();
  for (const auto& number : of.numbers) json["numbers"].push_back(number_json(number, changes));
  return json;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

int write_page(const PageOptions& options) {
  using report::page_part;
  JsonOutput output(options.output);
  const auto contents = Database(options.folder, Database::Access::read).contents();
  std::size_t changes = 0;
  Json data = Json::object();
  data["title"] = options.folder;
  data["labels"] = contents.labels;
  data["cases"] = Json::array();
  for (const auto& of : contents.cases) data["cases"].push_back(case_json(of, contents.labels.size(), changes));
  output.write_text(report::filled_page("history.html", {{"{{title}}", report::html_text(options.folder)},
                                                         {"{{style}}", page_part("report.css")},
                                                         {"{{plotly licence}}", page_part("plotly/LICENSE")},
                                                         {"{{plotly}}", page_part("plotly/plotly-basic.min.js")},
                                                         {"{{data}}", report::script_json(data)},
                                                         {"{{plots script}}", page_part("plots.js")},
                                                         {"{{script}}", page_part("history.js")}}));
  fmt::print("{}: {}, {}, {}\n", options.output, counted(contents.labels.size(), "label"),
             counted(contents.cases.size(), "case"), counted(changes, "change"));
  return 0;
}

}  // namespace rnicsim::sim::history
