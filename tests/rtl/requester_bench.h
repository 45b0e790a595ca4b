// SPDX-License-Identifier: Apache-2.0
// Inputs for tests of the requester, and accessors for the requester's records.
#pragma once

#include <vector>

#include "tests/rtl/engine_bench.h"

namespace rnicsim::rtl::test {

using roce::Opcode;
using roce::Status;

inline constexpr std::uint8_t kSlot = 7;
inline constexpr std::uint32_t kMtu = 256;

inline Post post(MessageKind kind, std::uint32_t length = 8) {
  return {.slot = kSlot, .operation = kind, .length = length, .remote_address = 0x10000, .rkey = 5};
}
inline Response answer(Opcode opcode, std::uint32_t psn, std::uint16_t bytes = 0, std::uint8_t syndrome = kAck) {
  return {.slot = kSlot, .opcode = code(opcode), .psn = psn, .syndrome = syndrome, .bytes = bytes};
}
inline Response ack(std::uint32_t psn) { return answer(Opcode::acknowledge, psn); }
inline Response nak(std::uint32_t psn, std::uint8_t syndrome) { return answer(Opcode::acknowledge, psn, 0, syndrome); }
inline SendEvent placed(std::uint8_t message, Status status = Status::success) {
  return {
      .slot = kSlot, .kind = SendEvent::Kind::placed, .message = message, .status = static_cast<std::uint8_t>(status)};
}

// Reports each packet of `records` as sent by the port, at once.
inline void leave(Bench& bench, const std::vector<SendRecord>& records) {
  for (const auto& packet : only(records, SendOp::packet))
    bench.push(SendEvent{
        .slot = packet.slot, .kind = SendEvent::Kind::left, .count = 1, .has_psn = true, .psn = packet.end_psn});
}
inline std::vector<SendRecord> follow(Bench& bench, std::vector<SendRecord> records) {
  auto all = records;
  while (!only(records, SendOp::packet).empty()) {
    leave(bench, records);
    bench.settle();
    records = bench.take_sends();
    all.insert(all.end(), records.begin(), records.end());
  }
  return all;
}
template <class... Inputs>
std::vector<SendRecord> carry(Bench& bench, const Inputs&... inputs) {
  return follow(bench, bench.send(inputs...));
}

inline std::vector<std::uint32_t> psns(const std::vector<SendRecord>& records) {
  std::vector<std::uint32_t> psns;
  for (const auto& packet : only(records, SendOp::packet)) psns.push_back(packet.psn);
  return psns;
}
inline std::vector<int> statuses(const std::vector<SendRecord>& records) {
  std::vector<int> statuses;
  for (const auto& done : only(records, SendOp::complete)) statuses.push_back(done.status);
  return statuses;
}
constexpr int status(Status status) { return static_cast<int>(status); }

}  // namespace rnicsim::rtl::test
