// SPDX-License-Identifier: Apache-2.0
#include "sim/results/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace rnicsim::sim {

using Library = nlohmann::ordered_json;

struct JsonAccess {
  static Library to_library(const Json& json) {
    return std::visit([](const auto& value) { return written(value); }, json.value_);
  }
  template <class Value>
  static Json of(Value value) {
    Json json;
    json.value_ = std::move(value);
    return json;
  }

 private:
  static Library written(std::monostate) { return nullptr; }
  static Library written(const Json::Array& array) {
    auto library = Library::array();
    for (const Json& element : array) library.push_back(to_library(element));
    return library;
  }
  static Library written(const Json::Object& object) {
    auto library = Library::object();
    auto& members = library.get_ref<Library::object_t&>();
    for (const auto& [key, value] : object) members.emplace_back(key, to_library(value));  // keys are unique already
    return library;
  }
  static Library written(const auto& scalar) { return scalar; }
};

namespace {

const char* type_of(const Json& json) {
  return json.is_null()      ? "null"
         : json.is_boolean() ? "true or false"
         : json.is_number()  ? "a number"
         : json.is_string()  ? "a text"
         : json.is_array()   ? "an array"
                             : "an object";
}

[[noreturn]] void refuse(const Json& json, const char* wanted) {
  throw JsonError(fmt::format("{} is needed, not {}", wanted, type_of(json)));
}

// Builds a value from the events of the library's parser.
class Builder : public nlohmann::json_sax<Library> {
 public:
  explicit Builder(std::size_t deepest) : deepest_(deepest) {}

  bool null() override { return put(Json()); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return put(Json(value)); }
  bool string(string_t& value) override { return put(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }  // not part of JSON
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool key(string_t& value) override {
    key_ = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception& error) override {
    if (dynamic_cast<const nlohmann::detail::parse_error*>(&error) != nullptr)
      error_.emplace(error.what(), byte);
    else  // a number that does not fit a double
      error_.emplace("a value of this JSON is out of range");
    return false;
  }

  Json take() {
    if (error_) throw *error_;
    return std::move(root_);
  }

 private:
  Json* place() {
    if (open_.empty()) return &root_;
    Json& around = *open_.back();
    if (around.is_object()) return &member_of(around);
    around.push_back({});
    return &around.back();
  }
  // An object keeps the order of its members. An index of names keeps objects with millions of members fast.
  Json& member_of(Json& object) {
    constexpr std::size_t kFew = 32;
    auto& members = object.items();
    if (members.size() < kFew) return object[key_];
    auto& places = places_.back();
    if (places.empty())
      for (std::size_t i = 0; i < members.size(); ++i) places.emplace(members[i].first, i);
    const auto [place, is_new] = places.try_emplace(key_, members.size());
    if (is_new) members.emplace_back(key_, Json());
    return members[place->second].second;
  }
  bool put(Json value) {
    *place() = std::move(value);
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= deepest_) {
      error_.emplace(fmt::format("nested more than {} times", deepest_));
      return false;
    }
    Json* const here = place();
    *here = std::move(value);
    open_.push_back(here);
    places_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    places_.pop_back();
    return true;
  }

  const std::size_t deepest_;
  Json root_;
  std::vector<Json*> open_;  // outermost first; only the last one grows, so the pointers stay valid
  // Index by name of each open object's members; empty while an object has few members.
  std::vector<std::unordered_map<std::string, std::size_t>> places_;
  std::string key_;
  std::optional<JsonError> error_;
};

bool is_member(const Json& json) { return json.is_array() && json.size() == 2 && json.front().is_string(); }

}  // namespace

Json::Json(std::initializer_list<Json> elements) {
  if (!std::ranges::all_of(elements, is_member)) {
    value_ = Array(elements);
    return;
  }
  value_ = Object();
  for (const Json& element : elements) member(element.front().as_text()) = element.back();
}

Json Json::object() { return JsonAccess::of(Object()); }

