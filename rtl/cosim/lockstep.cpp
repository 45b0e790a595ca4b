// SPDX-License-Identifier: Apache-2.0
// Common part of both sides: compares records, keeps histories, reports mismatches.
#include "rtl/cosim/lockstep.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

const char* name_of(SendOp op) {
  constexpr const char* kNames[] = {"control", "ack timeout", "rnr timeout", "event",  "response",
                                    "post",    "packet",      "complete",    "drained"};
  return kNames[static_cast<int>(op)];
}
const char* name_of(AnswerOp op) {
  constexpr const char* kNames[] = {"control", "event", "request", "packet", "complete", "placement failed"};
  return kNames[static_cast<int>(op)];
}

// Text of the fields that differ from their defaults.
template <class Transaction>
std::string fields(const Transaction& transaction) {
  std::vector<std::uint64_t> usual;
  for_each_field(Transaction{}, [&](const char*, std::uint64_t value) { usual.push_back(value); });
  std::string text;
  std::size_t at = 0;
  for_each_field(transaction, [&](std::string_view name, std::uint64_t value) {
    if (value != usual[at++] && name != "slot" && name != "op") text += fmt::format(" {}={:#x}", name, value);
  });
  return text;
}

template <class Record>
std::string text(const Record& record) {
  return name_of(record.op) + fields(record);
}

template <class Record>
std::string differences(const Record& rtl, const Record& core) {
  std::vector<std::uint64_t> values;
  for_each_field(core, [&](const char*, std::uint64_t value) { values.push_back(value); });
  std::string text;
  std::size_t at = 0;
  for_each_field(rtl, [&](const char* name, std::uint64_t value) {
    const auto other = values[at++];
    if (value != other) text += fmt::format(" {}: RTL {:#x}, core {:#x};", name, value, other);
  });
  return text;
}

double us(std::uint64_t ticks) { return static_cast<double>(ticks) * kTickPs / 1e6; }

}  // namespace

template <class One>
void Lockstep::compare(std::deque<One>& history, One&& last) {
  const auto* why = std::exchange(illegal_, nullptr);
  const bool agree = why == nullptr && same(last.rtl, last.core);
  if (history.size() == kHistory) history.pop_front();
  history.push_back(std::move(last));
  if (agree) return;
  const auto& [now, input, rtl, core] = history.back();
  mismatch_ = fmt::format("lockstep: slot {}, {} at {:.3f} us: {}\n", rtl.slot, name_of(rtl.op), us(now),
                          why != nullptr ? std::string(why) : differences(rtl, core));
  for (const auto& step : history) {
    const auto in = std::visit(
        []<class Input>(const Input& one) {
          if constexpr (std::is_same_v<Input, std::monostate>)
            return std::string();
          else
            return fields(one);
        },
        step.input);
    if (!in.empty()) mismatch_ += fmt::format("  {:14} in   {}\n", "", in);
    mismatch_ += fmt::format("  {:11.3f} us RTL  {}\n", us(step.now), text(step.rtl));
    if (!same(step.rtl, step.core)) mismatch_ += fmt::format("  {:14} core {}\n", "", text(step.core));
  }
}

const roce::OpcodeInfo& Lockstep::row_of(std::uint8_t opcode) {
  const auto* row = roce::find_opcode(opcode);
  const bool is_ours = row != nullptr && row->transport == roce::Transport::rc &&
                       row->operation != roce::Operation::atomic_write && !row->has(roce::header::kInvalidate);
  return is_ours ? *row : roce::info(roce::Opcode::uc_send_only);
}

void Lockstep::illegal(const char* why) {
  if (illegal_ == nullptr) illegal_ = why;
}

void Lockstep::send(const SendRecord& record, const VerilatedEngine& engine, std::uint64_t now) {
  if (failed()) return;
  now_ = now;
  auto& [sends, answers, before, answers_before] = slots_[record.slot];
  if (!sends) sends = std::make_unique<SendSide>(record.slot, actions());
  SendStep::Input input;
  if (record.op == SendOp::control) input = engine.input<SendControl>();
  if (record.op == SendOp::post) input = engine.input<Post>();
  if (record.op == SendOp::response) input = engine.input<Response>();
  if (record.op == SendOp::event) input = engine.input<SendEvent>();
  const auto core = send_core(*sends, record, engine);
  compare(before, SendStep{now, std::move(input), record, core});
}

void Lockstep::answer(const AnswerRecord& record, const VerilatedEngine& engine, std::uint64_t now) {
  if (failed()) return;
  now_ = now;
  auto& [sends, answers, sends_before, before] = slots_[record.slot];
  if (!answers) answers = std::make_unique<AnswerSide>(record.slot, actions());
  AnswerStep::Input input;
  if (record.op == AnswerOp::control) input = engine.input<AnswerControl>();
  if (record.op == AnswerOp::request) input = engine.input<Request>();
  if (record.op == AnswerOp::event || record.in_place) input = engine.input<AnswerEvent>();
  const auto core = answer_core(*answers, record, engine);
  compare(before, AnswerStep{now, std::move(input), record, core});
}

void Lockstep::reset() {
  for (auto& slot : slots_) slot = {};
}

}  // namespace rnicsim::rtl
