// SPDX-License-Identifier: Apache-2.0
// Cursors over bytes in network order. The caller checks the length.
#pragma once

#include <boost/endian/conversion.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rnicsim::roce {

class WireWriter {
 public:
  explicit WireWriter(std::span<std::byte> out) : begin_(out.data()), at_(out.data()) {}
  template <std::unsigned_integral T>
  void put(T value) {
    boost::endian::native_to_big_inplace(value);
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }
  void put24(std::uint32_t value) {
    put(static_cast<std::uint8_t>(value >> 16));
    put(static_cast<std::uint16_t>(value));
  }
  template <class Bytes>
  void copy(const Bytes& bytes) {
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  std::size_t written() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* at_;
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> in) : begin_(in.data()), at_(in.data()) {}
  template <std::unsigned_integral T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return boost::endian::big_to_native(value);
  }
  std::uint32_t get24() {
    const std::uint32_t high = get<std::uint8_t>();
    return high << 16 | get<std::uint16_t>();
  }
  template <class Bytes>
  void copy(Bytes& bytes) {
    std::memcpy(bytes.data(), at_, bytes.size());
    at_ += bytes.size();
  }
  void skip(std::size_t bytes) { at_ += bytes; }
  std::size_t consumed() const { return static_cast<std::size_t>(at_ - begin_); }

 private:
  const std::byte* begin_;
  const std::byte* at_;
};

}  // namespace rnicsim::roce
