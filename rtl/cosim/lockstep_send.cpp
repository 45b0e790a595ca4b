// SPDX-License-Identifier: Apache-2.0
// Referee for the send side: posts, packets, responses, timeouts, completions.
#include <utility>

#include "model/roce/timers.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

std::uint64_t ticks(Duration duration) { return static_cast<std::uint64_t>((duration.ps + kTickPs - 1) / kTickPs); }

roce::SendOperation operation_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::nop: return roce::SendOperation::nop;
    case MessageKind::send: return roce::SendOperation::send;
    case MessageKind::write: return roce::SendOperation::write;
    case MessageKind::read: return roce::SendOperation::read;
    case MessageKind::fetch_add: return roce::SendOperation::fetch_add;
    case MessageKind::compare_swap: return roce::SendOperation::compare_swap;
  }
  return roce::SendOperation::nop;
}

}  // namespace

SendRecord Lockstep::send_core(SendSide& side, const SendRecord& rtl, const VerilatedEngine& engine) {
  const bool begins = rtl.op != SendOp::complete && rtl.op != SendOp::drained;
  if (begins && !side.to_come.empty())
    illegal(side.to_come.front().op == SendOp::drained ? "the send queue was drained without a report"
                                                       : "the oldest message was done, and not completed");
  switch (rtl.op) {
    case SendOp::control: return control(side, rtl, engine.input<SendControl>());
    case SendOp::post: return post(side, rtl, engine.input<Post>());
    case SendOp::packet: return packet(side, rtl);
    case SendOp::response: return response(side, rtl, engine.input<Response>());
    case SendOp::event: return event(side, rtl, engine.input<SendEvent>());
    case SendOp::rnr_timeout:
    case SendOp::ack_timeout: return timeout(side, rtl);
    case SendOp::complete:
    case SendOp::drained: return next_of(side, rtl);
  }
  return rtl;
}

SendRecord Lockstep::control(SendSide& side, SendRecord core, const SendControl& control) {
  const roce::SendAttributes attributes{.remote = {control.remote_qpn},
                                        .mtu = roce::mtu_bytes(control.mtu),
                                        .max_rd_atomic = control.max_rd_atomic,
                                        .retry_count = control.retry_count,
                                        .rnr_retry = control.rnr_retry,
                                        .timeout = control.timeout};
  if (side.alive) {
    const auto& window = side.core.window();
    core.psn = window.oldest_psn().value();
    core.end_psn = window.unsent_psn.value();
    core.retries = window.retries_left;
    core.rnr_retries = window.rnr_retries_left;
    core.drained = side.core.drained();
  }
  switch (control.kind) {
    case Control::reset: slots_[core.slot].sends = std::make_unique<SendSide>(core.slot, actions()); break;
    case Control::start:
      side.core.start(attributes, roce::Psn(control.psn));
      side.alive = true;
      [[fallthrough]];
    case Control::update:
      if (!side.failing) side.core.update(attributes, control.draining);
      break;
    case Control::error:
      side.failing = true;
      side.core.fail();
      break;
    case Control::query: break;
  }
  return core;
}

SendRecord Lockstep::post(SendSide& side, SendRecord core, const Post& post) {
  roce::SendRequest request{.id = side.posted++,
                            .operation = operation_of(post.operation),
                            .length = post.length,
                            .remote_address = post.remote_address,
                            .rkey = {post.rkey},
                            .swap_add = post.swap_add,
                            .compare = post.compare,
                            .immediate = {},
                            .invalidate = {},
                            .solicited = post.solicited,
                            .fence = post.fence,
                            .refused = {}};
  if (post.has_immediate) request.immediate = post.immediate;
  if (post.refused != 0) request.refused = static_cast<roce::Status>(post.refused);
  if (side.posted - side.retired > kMessages) illegal("more messages than the window holds");
  side.core.post(request);
  side.core.settle();
  core.message = index_of(request.id);
  core.psn = told_.psn;
  core.end_psn = told_.end_psn;
  return core;
}

void Lockstep::posted(roce::Slot, std::uint64_t, roce::Psn first, std::uint32_t packets) {
  told_.psn = first.value();
  told_.end_psn = (first + packets).value();
}

SendRecord Lockstep::packet(SendSide& side, SendRecord core) {
  if (!side.core.next()) {
    illegal("nothing may be sent now");
    return core;
  }
  roce::Headers headers;
  const auto packet = side.core.send(headers);
  core.message = index_of(packet.message);
  core.opcode = static_cast<std::uint8_t>(headers.bth.opcode);
  core.destination = headers.bth.destination.value;
  core.psn = headers.bth.psn.value();
  core.end_psn = packet.end.value();
  core.ack_request = headers.bth.ack_request;
  core.solicited = headers.bth.solicited;
  core.offset = packet.offset;
  core.bytes = static_cast<std::uint16_t>(packet.payload);
  if (headers.reth) {
    core.address = headers.reth->address;
    core.rkey = headers.reth->rkey.value;
    core.length = headers.reth->length;
  }
  if (headers.atomic) {
    core.address = headers.atomic->address;
    core.rkey = headers.atomic->rkey.value;
    core.swap_add = headers.atomic->swap_add;
    core.compare = headers.atomic->compare;
  }
  if (headers.immediate) core.immediate = *headers.immediate;
  return core;
}

