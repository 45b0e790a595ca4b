// SPDX-License-Identifier: Apache-2.0
// Formats a view as lines of text, for the terminal and for --once.
#pragma once

#include <string>
#include <vector>

#include "sim/top/view.h"

namespace rnicsim::sim::top {

enum class Order { host, transmitted, received, retries, busiest };
inline constexpr int kOrders = 5;
const char* to_string(Order order);

struct Line {
  enum class Kind { plain, heading, trouble };
  std::string text;
  Kind kind = Kind::plain;
};

struct Page {
  std::vector<Line> head;  // does not scroll
  std::vector<Line> body;
};

// Shows as many columns as fit; 80 characters are enough for the important ones.
Page make_page(const View& view, std::size_t width, Order order);
std::vector<Line> help_lines();

}  // namespace rnicsim::sim::top
