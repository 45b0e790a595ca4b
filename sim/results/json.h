// SPDX-License-Identifier: Apache-2.0
// A JSON value. Only json.cpp includes the JSON library, because its header takes several seconds to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rnicsim::sim {

// The text is not JSON, or a value has another type than the caller asked for.
class JsonError : public std::runtime_error {
 public:
  explicit JsonError(const std::string& what, std::optional<std::size_t> byte = {})
      : std::runtime_error(what), byte(byte) {}
  std::optional<std::size_t> byte;  // position of the error in the text, counted from 1
};

// An object keeps its members in the order of insertion. operator[] and at() throw JsonError when there is no such
// member or element. Exception: operator[](key) of a non-const value adds the member, and push_back() adds an element;
// both turn null into an object or an array.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): values are written as in JSON
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  template <class Number>
  requires std::is_arithmetic_v<Number> Json(Number number) : value_(widest(number)) {}
  template <class Element>
  requires(!std::is_same_v<Element, Json>) Json(const std::vector<Element>& elements)
      : value_(Array(elements.begin(), elements.end())) {}
  template <class Map>
  requires requires { typename Map::mapped_type; }
  Json(const Map& members) : value_(Object()) {
    for (const auto& [key, value] : members) member(key) = Json(value);
  }
  Json(Array elements) : value_(std::move(elements)) {}
  // {{"key", value}, ...} is an object when each element is an array of a text and a value; else an array.
  Json(std::initializer_list<Json> elements);

  static Json array() { return Json(Array()); }
  static Json array(std::initializer_list<Json> elements) { return Json(Array(elements)); }
  static Json object();
  // JsonError: the text is not JSON, or is nested deeper than `deepest`.
  static Json parse(std::string_view text, std::size_t deepest = 500);
  // The same; nullopt instead of an error.
  static std::optional<Json> parse_if_valid(std::string_view text, std::size_t deepest = 500);
  // Text on one line, or with `indent` spaces for each level. Bytes that are not UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_) || is_unsigned(); }
  bool is_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // JsonError: the value has another type, or is a number outside the range of Value.
  template <class Value>
  Value get() const;
  template <class Value>
  void get_to(Value& value) const {
    value = get<Value>();
  }
  // The value of the member `key`, or `fallback` when the object has no such member.
  template <class Value>
  Value value(std::string_view key, Value fallback) const {
    const Json* found = find(key);
    return found != nullptr ? found->get<Value>() : fallback;
  }

  std::string value(std::string_view key, const char* fallback) const { return value(key, std::string(fallback)); }

  // Number of elements of an array or members of an object; null: 0; any other value: 1.
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  // nullptr: no member has this name.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }
  // Finds a member along a JSON pointer such as "/latency/mean_ps" (RFC 6901, without escapes and array indices).
  const Json* find_pointer(std::string_view pointer) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  const Json& at(std::string_view key) const;
  const Json& at(std::size_t index) const;
  Json& at(std::size_t index) { return const_cast<Json&>(std::as_const(*this).at(index)); }
  template <class Key>
  requires std::is_convertible_v<Key, std::string_view>
  const Json& operator[](const Key& key) const { return at(std::string_view(key)); }
  template <class Key>
  requires std::is_convertible_v<Key, std::string_view> Json& operator[](const Key& key) {
    return member(std::string_view(key));
  }
  template <class Index>
  requires std::is_integral_v<Index>
  const Json& operator[](Index index) const { return at(static_cast<std::size_t>(index)); }
  template <class Index>
  requires std::is_integral_v<Index> Json& operator[](Index index) { return at(static_cast<std::size_t>(index)); }
  // Elements of an array; null has none. JsonError: another type.
  const Array& elements() const;
  Array& elements();
  Array::const_iterator begin() const { return elements().begin(); }
  Array::const_iterator end() const { return elements().end(); }
  Array::iterator begin() { return elements().begin(); }
  Array::iterator end() { return elements().end(); }
  const Json& front() const { return at(std::size_t{0}); }
  const Json& back() const { return at(size() - 1); }
  Json& back() { return at(size() - 1); }
  // Members of an object, for `for (const auto& [key, value] : json.items())`; null has none. JsonError: another type.
  const Object& items() const;
  Object& items();

  void push_back(Json element);
  void erase(std::string_view key);
  // Adds the members of another object; an existing member of the same name is replaced.
  void update(const Json& members);

  // Numbers are equal by value: 1 equals 1.0.
  friend bool operator==(const Json& one, const Json& other);

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;

  template <class Number>
  static Value widest(Number number) {
    if constexpr (std::is_same_v<Number, bool>)
      return number;
    else if constexpr (std::is_floating_point_v<Number>)
      return static_cast<double>(number);
    else if constexpr (std::is_signed_v<Number>)
      return static_cast<std::int64_t>(number);
    else
      return static_cast<std::uint64_t>(number);
  }
  template <class Narrow>
  static Narrow narrowed(auto number) {
    if (!std::in_range<Narrow>(number)) throw JsonError("a number is too large");
    return static_cast<Narrow>(number);
  }
  Json& member(std::string_view key);
  bool as_boolean() const;
  double as_double() const;
  std::int64_t as_signed() const;
  std::uint64_t as_unsigned() const;
  const std::string& as_text() const;
  friend struct JsonAccess;  // defined in json.cpp

  Value value_;
};

namespace json_detail {
template <class Type>
inline constexpr bool is_vector = false;
template <class Element>
inline constexpr bool is_vector<std::vector<Element>> = true;
}  // namespace json_detail

template <class Value>
Value Json::get() const {
  if constexpr (std::is_same_v<Value, Json>) {
    return *this;
  } else if constexpr (std::is_same_v<Value, bool>) {
    return as_boolean();
  } else if constexpr (std::is_floating_point_v<Value>) {
    return static_cast<Value>(as_double());
  } else if constexpr (std::is_integral_v<Value>) {
    if constexpr (std::is_signed_v<Value>)
      return narrowed<Value>(as_signed());
    else
      return narrowed<Value>(as_unsigned());
  } else if constexpr (json_detail::is_vector<Value>) {
    Value values;
    for (const Json& element : elements()) values.push_back(element.get<typename Value::value_type>());
    return values;
  } else {
    return Value(as_text());
  }
}

}  // namespace rnicsim::sim
