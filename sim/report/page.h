// One file that a browser opens without a network.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rnicsim::sim::report {

// In the page's text or an attribute.
std::string html_text(std::string_view text);
// In a <script>: nothing in it ends that, whatever strings it has.
std::string script_json(const nlohmann::ordered_json& json);
// The page of sim/report with all that it needs. ConfigError: a part of it cannot be read.
std::string page(std::string_view title, const nlohmann::ordered_json& data);

}  // namespace rnicsim::sim::report
