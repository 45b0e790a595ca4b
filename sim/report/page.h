// SPDX-License-Identifier: Apache-2.0
// Builds a page as one HTML file that needs no network.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// Escapes text for HTML contents and attributes.
std::string html_text(std::string_view text);
// Escapes JSON for a <script> element, so that no string in the JSON can end the element.
std::string script_json(const Json& json);
// page_part() reads a file of sim/report. filled_page() reads a frame and replaces its marks, in their order, by the
// given texts. ConfigError: the file cannot be read, or lacks a mark.
using PageParts = std::vector<std::pair<std::string_view, std::string>>;
std::string page_part(const char* name);
std::string filled_page(const char* frame_name, const PageParts& parts);
// The page of sim/report with its data. ConfigError: a part of the page cannot be read.
std::string page(std::string_view title, const Json& data);

}  // namespace rnicsim::sim::report
