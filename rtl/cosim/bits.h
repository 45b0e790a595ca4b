// SPDX-License-Identifier: Apache-2.0
// Converts between a packed struct of SystemVerilog, as Verilator stores it (32-bit words, least significant first),
// and a C++ struct with the same fields.
#pragma once

#include <cstdint>
#include <tuple>

namespace rnicsim::rtl {

template <unsigned kWidth, class Owner, class Value>
struct Field {
  const char* name;
  Value Owner::*member;
};
template <unsigned kWidth, class Owner, class Value>
constexpr Field<kWidth, Owner, Value> field(const char* name, Value Owner::*member) {
  return {name, member};
}

// Fields of a transaction, from the most significant down.
template <class Transaction>
inline constexpr std::tuple<> kFields{};

template <class Transaction>
constexpr unsigned width_of() {
  return std::apply([]<class... Owners, class... Values, unsigned... kWidths>(
                        const Field<kWidths, Owners, Values>&...) { return (kWidths + ...); },
                    kFields<Transaction>);
}

inline void put_bits(std::uint32_t* words, unsigned at, unsigned width, std::uint64_t value) {
  value &= ~std::uint64_t{0} >> (64 - width);
  for (unsigned done = 0; done < width; done += 32 - (at + done) % 32)
    words[(at + done) / 32] |= static_cast<std::uint32_t>(value >> done << (at + done) % 32);
}
inline std::uint64_t get_bits(const std::uint32_t* words, unsigned at, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned done = 0; done < width; done += 32 - (at + done) % 32)
    value |= std::uint64_t{words[(at + done) / 32] >> (at + done) % 32} << done;
  return value & ~std::uint64_t{0} >> (64 - width);
}

template <class Transaction>
void pack(const Transaction& from, std::uint32_t* words) {
  constexpr unsigned kWidth = width_of<Transaction>();
  for (unsigned i = 0; i < (kWidth + 31) / 32; ++i) words[i] = 0;
  unsigned at = kWidth;
  const auto one = [&]<unsigned kBits, class Owner, class Value>(const Field<kBits, Owner, Value>& field) {
    put_bits(words, at -= kBits, kBits, static_cast<std::uint64_t>(from.*field.member));
  };
  std::apply([&](const auto&... fields) { (one(fields), ...); }, kFields<Transaction>);
}

template <class Transaction>
void unpack(const std::uint32_t* words, Transaction& to) {
  unsigned at = width_of<Transaction>();
  const auto one = [&]<unsigned kBits, class Owner, class Value>(const Field<kBits, Owner, Value>& field) {
    to.*field.member = static_cast<Value>(get_bits(words, at -= kBits, kBits));
  };
  std::apply([&](const auto&... fields) { (one(fields), ...); }, kFields<Transaction>);
}

// Calls `visit(name, value)` for each field, as a number.
template <class Transaction, class Visit>
void for_each_field(const Transaction& transaction, Visit&& visit) {
  std::apply(
      [&](const auto&... fields) { (visit(fields.name, static_cast<std::uint64_t>(transaction.*fields.member)), ...); },
      kFields<Transaction>);
}
template <class Transaction>
bool same(const Transaction& a, const Transaction& b) {
  return std::apply([&](const auto&... fields) { return ((a.*fields.member == b.*fields.member) && ...); },
                    kFields<Transaction>);
}

}  // namespace rnicsim::rtl
