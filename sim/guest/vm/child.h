// A program of this machine's that lives no longer than this process.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim {

struct ChildProgram {
  std::vector<std::string> command;  // the program is found in PATH
  std::vector<int> inherited;        // descriptors that it has under the same numbers
  int output = -1;                   // its standard output and error; -1: this process's standard error
  int last_signal = SIGKILL;         // what it gets when this process has ended
};

class Child {
 public:
  // std::system_error, with the errno of exec: it cannot be started.
  explicit Child(const ChildProgram& program);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // As waitpid tells it, once it has ended.
  std::optional<int> ended();
  int wait();
  void kill();

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// "exit status 1", "signal 9 (Killed)"
std::string describe_end(int wait_status);

}  // namespace rnicsim::sim
