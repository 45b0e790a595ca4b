// SPDX-License-Identifier: Apache-2.0
// The send side: posts into the RTL's window, packets from the RTL, responses, completions.
#include <utility>

#include "rtl/cosim/rtl_core.h"

namespace rnicsim::rtl {
namespace {

MessageKind as_kind(roce::SendOperation operation) {
  switch (operation) {
    case roce::SendOperation::send: return MessageKind::send;
    case roce::SendOperation::write: return MessageKind::write;
    case roce::SendOperation::read: return MessageKind::read;
    case roce::SendOperation::fetch_add: return MessageKind::fetch_add;
    case roce::SendOperation::compare_swap: return MessageKind::compare_swap;
    default: return MessageKind::nop;
  }
}

Post post_of(roce::Slot slot, const roce::SendRequest& request) {
  return {.slot = static_cast<std::uint8_t>(slot),
          .operation = as_kind(request.operation),
          .length = request.length,
          .remote_address = request.remote_address,
          .rkey = request.rkey.value,
          .swap_add = request.swap_add,
          .compare = request.compare,
          .has_immediate = request.immediate.has_value(),
          .immediate = request.immediate.value_or(0),
          .solicited = request.solicited,
          .fence = request.fence,
          .refused = static_cast<std::uint8_t>(request.refused.value_or(roce::Status::success))};
}

SendEvent event(roce::Slot slot, SendEvent::Kind kind) {
  return {.slot = static_cast<std::uint8_t>(slot), .kind = kind};
}

}  // namespace

std::size_t RtlCore::post_room(roce::Slot slot) const {
  const auto& life = qps_[slot].life;
  return life.posts.empty() ? kMessages - (life.posted - life.retired) : 0;
}

void RtlCore::post(roce::Slot slot, const roce::SendRequest& request) {
  auto& life = qps_[slot].life;
  if (post_room(slot) == 0) return void(life.posts.push_back(post_of(slot, request)));
  ++life.posted;
  feed(post_of(slot, request));
}

// Skips retransmitted packets whose message was answered in the meantime.
std::optional<std::uint64_t> RtlCore::next_send(roce::Slot slot) {
  const auto& life = qps_[slot].life;
  auto& packets = qps_[slot].life.request_packets;
  for (; !packets.empty() && packets.front().message < life.retired; packets.pop_front()) dropped(slot, 1);
  return packets.empty() ? std::nullopt : std::optional(packets.front().message);
}

roce::SentRequest RtlCore::send(roce::Slot slot, roce::Headers& headers) {
  auto& packets = qps_[slot].life.request_packets;
  const auto [record, message] = packets.front();
  packets.pop_front();
  const auto& row = roce::info(static_cast<roce::Opcode>(record.opcode));
  headers.bth.opcode = row.opcode;
  headers.bth.destination = {record.destination};
  headers.bth.psn = roce::Psn(record.psn);
  headers.bth.ack_request = record.ack_request;
  headers.bth.solicited = record.solicited;
  headers.bth.pad = static_cast<std::uint8_t>(-record.bytes & 3);
  if (row.has(roce::header::kReth)) headers.reth = roce::Reth{record.address, {record.rkey}, record.length};
  if (row.has(roce::header::kAtomic))
    headers.atomic = roce::AtomicEth{record.address, {record.rkey}, record.swap_add, record.compare};
  if (row.has(roce::header::kImmediate)) headers.immediate = record.immediate;
  return {.operation = row.operation,
          .begins = row.begins(),
          .message = message,
          .offset = record.offset,
          .payload = record.bytes,
          .end = roce::Psn(record.end_psn)};
}

void RtlCore::left(roce::Slot slot, bool is_request, roce::Psn end) {
  if (!is_request)
    return feed(AnswerEvent{.slot = static_cast<std::uint8_t>(slot), .kind = AnswerEvent::Kind::left, .count = 1});
  auto left = event(slot, SendEvent::Kind::left);
  left.count = 1;
  left.has_psn = true;
  left.psn = end.value();
  feed(left);
}

void RtlCore::dropped(roce::Slot slot, std::uint32_t packets) {
  if (packets == 0) return;
  auto left = event(slot, SendEvent::Kind::left);
  left.count = static_cast<std::uint8_t>(packets);
  feed(left);
}

void RtlCore::dropped_requests(roce::Slot slot, std::uint32_t packets) {
  auto& waiting = qps_[slot].life.request_packets;
  dropped(slot, packets + static_cast<std::uint32_t>(waiting.size()));
  waiting.clear();
}

void RtlCore::unreadable(roce::Slot slot, std::uint64_t message, roce::Status status, std::uint32_t packets) {
  if (message >= qps_[slot].life.retired) {
    auto failed = event(slot, SendEvent::Kind::failed);
    failed.message = index_of(message);
    failed.status = static_cast<std::uint8_t>(status);
    feed(failed);
  }
  dropped_requests(slot, packets);
}

void RtlCore::response(roce::Slot slot, const roce::Headers& headers, std::uint32_t payload) {
  ++qps_[slot].life.responses;
  feed(Response{.slot = static_cast<std::uint8_t>(slot),
                .opcode = static_cast<std::uint8_t>(headers.bth.opcode),
                .psn = headers.bth.psn.value(),
                .syndrome = headers.aeth ? headers.aeth->syndrome : roce::Aeth::kNoCredits,
                .bytes = bytes_of(payload)});
}

void RtlCore::response_placed(roce::Slot slot, std::uint64_t message, roce::Status status) {
  auto placed = event(slot, SendEvent::Kind::placed);
  placed.message = index_of(message);
  placed.status = static_cast<std::uint8_t>(status);
  feed(placed);
}

void RtlCore::take(const SendRecord& record) {
  const roce::Slot slot = record.slot;
  auto& qp = qps_[slot];
  if (record.op == SendOp::control) {
    const auto kind = rtl_.input<SendControl>().kind;
    if (kind == Control::reset) --qp.send_void;
    if (kind == Control::query) answered(asked_of_sends_, &Query::send, record);
    return;
  }
  if (record.op != SendOp::complete)
    placed_last_ = record.op == SendOp::event && rtl_.input<SendEvent>().kind == SendEvent::Kind::placed;
  if (!qp.open || qp.send_void != 0) return;
  auto& life = qp.life;
  switch (record.op) {
    case SendOp::ack_timeout: actions_->ack_timed_out(slot, record.rewound); break;
    case SendOp::response: {
      --life.responses;
      roce::ResponseOutcome outcome{
          .kind = static_cast<roce::ResponseOutcome::Kind>(record.outcome), .rewound = record.rewound, .placement = {}};
      if (record.place) outcome.placement = {message_of(life.retired, record.message), record.offset, {}};
      actions_->responded(slot, outcome, roce::Psn(record.end_psn));
      break;
    }
    case SendOp::post: {
      const roce::Psn first(record.psn);
      const auto packets = static_cast<std::uint32_t>(distance(first, roce::Psn(record.end_psn)));
      actions_->posted(slot, message_of(life.retired, record.message), first, packets);
      break;
    }
    case SendOp::packet:
      if (life.sending) life.request_packets.push_back({record, message_of(life.retired, record.message)});
      break;
    case SendOp::complete: complete(slot, life, record); break;
    case SendOp::drained: actions_->drained(slot); break;
    default: break;
  }
  actions_->moved(slot, false);
}

void RtlCore::complete(roce::Slot slot, Life& life, const SendRecord& record) {
  const auto status = static_cast<roce::Status>(record.status);
  actions_->completed(slot, life.retired++, status, std::exchange(placed_last_, false));
  for (; !life.posts.empty() && life.posted - life.retired < kMessages; life.posts.pop_front()) {
    ++life.posted;
    feed(life.posts.front());
  }
}

}  // namespace rnicsim::rtl
