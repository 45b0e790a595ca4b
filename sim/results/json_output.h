// Where --json FILE goes, and the page of a report.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/results/json.h"
#include "sim/results/staged_file.h"

namespace rnicsim::sim {

// A file takes its name when it is whole. `-` is standard output, which is then for the results alone: what people read
// goes to stderr, the programs' output, too.
class JsonOutput {
 public:
  // Empty: nowhere. ConfigError: the file cannot be made.
  explicit JsonOutput(const std::string& path);

  bool wanted() const { return file_.has_value(); }
  // Once; nothing if not wanted. ConfigError: it could not be written.
  void write(const Json& json);
  void write_text(std::string_view text);

 private:
  std::optional<StagedFile> file_;
};

}  // namespace rnicsim::sim
