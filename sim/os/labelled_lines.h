// SPDX-License-Identifier: Apache-2.0
// Prints a program's output by lines, each with the label of its host.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace rnicsim::sim {

class LabelledLines {
 public:
  LabelledLines(std::string label, std::FILE* to) : label_(std::move(label)), to_(to) {}

  // Prints complete lines at once; an incomplete line is printed when it exceeds kMostLine.
  void print(std::string_view text);
  // End of the stream: prints the incomplete last line.
  void end();
  std::FILE* file() const { return to_; }

  static constexpr std::size_t kMostLine = 1u << 20;  // bytes

 private:
  void print_line(std::string_view line) const;

  std::string label_;
  std::FILE* to_;
  std::string partial_;
};

}  // namespace rnicsim::sim
