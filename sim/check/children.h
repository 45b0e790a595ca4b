// Programs, some at a time, each with a time limit; their output goes to files.
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
  std::vector<std::string> words;  // the program, looked for on PATH, and its arguments
  std::filesystem::path folder;    // where it runs
  std::filesystem::path out, err;  // of its standard streams; its input is empty
  std::chrono::milliseconds limit;
};

struct Ended {
  int status = 0;             // the exit status, if nothing below says otherwise
  int signal = 0;             // that killed it
  bool too_late = false;      // it was still there at its limit
  std::string not_started{};  // why
  double seconds = 0;         // of real time
};

// We were told to end by this signal; no child is left.
struct Interrupted : std::runtime_error {
  explicit Interrupted(int number) : std::runtime_error("interrupted"), signal(number) {}
  int signal;
};

// Runs all, `at_once` at a time, in their order, and calls `done` for each as it ends. A child and what it started are
// ended together: at its limit, with an exception of `done`, and when this process dies or is interrupted.
void run_children(const std::vector<Child>& children, unsigned at_once,
                  const std::function<void(std::size_t child, const Ended& ended)>& done);

}  // namespace rnicsim::sim::check
