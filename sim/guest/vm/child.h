// SPDX-License-Identifier: Apache-2.0
// A child process that ends with this process at the latest.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rnicsim::sim {

struct ChildProgram {
  std::vector<std::string> command;  // the program is found in PATH
  std::vector<int> inherited;        // descriptors that the program inherits under the same numbers
  int output = -1;                   // standard output and error of the program; -1: this process's standard error
  int last_signal = SIGKILL;         // signal that the program gets at the end of this process
};

class Child {
 public:
  // Starts the program. std::system_error with the errno of exec: the program cannot be started.
  explicit Child(const ChildProgram& program);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Status as of waitpid(); nullopt: the program is running.
  std::optional<int> ended();
  int wait();
  void kill();

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
};

// Examples: "exit status 1", "signal 9 (Killed)".
std::string describe_end(int wait_status);

}  // namespace rnicsim::sim
