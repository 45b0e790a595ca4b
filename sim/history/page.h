// SPDX-License-Identifier: Apache-2.0
// rnicsim report --history: page with each number over the labels, and its change points.
#pragma once

#include <string>

namespace rnicsim::sim::history {

struct PageOptions {
  std::string folder;  // folder with the history
  std::string output;
};

// Returns 0. ConfigError: the history cannot be read, or the page cannot be written.
int write_page(const PageOptions& options);

}  // namespace rnicsim::sim::history
