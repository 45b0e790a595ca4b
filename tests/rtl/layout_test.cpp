// SPDX-License-Identifier: Apache-2.0
// The engine's package (rtl/qp_pkg.sv) and its C++ side (rtl/cosim/transactions.h, model/roce) have the same layout.
#include <Vlayout_probe.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "model/roce/headers.h"
#include "model/roce/send_window.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl::test {
namespace {

using roce::Aeth;
using roce::Status;
using Bits = std::array<std::uint32_t, 16>;

// Text in a vector: the last character is the least significant byte.
template <class Words>
std::string text_of(const Words& words) {
  std::string text;
  for (int byte = 31; byte >= 0; --byte)
    if (const auto character = static_cast<char>(words[byte / 4] >> byte % 4 * 8)) text += character;
  return text;
}

template <class... Transactions>
struct List {};
using All = List<SendControl, AnswerControl, Post, Response, SendEvent, SendRecord, Request, AnswerEvent, AnswerRecord>;

template <class Transaction>
void expect_same(Vlayout_probe& probe, std::uint8_t number) {
  SCOPED_TRACE("struct " + std::to_string(number));
  probe.struct_i = number;
  std::uint8_t index = 0;
  const auto one = [&]<unsigned kWidth, class Value>(const Field<kWidth, Transaction, Value>& field) {
    probe.field_i = index++;
    probe.eval();
    EXPECT_EQ(text_of(probe.field_name_o), field.name);
    EXPECT_EQ(probe.width_o, width_of<Transaction>());
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - kWidth);
    Transaction from;
    from.*field.member = static_cast<Value>(ones);
    if constexpr (!std::is_same_v<Value, bool>) {
      EXPECT_GE(sizeof(Value) * 8, kWidth) << field.name;
    }
    // All other fields are set to zero, whatever their defaults.
    Bits bits{}, zeros{};
    pack(from, bits.data());
    Transaction plain;
    plain.*field.member = Value{};
    pack(plain, zeros.data());
    for (std::size_t word = 0; word < bits.size(); ++word)
      EXPECT_EQ(bits[word] ^ zeros[word], probe.bits_o[static_cast<int>(word)]) << field.name << ", word " << word;
    std::ranges::copy_n(&probe.bits_o[0], static_cast<std::ptrdiff_t>(bits.size()), bits.begin());
    Transaction to;
    unpack(bits.data(), to);
    for_each_field(to, [&](std::string_view name, std::uint64_t value) {
      EXPECT_EQ(value, name == field.name ? ones : 0) << name << " by " << field.name;
    });
  };
  std::apply([&](const auto&... fields) { (one(fields), ...); }, kFields<Transaction>);
  probe.field_i = index;
  probe.eval();
  EXPECT_EQ(text_of(probe.field_name_o), "") << "it has more fields";
}

TEST(Layout, FieldsAreWhereTheyAreInTheRtl) {
  Vlayout_probe probe;
  std::uint8_t number = 0;
  [&]<class... Transactions>(List<Transactions...>) { (expect_same<Transactions>(probe, number++), ...); }(All{});
  probe.struct_i = number;
  probe.field_i = 0;
  probe.eval();
  EXPECT_EQ(probe.width_o, 0u) << "there are more structs";
}

template <class Enum>
constexpr std::uint32_t number(Enum value) {
  return static_cast<std::uint32_t>(value);
}

