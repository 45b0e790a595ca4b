// What both sides have in common: records compared, histories kept and told.
#include "rtl/cosim/lockstep.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

const char* name_of(SendOp op) {
  constexpr const char* kNames[] = {"control", "ack timeout", "rnr timeout", "event", "response",
                                    "post",    "packet",      "complete",    "drained"};
  return kNames[static_cast<int>(op)];
}
const char* name_of(AnswerOp op) {
  constexpr const char* kNames[] = {"control", "event", "request", "packet", "complete", "placement failed"};
  return kNames[static_cast<int>(op)];
}

template <class Record>
std::string text(const Record& record) {
  std::string text = name_of(record.op);
  for_each_field(record, [&](std::string_view name, std::uint64_t value) {
    if (value != 0 && name != "slot" && name != "op") text += fmt::format(" {}={:#x}", name, value);
  });
  return text;
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

}  // namespace

template <class Record>
void Lockstep::compare(History<Record>& history, const Record& rtl, const Record& core, std::uint64_t now) {
  ++compared_;
  if (history.size() == kHistory) history.pop_front();
  history.push_back({now, rtl, core});
  const auto* why = std::exchange(illegal_, nullptr);
  if (why == nullptr && same(rtl, core)) return;
  mismatch_ = fmt::format("lockstep: slot {}, {} at {:.3f} us: {}\n", rtl.slot, name_of(rtl.op),
                          static_cast<double>(now) * kTickPs / 1e6,
                          why != nullptr ? std::string(why) : differences(rtl, core));
  for (const auto& step : history) {
    const auto time = static_cast<double>(step.now) * kTickPs / 1e6;
    mismatch_ += fmt::format("  {:12.3f} us  RTL   {}\n", time, text(step.rtl));
    if (!same(step.rtl, step.core)) mismatch_ += fmt::format("                   core  {}\n", text(step.core));
  }
}

const roce::OpcodeInfo& Lockstep::row_of(std::uint8_t opcode) {
  const auto* row = roce::find_opcode(opcode);
  const bool is_ours = row != nullptr && row->transport == roce::Transport::rc && !row->has(roce::header::kInvalidate);
  return is_ours ? *row : roce::info(roce::Opcode::uc_send_only);
}

void Lockstep::illegal(const char* why) {
  if (illegal_ == nullptr) illegal_ = why;
}

void Lockstep::send(const SendRecord& record, const VerilatedEngine& engine, std::uint64_t now) {
  if (failed()) return;
  auto& side = sends_[record.slot];
  if (!side) side = std::make_unique<SendSide>();
  const auto core = send_core(*side, record, engine, now);
  compare(side->history, record, core, now);
}

void Lockstep::answer(const AnswerRecord& record, const VerilatedEngine& engine, std::uint64_t now) {
  if (failed()) return;
  auto& side = answers_[record.slot];
  if (!side) side = std::make_unique<AnswerSide>();
  const auto core = answer_core(*side, record, engine);
  compare(side->history, record, core, now);
}

void Lockstep::reset() {
  for (auto& side : sends_) side.reset();
  for (auto& side : answers_) side.reset();
}

}  // namespace rnicsim::rtl
