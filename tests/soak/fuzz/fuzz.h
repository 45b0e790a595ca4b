// SPDX-License-Identifier: Apache-2.0
// Interface of a fuzz target, and the reader of its input. Targets link with driver.cpp or with libFuzzer
// (CONTRIBUTING.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace rnicsim::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Valid inputs, which the driver mutates. Each target defines its own.
std::vector<Bytes> seeds();

// A broken invariant aborts the process; every fuzzer reports an abort.
[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}
inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

// Reads values from the front of an input. Bytes beyond the end read as 0.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  explicit Input(std::span<const std::uint8_t> bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  template <class T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const auto part = take_span(sizeof value);
    if (!part.empty()) std::memcpy(static_cast<void*>(&value), part.data(), part.size());
    return value;
  }
  std::span<const std::uint8_t> take_span(std::size_t most) {
    const auto part = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(part.size());
    return part;
  }
  // A step of a script: kind, length, and that many bytes.
  struct Step {
    std::uint8_t kind;
    std::span<const std::uint8_t> body;
  };
  Step take_step() {
    const auto kind = take<std::uint8_t>();
    return {kind, take_span(take<std::uint16_t>())};
  }

 private:
  std::span<const std::uint8_t> rest_;
};

// Writes the format that Input reads.
class Script {
 public:
  template <class... Values>
  Script& step(std::uint8_t kind, const Values&... values) {
    Bytes body;
    (append(body, values), ...);
    append(bytes_, kind);
    append(bytes_, static_cast<std::uint16_t>(body.size()));
    bytes_.insert(bytes_.end(), body.begin(), body.end());
    return *this;
  }
  operator Bytes() const { return bytes_; }

 private:
  template <class Value>
  static void append(Bytes& out, const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    out.insert(out.end(), bytes, bytes + sizeof value);
  }
  template <class Element>
  static void append(Bytes& out, const std::vector<Element>& values) {
    for (const auto& value : values) append(out, value);
  }
  Bytes bytes_;
};

}  // namespace rnicsim::fuzz
