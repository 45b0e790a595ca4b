// One file that a browser opens without a network.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// In the page's text or an attribute.
std::string html_text(std::string_view text);
// In a <script>: nothing in it ends that, whatever strings it has.
std::string script_json(const Json& json);
// A file of sim/report, and a page of it: each mark of the frame, in their order, becomes the text beside it.
// ConfigError: it cannot be read, or has no such mark.
using PageParts = std::vector<std::pair<std::string_view, std::string>>;
std::string page_part(const char* name);
std::string filled_page(const char* frame_name, const PageParts& parts);
// The page of sim/report with all that it needs. ConfigError: a part of it cannot be read.
std::string page(std::string_view title, const Json& data);

}  // namespace rnicsim::sim::report
