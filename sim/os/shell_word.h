// A text as one word of a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace rnicsim::sim {

// In single quotes, whatever it has.
inline std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + '\'';
}

}  // namespace rnicsim::sim
