// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "model/roce/headers.h"

namespace rnicsim::roce {
namespace {

TEST(OpcodeTable, RowsAreConsistent) {
  int rows = 0;
  for (int code = 0; code < 256; ++code) {
    const auto* row = find_opcode(static_cast<std::uint8_t>(code));
    if (row == nullptr) continue;
    ++rows;
    EXPECT_EQ(static_cast<int>(row->opcode), code);
    if (row->has(header::kImmediate) || row->has(header::kInvalidate)) {
      EXPECT_TRUE(row->ends()) << row->name;
    }
    if (row->payload == PayloadRule::full_mtu) {
      EXPECT_FALSE(row->ends()) << row->name;
    }
    EXPECT_LE(encoded_size(*row), Headers::kMaxBytes);
  }
  EXPECT_EQ(rows, 63);
}

TEST(OpcodeTable, PayloadRules) {
  EXPECT_TRUE(info(Opcode::send_first).payload_fits(1024, 1024));
  EXPECT_FALSE(info(Opcode::send_first).payload_fits(1023, 1024));
  EXPECT_FALSE(info(Opcode::send_last).payload_fits(0, 1024));
  EXPECT_TRUE(info(Opcode::send_last).payload_fits(1, 1024));
  EXPECT_TRUE(info(Opcode::send_only).payload_fits(0, 1024));
  EXPECT_FALSE(info(Opcode::send_only).payload_fits(1025, 1024));
  EXPECT_FALSE(info(Opcode::read_request).payload_fits(4, 1024));
}

TEST(OpcodeTable, OpcodeOfAPosition) {
  EXPECT_EQ(rc_opcode(Operation::write, Position::only), Opcode::write_only);
  EXPECT_EQ(rc_opcode(Operation::write, Position::last, Extra::immediate), Opcode::write_last_imm);
  EXPECT_EQ(rc_opcode(Operation::write, Position::first, Extra::immediate), Opcode::write_first);
  EXPECT_EQ(rc_opcode(Operation::read_response, Position::middle), Opcode::read_response_middle);
  EXPECT_EQ(position_of(0, 1), Position::only);
  EXPECT_EQ(position_of(1, 3), Position::middle);
  EXPECT_EQ(position_of(2, 3), Position::last);
}

Headers filled(const OpcodeInfo& row, std::mt19937_64& random) {
  Headers headers;
  headers.bth = {.opcode = row.opcode,
                 .solicited = (random() & 1) != 0,
                 .migrated = (random() & 1) != 0,
                 .pad = static_cast<std::uint8_t>(random() & 3),
                 .pkey = static_cast<std::uint16_t>(random()),
                 .fecn = (random() & 1) != 0,
                 .becn = (random() & 1) != 0,
                 .destination = {static_cast<std::uint32_t>(random() & 0xffffff)},
                 .ack_request = (random() & 1) != 0,
                 .psn = Psn(static_cast<std::uint32_t>(random()))};
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  if (row.has(header::kDeth)) headers.deth = Deth{word(), {word() & 0xffffff}};
  if (row.has(header::kXrceth)) headers.xrc_srqn = word() & 0xffffff;
  if (row.has(header::kReth)) headers.reth = Reth{random(), {word()}, word()};
  if (row.has(header::kAtomic)) headers.atomic = AtomicEth{random(), {word()}, random(), random()};
  if (row.has(header::kAeth)) headers.aeth = Aeth{static_cast<std::uint8_t>(random()), word() & 0xffffff};
  if (row.has(header::kAtomicAck)) headers.atomic_ack = random();
  if (row.has(header::kImmediate)) headers.immediate = word();
  if (row.has(header::kInvalidate)) headers.invalidate = Rkey{word()};
  return headers;
}

TEST(Headers, RoundTripOfEveryOpcode) {
  std::mt19937_64 random(1);
  for (int code = 0; code < 256; ++code) {
    const auto* row = find_opcode(static_cast<std::uint8_t>(code));
    if (row == nullptr) continue;
    for (int i = 0; i < 20; ++i) {
      const auto headers = filled(*row, random);
      std::array<std::byte, Headers::kMaxBytes> bytes;
      const auto size = encode(headers, bytes);
      EXPECT_EQ(size, encoded_size(*row));
      const auto back = decode(std::span(bytes).first(size));
      ASSERT_TRUE(back) << row->name;
      EXPECT_EQ(*back, headers) << row->name;
      EXPECT_FALSE(decode(std::span(bytes).first(size - 1)));
    }
  }
}

TEST(Headers, ReservedOpcodeIsRefused) {
  std::array<std::byte, 64> bytes{};
  bytes[0] = std::byte{0x15};
  EXPECT_FALSE(decode(bytes));
}

}  // namespace
}  // namespace rnicsim::roce
