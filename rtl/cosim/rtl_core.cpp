// SPDX-License-Identifier: Apache-2.0
#include "rtl/cosim/rtl_core.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/base/kernel.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::rtl {
namespace {

constexpr std::uint32_t kFirstQpn = 64;  // first QPN that a kernel assigns

std::uint64_t ticks_of(Duration at) { return static_cast<std::uint64_t>(at.ps / kTickPs); }

std::uint8_t mtu_code(std::uint32_t bytes) {
  constexpr std::uint32_t kLeast = 256;
  return static_cast<std::uint8_t>(std::bit_width(bytes / kLeast));
}

SendControl send_control(roce::Slot slot, Control kind, const roce::SendAttributes& attributes, bool draining) {
  return {.slot = static_cast<std::uint8_t>(slot),
          .kind = kind,
          .mtu = mtu_code(attributes.mtu),
          .remote_qpn = attributes.remote.value,
          .max_rd_atomic = attributes.max_rd_atomic,
          .retry_count = attributes.retry_count,
          .rnr_retry = attributes.rnr_retry,
          .timeout = attributes.timeout,
          .draining = draining};
}

AnswerControl answer_control(roce::Slot slot, Control kind, const roce::ResponderAttributes& attributes) {
  const auto granted = [&](std::uint32_t access) { return (attributes.access & access) != 0; };
  return {.slot = static_cast<std::uint8_t>(slot),
          .kind = kind,
          .mtu = mtu_code(attributes.mtu),
          .remote_qpn = attributes.remote.value,
          .allow_write = granted(roce::remote_access::kWrite),
          .allow_read = granted(roce::remote_access::kRead),
          .allow_atomic = granted(roce::remote_access::kAtomic),
          .max_dest_rd_atomic = attributes.max_dest_rd_atomic,
          .min_rnr_timer = attributes.min_rnr_timer,
          .max_message = attributes.max_message};
}

}  // namespace

std::unique_ptr<nic::QpEngine> make_rtl_engine(const nic::QpLimits& limits, const RtlOptions& options) {
  return nic::make_engine(limits, std::make_unique<RtlCore>(options));
}

void limit_to_rtl(nic::CapabilityParams& capabilities) {
  capabilities.max_qp = std::min(capabilities.max_qp, kFirstQpn + kSlots);
  capabilities.max_rd_atomic = std::min(capabilities.max_rd_atomic, kMaxRdAtomic);
  capabilities.invalidate = capabilities.windows = capabilities.uc = capabilities.ud = capabilities.srq = false;
  capabilities.max_multicast_groups = 0;
  capabilities.fast_register = false;
  capabilities.raw = capabilities.xrc = capabilities.atomic_write = false;
  capabilities.on_demand = false;
}

RtlCore::RtlCore(const RtlOptions& options)
    : options_(options), rtl_({.checked = options.lockstep, .waves = options.waves}) {
  if (options.lockstep) reference_model_ = std::make_unique<Lockstep>();
}

void RtlCore::forget_all() {
  rtl_.reset();
  if (reference_model_) reference_model_->reset();
  queues_.clear();
  clock_.disarm();
  qps_ = {};
  asked_of_sends_.clear();
  asked_of_answers_.clear();
}

// --- Clock. It runs while there is work; the next edge is always after the present time.
template <class Input>
void RtlCore::feed(const Input& input) {
  queues_.push(input);
  arm_clock();
}
template void RtlCore::feed(const Post&);
template void RtlCore::feed(const Response&);
template void RtlCore::feed(const SendEvent&);
template void RtlCore::feed(const Request&);
template void RtlCore::feed(const AnswerEvent&);

void RtlCore::arm_clock() {
  const auto period = options_.clock.ps;
  clock_.arm_by({(now().ps / period + 1) * period});
}

void RtlCore::cycle() {
  queues_.offer(rtl_);
  const auto time = ticks_of(now());
  rtl_.set_time(static_cast<std::uint64_t>(now().ps));
  const auto& outputs = rtl_.begin_cycle(time);
  if (reference_model_ && !reference_model_->failed()) {
    if (outputs.send) reference_model_->send(*outputs.send, rtl_, time);
    if (outputs.answer) reference_model_->answer(*outputs.answer, rtl_, time);
    if (rtl_.failures() != 0) reference_model_->complain("an assertion of the RTL failed: stderr has its message");
    if (reference_model_->failed() && options_.mismatch) options_.mismatch(reference_model_->mismatch());
  }
  if (outputs.send || outputs.answer) {
    actions_->begin_step();
    if (outputs.send) take(*outputs.send);
    if (outputs.answer) take(*outputs.answer);
    actions_->end_step();
  }
  rtl_.end_cycle();
  if (rtl_.busy() || rtl_.offering() || !queues_.empty()) return arm_clock();
  const auto wake = rtl_.wake();
  if (!wake) return;
  const auto period = options_.clock.ps;
  const auto edge = (static_cast<std::int64_t>(*wake) * kTickPs + period - 1) / period * period;
  clock_.arm_by({std::max(edge, (now().ps / period + 1) * period)});
}