TEST(Layout, ValuesAreThoseOfTheRtl) {
  const std::map<std::string, std::uint32_t> expected{
      {"MessageNop", number(MessageKind::nop)},
      {"MessageSend", number(MessageKind::send)},
      {"MessageWrite", number(MessageKind::write)},
      {"MessageRead", number(MessageKind::read)},
      {"MessageFetchAdd", number(MessageKind::fetch_add)},
      {"MessageCompareSwap", number(MessageKind::compare_swap)},
      {"ControlReset", number(Control::reset)},
      {"ControlStart", number(Control::start)},
      {"ControlUpdate", number(Control::update)},
      {"ControlError", number(Control::error)},
      {"ControlQuery", number(Control::query)},
      {"SendLeft", number(SendEvent::Kind::left)},
      {"SendFailed", number(SendEvent::Kind::failed)},
      {"SendPlaced", number(SendEvent::Kind::placed)},
      {"SendOpControl", number(SendOp::control)},
      {"SendOpAckTimeout", number(SendOp::ack_timeout)},
      {"SendOpRnrTimeout", number(SendOp::rnr_timeout)},
      {"SendOpEvent", number(SendOp::event)},
      {"SendOpResponse", number(SendOp::response)},
      {"SendOpPost", number(SendOp::post)},
      {"SendOpPacket", number(SendOp::packet)},
      {"SendOpComplete", number(SendOp::complete)},
      {"SendOpDrained", number(SendOp::drained)},
      {"OutcomeDropped", number(Outcome::dropped)},
      {"OutcomeDuplicate", number(Outcome::duplicate)},
      {"OutcomeProgress", number(Outcome::progress)},
      {"OutcomeSequenceError", number(Outcome::sequence_error)},
      {"OutcomeImpliedSequenceError", number(Outcome::implied_sequence_error)},
      {"OutcomeRnr", number(Outcome::rnr)},
      {"OutcomeFailed", number(Outcome::failed)},
      {"AnswerLeft", number(AnswerEvent::Kind::left)},
      {"AnswerFailed", number(AnswerEvent::Kind::failed)},
      {"AnswerPlaced", number(AnswerEvent::Kind::placed)},
      {"AnswerAtomic", number(AnswerEvent::Kind::atomic)},
      {"ResultOk", number(Result::ok)},
      {"ResultAccess", number(Result::access)},
      {"ResultOperation", number(Result::operation)},
      {"AnswerOpControl", number(AnswerOp::control)},
      {"AnswerOpEvent", number(AnswerOp::event)},
      {"AnswerOpRequest", number(AnswerOp::request)},
      {"AnswerOpPacket", number(AnswerOp::packet)},
      {"AnswerOpComplete", number(AnswerOp::complete)},
      {"AnswerOpFailed", number(AnswerOp::failed)},
      {"VerdictDrop", number(Verdict::drop)},
      {"VerdictBusy", number(Verdict::busy)},
      {"VerdictWantReceive", number(Verdict::want_receive)},
      {"VerdictWantAccess", number(Verdict::want_access)},
      {"VerdictAcknowledge", number(Verdict::acknowledge)},
      {"VerdictReject", number(Verdict::reject)},
      {"VerdictPlace", number(Verdict::place)},
      {"VerdictRead", number(Verdict::read)},
      {"VerdictAtomic", number(Verdict::atomic)},
      {"VerdictReplay", number(Verdict::replay)},
      {"StatusSuccess", number(Status::success)},
      {"StatusLocalLengthError", number(Status::local_length_error)},
      {"StatusLocalQpOperationError", number(Status::local_qp_operation_error)},
      {"StatusFlushedError", number(Status::flushed_error)},
      {"StatusBadResponseError", number(Status::bad_response_error)},
      {"StatusLocalAccessError", number(Status::local_access_error)},
      {"StatusRemoteInvalidRequestError", number(Status::remote_invalid_request_error)},
      {"StatusRemoteAccessError", number(Status::remote_access_error)},
      {"StatusRemoteOperationError", number(Status::remote_operation_error)},
      {"StatusTransportRetryExceeded", number(Status::transport_retry_exceeded)},
      {"StatusRnrRetryExceeded", number(Status::rnr_retry_exceeded)},
      {"ClassAck", Aeth::kAck >> 5},
      {"ClassRnrNak", Aeth::kRnrNak >> 5},
      {"ClassNak", Aeth::kNak >> 5},
      {"SyndromeAck", Aeth::kAck | Aeth::kNoCredits},
      {"SyndromeSequenceError", Aeth::kSequenceError},
      {"SyndromeInvalidRequest", Aeth::kInvalidRequest},
      {"SyndromeRemoteAccessError", Aeth::kRemoteAccessError},
      {"SyndromeRemoteOperationError", Aeth::kRemoteOperationError},
      {"SlotWidth", 8},
      {"MessageWidth", 5},
      {"AnswerWidth", 5},
      {"SavedWidth", 4},
      {"TickWidth", 36},
      {"MaxAhead", 32},
      {"MaxPsns", roce::SendWindow::kMostPsns},
  };
  EXPECT_EQ(kSlots, 1u << expected.at("SlotWidth"));
  EXPECT_EQ(kMessages, 1u << expected.at("MessageWidth"));
  EXPECT_EQ(kPendingAnswers, 1u << expected.at("AnswerWidth"));
  EXPECT_EQ(kMaxRdAtomic, 1u << expected.at("SavedWidth"));
  Vlayout_probe probe;
  std::size_t met = 0;
  for (;; ++met) {
    probe.value_i = static_cast<std::uint8_t>(met);
    probe.eval();
    const auto name = text_of(probe.value_name_o);
    if (name.empty()) break;
    const auto found = expected.find(name);
    ASSERT_NE(found, expected.end()) << name << " is not known here";
    EXPECT_EQ(probe.value_o, found->second) << name;
  }
  EXPECT_EQ(met, expected.size());
}

}  // namespace
}  // namespace rnicsim::rtl::test