Json Json::parse(std::string_view text, std::size_t deepest) {
  Builder builder(deepest);
  Library::sax_parse(text, &builder);
  return builder.take();
}

std::optional<Json> Json::parse_if_valid(std::string_view text, std::size_t deepest) {
  try {
    return parse(text, deepest);
  } catch (const JsonError&) {
    return std::nullopt;
  }
}

std::string Json::dump(int indent) const {
  return JsonAccess::to_library(*this).dump(indent, ' ', false, Library::error_handler_t::replace);
}

std::size_t Json::size() const {
  if (const auto* array = std::get_if<Array>(&value_)) return array->size();
  if (const auto* object = std::get_if<Object>(&value_)) return object->size();
  return is_null() ? 0 : 1;
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  const auto found = std::ranges::find(*object, key, &Member::first);
  return found != object->end() ? &found->second : nullptr;
}

const Json* Json::find_pointer(std::string_view pointer) const {
  const Json* found = this;
  while (found != nullptr && pointer.starts_with('/')) {
    pointer.remove_prefix(1);
    const auto key = pointer.substr(0, pointer.find('/'));
    found = found->find(key);
    pointer.remove_prefix(key.size());
  }
  return found;
}

const Json& Json::at(std::string_view key) const {
  if (!is_object()) refuse(*this, "an object");
  const Json* found = find(key);
  if (found == nullptr) throw JsonError(fmt::format("the object has no '{}'", key));
  return *found;
}

const Json& Json::at(std::size_t index) const {
  const Array& array = elements();
  if (index >= array.size()) throw JsonError(fmt::format("the array has {} elements, and no [{}]", size(), index));
  return array[index];
}

Json& Json::member(std::string_view key) {
  Object& object = items();
  const auto found = std::ranges::find(object, key, &Member::first);
  return found != object.end() ? found->second : object.emplace_back(std::string(key), Json()).second;
}

const Json::Array& Json::elements() const {
  static const Array none;
  const auto* array = std::get_if<Array>(&value_);
  if (array == nullptr && !is_null()) refuse(*this, "an array");
  return array != nullptr ? *array : none;
}

Json::Array& Json::elements() {
  if (is_null()) value_ = Array();
  return const_cast<Array&>(std::as_const(*this).elements());
}

const Json::Object& Json::items() const {
  static const Object none;
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr && !is_null()) refuse(*this, "an object");
  return object != nullptr ? *object : none;
}

Json::Object& Json::items() {
  if (is_null()) value_ = Object();
  return const_cast<Object&>(std::as_const(*this).items());
}

void Json::push_back(Json element) { elements().push_back(std::move(element)); }

void Json::erase(std::string_view key) {
  std::erase_if(items(), [&](const Member& member) { return member.first == key; });
}

void Json::update(const Json& members) {
  items();  // null becomes an object even if `members` is empty
  for (const auto& [key, value] : members.items()) member(key) = value;
}

bool operator==(const Json& one, const Json& other) {
  if (one.is_number() && other.is_number()) return JsonAccess::to_library(one) == JsonAccess::to_library(other);
  return one.value_ == other.value_;
}

bool Json::as_boolean() const {
  const auto* value = std::get_if<bool>(&value_);
  if (value == nullptr) refuse(*this, "true or false");
  return *value;
}

double Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  refuse(*this, "a number");
}

std::int64_t Json::as_signed() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&value_);
  if (value == nullptr || !std::in_range<std::int64_t>(*value)) refuse(*this, "a whole number");
  return static_cast<std::int64_t>(*value);
}

std::uint64_t Json::as_unsigned() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::int64_t>(&value_);
  if (value == nullptr || *value < 0) refuse(*this, "a whole number of 0 or more");
  return static_cast<std::uint64_t>(*value);
}

const std::string& Json::as_text() const {
  const auto* value = std::get_if<std::string>(&value_);
  if (value == nullptr) refuse(*this, "a text");
  return *value;
}

}  // namespace rnicsim::sim
