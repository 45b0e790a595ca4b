// SPDX-License-Identifier: Apache-2.0
// The outcome of a check as an HTML page; a difference shows the events of both traces side by side.
#pragma once

#include <string>
#include <vector>

#include "sim/check/verdict.h"

namespace rnicsim::sim::check {

// The page needs no network and no scripts. `suite`: name of the folder. ConfigError: a template of the page cannot be
// read.
std::string html_page(const std::string& suite, const std::vector<Verdict>& verdicts);

}  // namespace rnicsim::sim::check
