// rnicsim report --history: each number over the labels, with its change points.
#pragma once

#include <string>

namespace rnicsim::sim::history {

struct PageOptions {
  std::string folder;  // with a history
  std::string output;
};

// 0. ConfigError: a history that cannot be read, or a page that cannot be written.
int write_page(const PageOptions& options);

}  // namespace rnicsim::sim::history
