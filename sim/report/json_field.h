// A JSON file, and its fields by where they stand: what is not as it should be is said with file and path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// ConfigError: "FILE: what is wrong".
Json read_json(const std::filesystem::path& path);

// What stands at a place of a file, or nothing. It refers to the JSON that it was made of. All that throws throws
// ConfigError.
class Field {
 public:
  Field(const std::filesystem::path& file, const Json& json) : file_(&file), json_(&json) {}

  // null is nothing, too.
  bool exists() const { return json_ != nullptr && !json_->is_null(); }
  bool is_object() const { return exists() && json_->is_object(); }

  Field operator[](std::string_view key) const;                        // of an object, or of nothing
  Field operator[](std::size_t index) const;                           // of a list
  std::size_t size() const;                                            // of a list, or of nothing: 0
  void for_each(const std::function<void(const Field&)>& item) const;  // of a list, or of nothing
  void for_each(const std::function<void(const std::string&, const Field&)>& member) const;  // of an object, or nothing

  std::string text() const;
  std::string text_or(std::string fallback) const { return exists() ? text() : std::move(fallback); }
  double number() const;
  double number_or(double fallback) const { return exists() ? number() : fallback; }
  std::optional<double> number_if_any() const { return exists() ? std::optional(number()) : std::nullopt; }
  std::uint64_t count() const;
  bool flag_or(bool fallback) const;
  // A value as a person would write it: a text without its quotes, all else as JSON.
  std::string shown() const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  Field(const Field& parent, const Json* json, std::string path)
      : file_(parent.file_), json_(json), path_(std::move(path)) {}
  const Json& of_type(bool fits, std::string_view what) const;

  const std::filesystem::path* file_;
  const Json* json_;  // nullptr: nothing stands there
  std::string path_;
};

}  // namespace rnicsim::sim::report
