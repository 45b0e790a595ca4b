// Where --json FILE goes, and the page of a report.
#pragma once

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace rnicsim::sim {

// A file takes its name when it is whole. `-` is standard output, which is then for the results alone: what people read
// goes to stderr, the programs' output, too.
class JsonOutput {
 public:
  // Empty: nowhere. ConfigError: the file cannot be made.
  explicit JsonOutput(std::string path);
  ~JsonOutput();
  JsonOutput(const JsonOutput&) = delete;
  JsonOutput& operator=(const JsonOutput&) = delete;

  bool wanted() const { return file_ != nullptr; }
  // Once; nothing if not wanted. ConfigError: it could not be written.
  void write(const nlohmann::ordered_json& json);
  void write_text(std::string_view text);

 private:
  bool is_replaced() const { return !part_.empty(); }

  const std::filesystem::path path_;
  std::filesystem::path part_;  // until it is whole; empty: path_ is written itself
  std::FILE* file_ = nullptr;
};

}  // namespace rnicsim::sim
