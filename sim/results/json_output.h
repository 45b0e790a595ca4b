// SPDX-License-Identifier: Apache-2.0
// Destination of --json FILE and of a report's page.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/results/json.h"
#include "sim/results/staged_file.h"

namespace rnicsim::sim {

// The file gets its name when it is complete. `-` is standard output, which then carries only the results: messages and
// the programs' output go to stderr.
class JsonOutput {
 public:
  // Empty path: no output. ConfigError: the file cannot be created.
  explicit JsonOutput(const std::string& path);

  bool wanted() const { return file_.has_value(); }
  // Call at most once; does nothing without a path. ConfigError: the file cannot be written.
  void write(const Json& json);
  void write_text(std::string_view text);

 private:
  std::optional<StagedFile> file_;
};

}  // namespace rnicsim::sim
