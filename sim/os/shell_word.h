// SPDX-License-Identifier: Apache-2.0
// Quotes a text as one word of a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace rnicsim::sim {

// Always in single quotes.
inline std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + '\'';
}

}  // namespace rnicsim::sim
