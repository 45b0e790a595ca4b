// SPDX-License-Identifier: Apache-2.0
// Values one behind the other in the machine's byte order and layout: for processes of one program on machines of one
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace rnicsim {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    append(std::as_bytes(std::span(&value, 1)));
  }
  void put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint32_t>(bytes.size()));
    append(bytes);
  }

 private:
  void append(std::span<const std::byte> bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

  std::vector<std::byte>& out_;
};

// The bytes must outlive the reader. Throws std::runtime_error when fewer bytes are left than asked for.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> in) : in_(in) {}

  bool at_end() const { return in_.empty(); }
  template <class Value>
  Value take() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value;
    std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    return value;
  }
  std::span<const std::byte> take_bytes() { return cut(take<std::uint32_t>()); }

 private:
  std::span<const std::byte> cut(std::size_t bytes) {
    if (bytes > in_.size()) throw std::runtime_error("a message of another process ends too early");
    const auto part = in_.first(bytes);
    in_ = in_.subspan(bytes);
    return part;
  }

  std::span<const std::byte> in_;
};

}  // namespace rnicsim
