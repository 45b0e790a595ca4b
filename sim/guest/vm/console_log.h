// SPDX-License-Identifier: Apache-2.0
// Console output of a guest: copied to a file if there is one; the last lines are kept for messages.
#pragma once

#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim {

class ConsoleLog {
 public:
  // `file` may be empty: no copy. ConfigError: the file cannot be written.
  explicit ConsoleLog(const std::string& file);

  void add(std::string_view text);
  // Lines since the last call in which the kernel reports a fault.
  std::vector<std::string> take_faults();
  // The last lines of the console, each with a line break at its end.
  std::string last_lines() const;

 private:
  void end_line();

  std::ofstream file_;
  std::string line_;
  std::deque<std::string> last_;
  std::vector<std::string> faults_;
};

}  // namespace rnicsim::sim