SendRecord Lockstep::response(SendSide& side, SendRecord core, const Response& response) {
  const auto& row = row_of(response.opcode);
  if (!side.alive || side.failing) {
    core.outcome = Outcome::dropped;
    return core;
  }
  roce::Headers headers;
  headers.bth.opcode = row.opcode;
  headers.bth.psn = roce::Psn(response.psn);
  if (row.has(roce::header::kAeth)) headers.aeth = roce::Aeth{response.syndrome, 0};
  if (row.has(roce::header::kAtomicAck)) headers.atomic_ack = 0;
  told_.message = core.message;
  told_.offset = core.offset;
  side.core.response(headers, response.bytes);
  core.outcome = told_.outcome;
  core.rewound = told_.rewound;
  core.place = told_.place;
  core.message = told_.message;
  core.offset = told_.offset;
  core.end_psn = told_.end_psn;
  return core;
}

void Lockstep::responded(roce::Slot, const roce::ResponseOutcome& outcome, roce::Psn oldest) {
  told_.outcome = static_cast<Outcome>(outcome.kind);
  told_.rewound = outcome.rewound;
  told_.place = outcome.placement.has_value();
  told_.end_psn = oldest.value();
  if (!outcome.placement) return;
  told_.message = index_of(outcome.placement->message);
  told_.offset = outcome.placement->offset;
}

SendRecord Lockstep::event(SendSide& side, SendRecord core, const SendEvent& event) {
  if (!side.alive || side.failing) return core;
  const auto message = message_of(side.retired, event.message);
  const auto status = static_cast<roce::Status>(event.status);
  switch (event.kind) {
    case SendEvent::Kind::left:
      if (event.has_psn) side.core.left(roce::Psn(event.psn));
      break;
    case SendEvent::Kind::failed: side.core.unreadable(message, status); break;
    case SendEvent::Kind::placed: side.core.placed(message, status); break;
  }
  return core;
}

SendRecord Lockstep::timeout(SendSide& side, SendRecord core) {
  const bool is_ack = core.op == SendOp::ack_timeout;
  auto& due = is_ack ? side.ack_due : side.rnr_due;
  if (!due) {
    illegal("no such timer was running");
    return core;
  }
  if (now_ < *due) illegal("the timer fired too early");
  due.reset();
  if (is_ack) core.outcome = side.core.window().retries_left == 0 ? Outcome::failed : Outcome::progress;
  told_.rewound = core.rewound;
  side.core.expired(is_ack ? roce::Timer::ack : roce::Timer::rnr);
  core.rewound = told_.rewound;
  return core;
}

void Lockstep::ack_timed_out(roce::Slot, bool rewound) { told_.rewound = rewound; }

void Lockstep::arm(roce::Slot slot, roce::Timer timer, std::uint8_t code, bool) {
  auto& side = *slots_[slot].sends;
  if (timer == roce::Timer::ack)
    side.ack_due = now_ + ticks(roce::ack_timeout(code));
  else
    side.rnr_due = now_ + ticks(roce::rnr_delay(code));
}

void Lockstep::cancel(roce::Slot slot, roce::Timer timer) {
  auto& side = *slots_[slot].sends;
  (timer == roce::Timer::ack ? side.ack_due : side.rnr_due).reset();
}

void Lockstep::completed(roce::Slot slot, std::uint64_t, roce::Status status, bool) {
  auto& side = *slots_[slot].sends;
  side.to_come.push_back(
      {.slot = static_cast<std::uint8_t>(slot), .op = SendOp::complete, .status = static_cast<std::uint8_t>(status)});
  if (status == roce::Status::success || std::exchange(side.failing, true)) return;
  side.core.fail();
}

void Lockstep::drained(roce::Slot slot) {
  slots_[slot].sends->to_come.push_back({.slot = static_cast<std::uint8_t>(slot), .op = SendOp::drained});
}

SendRecord Lockstep::next_of(SendSide& side, SendRecord core) {
  if (side.to_come.empty() || side.to_come.front().op != core.op) {
    illegal(core.op == SendOp::complete ? "no message is done" : "the send queue is not drained");
    return core;
  }
  core.status = side.to_come.front().status;
  side.to_come.pop_front();
  if (core.op == SendOp::complete) core.message = index_of(side.retired++);
  return core;
}

}  // namespace rnicsim::rtl
