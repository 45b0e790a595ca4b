// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/plots.h"

#include "sim/report/page.h"

namespace rnicsim::sim::calibrate {

std::string plots_page(const Json& table) {
  using report::page_part;
  auto rows = Json::array();
  for (const auto& check : table) {
    if (rows.empty() || rows.back()["id"] != check["id"])
      rows.push_back({{"id", check["id"]}, {"setup", check["setup"]}, {"checks", Json::array()}});
    rows.back()["checks"].push_back(check);
  }
  return report::filled_page("calibration.html", {{"{{style}}", page_part("report.css")},
                                                  {"{{plotly licence}}", page_part("plotly/LICENSE")},
                                                  {"{{plotly}}", page_part("plotly/plotly-basic.min.js")},
                                                  {"{{data}}", report::script_json(rows)},
                                                  {"{{plots script}}", page_part("plots.js")},
                                                  {"{{script}}", page_part("calibration.js")}});
}

}  // namespace rnicsim::sim::calibrate
