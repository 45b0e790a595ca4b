// What a program prints, line by line, each line with the label of the host that it is from.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace rnicsim::sim {

class LabelledLines {
 public:
  LabelledLines(std::string label, std::FILE* to) : label_(std::move(label)), to_(to) {}

  // Prints the lines that are whole now; and what has come of one that is longer than kMostLine.
  void print(std::string_view text);
  // What is left at the end of the stream is a line, too.
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
