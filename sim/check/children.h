// SPDX-License-Identifier: Apache-2.0
// Runs programs in parallel, each with a time limit and its output in files.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rnicsim::sim::check {

struct Child {
  std::vector<std::string> words;  // program (searched on PATH) and its arguments
  std::filesystem::path folder;    // working folder
  std::filesystem::path out, err;  // files for standard output and standard error; standard input is empty
  std::chrono::milliseconds limit;
};

struct Ended {
  int status = 0;             // exit status; valid if no other member reports a failure
  int signal = 0;             // signal that killed the child; 0: none
  bool too_late = false;      // killed at its limit
  std::string not_started{};  // reason why the child could not be started; empty: it was started
  double seconds = 0;         // wall time
};

// This process received `signal` and shall end. No child is left.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

// Runs all children in order, `at_once` at a time, and calls `done` for each one that ends. A child is killed with its
// process group: at its limit, when `done` throws, and when this process is interrupted or dies.
void run_children(const std::vector<Child>& children, unsigned at_once,
                  const std::function<void(std::size_t child, const Ended& ended)>& done);

}  // namespace rnicsim::sim::check
