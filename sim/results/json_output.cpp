// SPDX-License-Identifier: Apache-2.0
#include "sim/results/json_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/config/config_error.h"

namespace rnicsim::sim {
namespace {

// Returns a copy of standard output; later prints to stdout go to stderr.
int take_standard_output() {
  std::fflush(stdout);
  const int results = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (results < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw ConfigError(fmt::format("standard output: {}", std::strerror(errno)));
  return results;
}

}  // namespace

JsonOutput::JsonOutput(const std::string& path) {
  if (path == "-")
    file_.emplace(take_standard_output(), "standard output");
  else if (!path.empty())
    file_.emplace(path);
}

void JsonOutput::write(const Json& json) {
  // Arguments of a program need not be UTF-8; dump() replaces invalid bytes.
  write_text(json.dump(2) + '\n');
}

void JsonOutput::write_text(std::string_view text) {
  if (!file_) return;
  file_->write(text);
  file_->commit();
  file_.reset();
}

}  // namespace rnicsim::sim
