// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of the QP engine: rtl/qp_pkg.sv in C++, field by field.
#pragma once

#include <cstdint>
#include <tuple>

#include "rtl/cosim/bits.h"

namespace rnicsim::rtl {

inline constexpr std::uint32_t kSlots = 256;
inline constexpr std::uint32_t kMessages = 32;        // size of a QP's send window
inline constexpr std::uint32_t kPendingAnswers = 32;  // limit of pending answers of a QP's responder
inline constexpr std::uint32_t kMaxRdAtomic = 16;     // results of atomics kept, READs to be repeated
inline constexpr std::int64_t kTickPs = 1'024'000;

// Saturates: the RTL only needs to know that a payload exceeds any MTU.
constexpr std::uint16_t bytes_of(std::uint32_t payload) {
  return static_cast<std::uint16_t>(payload < 0xffff ? payload : 0xffff);
}
// Index of a message in the window.
constexpr std::uint8_t index_of(std::uint64_t message) { return static_cast<std::uint8_t>(message % kMessages); }
// Full numbers from an index: of a message in the window whose oldest message is `oldest`, and of an answer up to
// `last`.
constexpr std::uint64_t message_of(std::uint64_t oldest, std::uint8_t index) {
  return oldest + (index - oldest) % kMessages;
}
constexpr std::uint64_t answer_of(std::uint64_t last, std::uint8_t index) {
  return last - (last - index) % kPendingAnswers;
}

enum class Control : std::uint8_t { reset, start, update, error, query };

struct SendControl {
  std::uint8_t slot = 0;
  Control kind = Control::reset;
  std::uint32_t psn = 0;
  std::uint8_t mtu = 0;
  std::uint32_t remote_qpn = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t timeout = 0;
  bool draining = false;
};

struct AnswerControl {
  std::uint8_t slot = 0;
  Control kind = Control::reset;
  std::uint32_t psn = 0;
  std::uint8_t mtu = 0;
  std::uint32_t remote_qpn = 0;
  bool allow_write = false;
  bool allow_read = false;
  bool allow_atomic = false;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t max_message = 0;
};

enum class MessageKind : std::uint8_t { nop, send, write, read, fetch_add, compare_swap };

struct Post {
  std::uint8_t slot = 0;
  MessageKind operation = MessageKind::nop;
  std::uint32_t length = 0;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  bool solicited = false;
  bool fence = false;
  std::uint8_t refused = 0;  // roce::Status
};

struct Response {
  std::uint8_t slot = 0;
  std::uint8_t opcode = 0;
  std::uint32_t psn = 0;
  std::uint8_t syndrome = 0;  // of an ACK when the packet has no AETH
  std::uint16_t bytes = 0;
};

struct SendEvent {
  enum class Kind : std::uint8_t { left, failed, placed };
  std::uint8_t slot = 0;
  Kind kind = Kind::left;
  std::uint8_t message = 0;
  std::uint8_t status = 0;
  std::uint8_t count = 0;
  bool has_psn = false;
  std::uint32_t psn = 0;
};

enum class SendOp : std::uint8_t {
  control,
  ack_timeout,
  rnr_timeout,
  event,
  response,
  post,
  packet,
  complete,
  drained
};
enum class Outcome : std::uint8_t { dropped, duplicate, progress, sequence_error, implied_sequence_error, rnr, failed };

struct SendRecord {
  std::uint8_t slot = 0;
  SendOp op = SendOp::control;
  std::uint8_t message = 0;
  Outcome outcome = Outcome::progress;
  bool rewound = false;
  bool place = false;
  std::uint8_t status = 0;
  std::uint8_t opcode = 0;
  std::uint32_t destination = 0;
  std::uint32_t psn = 0;
  std::uint32_t end_psn = 0;
  bool ack_request = false;
  bool solicited = false;
  std::uint32_t offset = 0;
  std::uint16_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint32_t immediate = 0;
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;
  std::uint8_t retries = 0;
  std::uint8_t rnr_retries = 0;
  bool drained = false;
};

struct Request {
  std::uint8_t slot = 0;
  std::uint8_t opcode = 0;
  std::uint32_t psn = 0;
  bool ack_request = false;
  std::uint16_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  bool receive_known = false;
  bool receive_available = false;
  std::uint64_t receive_bytes = 0;  // 33 bits
  bool access_known = false;
  bool access_granted = false;
};

enum class Result : std::uint8_t { ok, access, operation };

struct AnswerEvent {
  enum class Kind : std::uint8_t { left, failed, placed, atomic };
  std::uint8_t slot = 0;
  Kind kind = Kind::left;
  std::uint8_t pending_answer = 0;
  std::uint8_t saved = 0;
  Result result = Result::ok;
  std::uint64_t original = 0;
  std::uint8_t count = 0;
  std::uint32_t psn = 0;
};

enum class AnswerOp : std::uint8_t { control, event, request, packet, complete, failed };
enum class Verdict : std::uint8_t {
  drop,
  busy,
  want_receive,
  want_access,
  acknowledge,
  reject,
  place,
  read,
  atomic,
  replay
};

struct AnswerRecord {
  std::uint8_t slot = 0;
  AnswerOp op = AnswerOp::control;
  Verdict verdict = Verdict::drop;
  bool duplicate = false;
  bool to_receive = false;
  bool begins_receive = false;
  bool completes = false;
  bool completes_receive = false;
  std::uint32_t offset = 0;
  std::uint32_t message_bytes = 0;
  std::uint8_t receive_status = 0;
  bool access_event = false;
  bool request_event = false;
  std::uint8_t pending_answer = 0;
  std::uint8_t saved = 0;
  bool had_cqe = false;
  bool idle = false;
  bool in_place = false;
  bool fatal = false;
  std::uint8_t opcode = 0;
  std::uint32_t destination = 0;
  std::uint32_t psn = 0;
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;
  std::uint64_t address = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;
  std::uint64_t original = 0;
};

// --- Fields in the order of qp_pkg.sv, from the most significant down, with their widths in bits.
template <>
inline constexpr auto kFields<SendControl> = std::tuple(
    field<8>("slot", &SendControl::slot), field<3>("kind", &SendControl::kind), field<24>("psn", &SendControl::psn),
    field<3>("mtu", &SendControl::mtu), field<24>("remote_qpn", &SendControl::remote_qpn),
    field<5>("max_rd_atomic", &SendControl::max_rd_atomic), field<3>("retry_count", &SendControl::retry_count),
    field<3>("rnr_retry", &SendControl::rnr_retry), field<5>("timeout", &SendControl::timeout),
    field<1>("draining", &SendControl::draining));
template <>
inline constexpr auto kFields<AnswerControl> = std::tuple(
    field<8>("slot", &AnswerControl::slot), field<3>("kind", &AnswerControl::kind),
    field<24>("psn", &AnswerControl::psn), field<3>("mtu", &AnswerControl::mtu),
    field<24>("remote_qpn", &AnswerControl::remote_qpn), field<1>("allow_write", &AnswerControl::allow_write),
    field<1>("allow_read", &AnswerControl::allow_read), field<1>("allow_atomic", &AnswerControl::allow_atomic),
    field<5>("max_dest_rd_atomic", &AnswerControl::max_dest_rd_atomic),
    field<5>("min_rnr_timer", &AnswerControl::min_rnr_timer), field<32>("max_message", &AnswerControl::max_message));
template <>
inline constexpr auto kFields<Post> = std::tuple(
    field<8>("slot", &Post::slot), field<3>("operation", &Post::operation), field<32>("length", &Post::length),
    field<64>("remote_address", &Post::remote_address), field<32>("rkey", &Post::rkey),
    field<64>("swap_add", &Post::swap_add), field<64>("compare", &Post::compare),
    field<1>("has_immediate", &Post::has_immediate), field<32>("immediate", &Post::immediate),
    field<1>("solicited", &Post::solicited), field<1>("fence", &Post::fence), field<4>("refused", &Post::refused));
template <>
inline constexpr auto kFields<Response> = std::tuple(field<8>("slot", &Response::slot),
                                                     field<8>("opcode", &Response::opcode),
                                                     field<24>("psn", &Response::psn),
                                                     field<8>("syndrome", &Response::syndrome),
                                                     field<16>("bytes", &Response::bytes));
template <>
inline constexpr auto kFields<SendEvent> = std::tuple(
    field<8>("slot", &SendEvent::slot), field<2>("kind", &SendEvent::kind), field<5>("message", &SendEvent::message),
    field<4>("status", &SendEvent::status), field<6>("count", &SendEvent::count),
    field<1>("has_psn", &SendEvent::has_psn), field<24>("psn", &SendEvent::psn));
template <>
inline constexpr auto kFields<SendRecord> =
    std::tuple(field<8>("slot", &SendRecord::slot), field<4>("op", &SendRecord::op),
               field<5>("message", &SendRecord::message), field<3>("outcome", &SendRecord::outcome),
               field<1>("rewound", &SendRecord::rewound), field<1>("place", &SendRecord::place),
               field<4>("status", &SendRecord::status), field<8>("opcode", &SendRecord::opcode),
               field<24>("destination", &SendRecord::destination), field<24>("psn", &SendRecord::psn),
               field<24>("end_psn", &SendRecord::end_psn), field<1>("ack_request", &SendRecord::ack_request),
               field<1>("solicited", &SendRecord::solicited), field<32>("offset", &SendRecord::offset),
               field<13>("bytes", &SendRecord::bytes), field<64>("address", &SendRecord::address),
               field<32>("rkey", &SendRecord::rkey), field<32>("length", &SendRecord::length),
               field<32>("immediate", &SendRecord::immediate), field<64>("swap_add", &SendRecord::swap_add),
               field<64>("compare", &SendRecord::compare), field<3>("retries", &SendRecord::retries),
               field<3>("rnr_retries", &SendRecord::rnr_retries), field<1>("drained", &SendRecord::drained));
template <>
inline constexpr auto kFields<Request> = std::tuple(
    field<8>("slot", &Request::slot), field<8>("opcode", &Request::opcode), field<24>("psn", &Request::psn),
    field<1>("ack_request", &Request::ack_request), field<16>("bytes", &Request::bytes),
    field<64>("address", &Request::address), field<32>("rkey", &Request::rkey), field<32>("length", &Request::length),
    field<1>("receive_known", &Request::receive_known), field<1>("receive_available", &Request::receive_available),
    field<33>("receive_bytes", &Request::receive_bytes), field<1>("access_known", &Request::access_known),
    field<1>("access_granted", &Request::access_granted));
template <>
inline constexpr auto kFields<AnswerEvent> =
    std::tuple(field<8>("slot", &AnswerEvent::slot), field<2>("kind", &AnswerEvent::kind),
               field<5>("pending", &AnswerEvent::pending_answer), field<4>("saved", &AnswerEvent::saved),
               field<2>("result", &AnswerEvent::result), field<64>("original", &AnswerEvent::original),
               field<6>("count", &AnswerEvent::count), field<24>("psn", &AnswerEvent::psn));
template <>
inline constexpr auto kFields<AnswerRecord> = std::tuple(
    field<8>("slot", &AnswerRecord::slot), field<3>("op", &AnswerRecord::op),
    field<4>("verdict", &AnswerRecord::verdict), field<1>("duplicate", &AnswerRecord::duplicate),
    field<1>("to_receive", &AnswerRecord::to_receive), field<1>("begins_receive", &AnswerRecord::begins_receive),
    field<1>("completes", &AnswerRecord::completes), field<1>("completes_receive", &AnswerRecord::completes_receive),
    field<32>("offset", &AnswerRecord::offset), field<32>("message_bytes", &AnswerRecord::message_bytes),
    field<4>("receive_status", &AnswerRecord::receive_status), field<1>("access_event", &AnswerRecord::access_event),
    field<1>("request_event", &AnswerRecord::request_event), field<5>("pending", &AnswerRecord::pending_answer),
    field<4>("saved", &AnswerRecord::saved), field<1>("had_cqe", &AnswerRecord::had_cqe),
    field<1>("idle", &AnswerRecord::idle), field<1>("in_place", &AnswerRecord::in_place),
    field<1>("fatal", &AnswerRecord::fatal), field<8>("opcode", &AnswerRecord::opcode),
    field<24>("destination", &AnswerRecord::destination), field<24>("psn", &AnswerRecord::psn),
    field<8>("syndrome", &AnswerRecord::syndrome), field<24>("msn", &AnswerRecord::msn),
    field<64>("address", &AnswerRecord::address), field<32>("rkey", &AnswerRecord::rkey),
    field<32>("length", &AnswerRecord::length), field<64>("original", &AnswerRecord::original));

}  // namespace rnicsim::rtl
