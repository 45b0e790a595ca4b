// The outcome of a check as a page: each difference with the events of both sides beside one another.
#pragma once

#include <string>
#include <vector>

#include "sim/check/verdict.h"

namespace rnicsim::sim::check {

// Needs neither a network nor scripts. `suite` is the folder. ConfigError: a part of the page cannot be read.
std::string html_page(const std::string& suite, const std::vector<Verdict>& verdicts);

}  // namespace rnicsim::sim::check
