// What a guest's console says: in a file, if somebody wants it, and the last lines for a message.
#pragma once

#include <deque>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim {

class ConsoleLog {
 public:
  // `file` may be empty. ConfigError: it cannot be written.
  explicit ConsoleLog(const std::string& file);

  void add(std::string_view text);
  // Lines in which the kernel told of a fault, since the last call.
  std::vector<std::string> take_faults();
  // Each with a line break.
  std::string last_lines() const;

 private:
  void end_line();

  std::ofstream file_;
  std::string line_;
  std::deque<std::string> last_;
  std::vector<std::string> faults_;
};

}  // namespace rnicsim::sim
