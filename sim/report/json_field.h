// SPDX-License-Identifier: Apache-2.0
// A JSON file and its fields by their paths. Errors name the file and the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/results/json.h"

namespace rnicsim::sim::report {

// ConfigError: "FILE: reason".
Json read_json(const std::filesystem::path& path);

// The value at a path of a JSON file, or nothing. The JSON value and the file's name must outlive the Field. Every
// function may throw ConfigError.
class Field {
 public:
  Field(const std::filesystem::path& file, const Json& json) : file_(&file), json_(&json) {}

  // A null value counts as nothing.
  bool exists() const { return json_ != nullptr && !json_->is_null(); }
  bool is_object() const { return exists() && json_->is_object(); }

  Field operator[](std::string_view key) const;  // member of an object; of nothing: nothing
  Field operator[](std::size_t index) const;     // element of a list
  std::size_t size() const;                      // length of a list; of nothing: 0
  // Call the function for each element of a list or each member of an object; for nothing: no call.
  void for_each(const std::function<void(const Field&)>& item) const;
  void for_each(const std::function<void(const std::string&, const Field&)>& member) const;

  std::string text() const;
  std::string text_or(std::string fallback) const { return exists() ? text() : std::move(fallback); }
  double number() const;
  double number_or(double fallback) const { return exists() ? number() : fallback; }
  std::optional<double> number_if_any() const { return exists() ? std::optional(number()) : std::nullopt; }
  std::uint64_t count() const;
  bool flag_or(bool fallback) const;
  // The value for display: a text without quotes, all other types as JSON.
  std::string shown() const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  Field(const Field& parent, const Json* json, std::string path)
      : file_(parent.file_), json_(json), path_(std::move(path)) {}
  const Json& of_type(bool fits, std::string_view what) const;

  const std::filesystem::path* file_;
  const Json* json_;  // nullptr: no value at this path
  std::string path_;
};

}  // namespace rnicsim::sim::report
