// SPDX-License-Identifier: Apache-2.0
#include "sim/os/labelled_lines.h"

#include <fmt/format.h>

#include "sim/os/progress_line.h"

namespace rnicsim::sim {

void LabelledLines::print_line(std::string_view line) const { fmt::print(to_, "{}| {}\n", label_, line); }

void LabelledLines::print(std::string_view text) {
  partial_ += text;
  std::size_t start = 0;
  progress_line::erase();
  for (std::size_t end; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1)
    print_line(std::string_view(partial_).substr(start, end - start));
  partial_.erase(0, start);
  if (partial_.size() <= kMostLine) return;
  print_line(partial_);
  partial_.clear();
}

void LabelledLines::end() {
  if (!partial_.empty()) print("\n");
  std::fflush(to_);
}

}  // namespace rnicsim::sim