// --- Queue pairs from open to close.
std::optional<roce::Slot> RtlCore::open(roce::Transport) {
  const auto free = std::ranges::find_if(qps_, [](const Qp& qp) { return !qp.taken(); });
  if (free == qps_.end()) return std::nullopt;
  free->open = true;
  const auto slot = static_cast<roce::Slot>(free - qps_.begin());
  reset(slot);
  return slot;
}

void RtlCore::reset(roce::Slot slot) {
  auto& qp = qps_[slot];
  qp.life = {};
  qp.life.number = ++lives_;
  ++qp.send_void;
  ++qp.answer_void;
  feed(SendControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::reset});
  feed(AnswerControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::reset});
}

void RtlCore::start_answers(roce::Slot slot, const roce::ResponderAttributes& attributes, roce::Psn expected) {
  auto control = answer_control(slot, Control::start, attributes);
  control.psn = expected.value();
  feed(control);
}

void RtlCore::update_answers(roce::Slot slot, const roce::ResponderAttributes& attributes) {
  feed(answer_control(slot, Control::update, attributes));
}

void RtlCore::start_sends(roce::Slot slot, const roce::SendAttributes& attributes, roce::Psn first) {
  auto control = send_control(slot, Control::start, attributes, false);
  control.psn = first.value();
  feed(control);
  qps_[slot].life.sending = true;
}

void RtlCore::update_sends(roce::Slot slot, const roce::SendAttributes& attributes, bool draining) {
  feed(send_control(slot, Control::update, attributes, draining));
}

void RtlCore::fail(roce::Slot slot) {
  feed(SendControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::error});
  feed(AnswerControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::error});
  ++qps_[slot].answer_void;
  auto& life = qps_[slot].life;
  life.sending = life.judging = false;
  life.request_packets.clear();
  life.answer_packets.clear();
}

void RtlCore::query(roce::Slot slot) {
  const auto query = std::make_shared<Query>();
  query->slot = slot;
  query->life = qps_[slot].life.number;
  asked_of_sends_.push_back(std::shared_ptr(query));
  asked_of_answers_.push_back(std::shared_ptr(query));
  feed(SendControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::query});
  feed(AnswerControl{.slot = static_cast<std::uint8_t>(slot), .kind = Control::query});
}

template <class Record>
void RtlCore::answered(Fifo<std::shared_ptr<Query>>& asked, Record Query::*part, const Record& record) {
  const auto query = std::move(asked.front());
  asked.pop_front();
  (*query).*part = record;
  const auto& qp = qps_[query->slot];
  if (++query->parts < 2 || !qp.open || qp.life.number != query->life) return;
  const auto& [slot, life, send, answer, parts] = *query;
  actions_->told(slot, {.oldest_unanswered = roce::Psn(send.psn),
                        .unsent = roce::Psn(send.end_psn),
                        .expected = roce::Psn(answer.psn),
                        .msn = answer.msn,
                        .retries_left = send.retries,
                        .rnr_retries_left = send.rnr_retries,
                        .drained = send.drained,
                        .idle = answer.idle});
}
template void RtlCore::answered(Fifo<std::shared_ptr<Query>>&, SendRecord Query::*, const SendRecord&);
template void RtlCore::answered(Fifo<std::shared_ptr<Query>>&, AnswerRecord Query::*, const AnswerRecord&);

bool RtlCore::in_use(roce::Slot slot) const {
  const auto& life = qps_[slot].life;
  return life.posted != life.retired || !life.posts.empty() || !life.request_packets.empty() || life.responses != 0 ||
         life.judging || !life.answer_packets.empty();
}

std::string RtlCore::describe(roce::Slot slot) const {
  const auto& life = qps_[slot].life;
  return "slot " + std::to_string(slot) + ", " + std::to_string(life.posted - life.retired) + " in the window";
}

}  // namespace rnicsim::rtl
