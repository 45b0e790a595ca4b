// SPDX-License-Identifier: Apache-2.0
#include "sim/config/config_error.h"

#include <algorithm>

namespace rnicsim::sim {

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string result(text.substr(0, kLongest));
  std::ranges::replace_if(
      result, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text.size() > kLongest ? result + "..." : result;
}

}  // namespace rnicsim::sim
