// SPDX-License-Identifier: Apache-2.0
#include "sim/report/json_field.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "sim/config/config_error.h"

namespace rnicsim::sim::report {

Json read_json(const std::filesystem::path& path) {
  const auto name = sim::shown(path.string());
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (error) throw ConfigError(fmt::format("{}: {}", name, error.message()));
  if (status.type() != std::filesystem::file_type::regular) throw ConfigError(fmt::format("{}: not a file", name));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(fmt::format("{}: {}", name, std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) throw ConfigError(fmt::format("{}: {}", name, std::strerror(errno)));
  try {
    return Json::parse(text);
  } catch (const JsonError& wrong) {
    if (wrong.byte) throw ConfigError(fmt::format("{}: not JSON, or cut short: wrong at byte {}", name, *wrong.byte));
    throw ConfigError(fmt::format("{}: {}", name, wrong.what()));
  }
}

void Field::refuse(std::string_view why) const {
  throw ConfigError(
      fmt::format("{}: {}{}{}", sim::shown(file_->string()), sim::shown(path_), path_.empty() ? "" : " ", why));
}

const Json& Field::of_type(bool fits, std::string_view what) const {
  if (!exists()) refuse("is missing");
  if (!fits) refuse(fmt::format("is not {}", what));
  return *json_;
}

Field Field::operator[](std::string_view key) const {
  const auto path = path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  if (!exists()) return {*this, nullptr, path};
  const Json& object = of_type(json_->is_object(), "an object");
  return {*this, object.find(key), path};
}

Field Field::operator[](std::size_t index) const {
  const auto path = fmt::format("{}[{}]", path_, index);
  const Json& list = of_type(exists() && json_->is_array(), "a list");
  return {*this, index < list.size() ? &list[index] : nullptr, path};
}

std::size_t Field::size() const { return exists() ? of_type(json_->is_array(), "a list").size() : 0; }

void Field::for_each(const std::function<void(const Field&)>& item) const {
  for (std::size_t i = 0; i < size(); ++i) item((*this)[i]);
}

void Field::for_each(const std::function<void(const std::string&, const Field&)>& member) const {
  if (!exists()) return;
  for (const auto& [key, value] : of_type(json_->is_object(), "an object").items())
    member(key, Field(*this, &value, path_.empty() ? key : fmt::format("{}.{}", path_, key)));
}

std::string Field::text() const { return of_type(exists() && json_->is_string(), "a text").get<std::string>(); }

double Field::number() const {
  const double value = of_type(exists() && json_->is_number(), "a number").get<double>();
  if (!std::isfinite(value)) refuse("is not a finite number");
  return value;
}

std::uint64_t Field::count() const {
  const bool is_whole = exists() && json_->is_integer();
  const bool is_count = is_whole && (json_->is_unsigned() || json_->get<std::int64_t>() >= 0);
  return of_type(is_count, "a whole number").get<std::uint64_t>();
}

bool Field::flag_or(bool fallback) const {
  return exists() ? of_type(json_->is_boolean(), "true or false").get<bool>() : fallback;
}

std::string Field::shown() const {
  if (!exists()) return "";
  return json_->is_string() ? json_->get<std::string>() : json_->dump();
}

}  // namespace rnicsim::sim::report
