// The referee's send side: posts, packets, responses, timeouts, completions.
#include <utility>

#include "model/nic/qp_context.h"
#include "rtl/cosim/lockstep.h"
#include "rtl/cosim/verilated_engine.h"

namespace rnicsim::rtl {
namespace {

std::uint8_t index_of(std::uint64_t message) { return message % kMessages; }
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

SendRecord Lockstep::send_core(SendSide& side, const SendRecord& rtl, const VerilatedEngine& engine,
                               std::uint64_t now) {
  const bool begins = rtl.op != SendOp::complete && rtl.op != SendOp::drained;
  if (begins && side.alive && !side.failing && side.completer.oldest_done())
    illegal("the oldest message was done, and not completed");
  if (begins && side.failing && !side.window.messages.empty()) illegal("messages were left in the error state");
  if (begins && side.alive && !side.failing && side.draining && !side.drain_told && side.requester.drained())
    illegal("the send queue was drained, and nobody told");
  SendRecord core = rtl;
  switch (rtl.op) {
    case SendOp::control: return control(side, core, engine.input<SendControl>());
    case SendOp::post: return post(side, core, engine.input<Post>());
    case SendOp::packet: return packet(side, core);
    case SendOp::response: return response(side, core, engine.input<Response>(), now);
    case SendOp::complete: return complete(side, core);
    case SendOp::event: {
      const auto& event = engine.input<SendEvent>();
      const auto oldest = side.retired;
      const auto message = oldest + index_of(event.message + 2 * kMessages - index_of(oldest));
      const auto status = static_cast<roce::Status>(event.status);
      if (event.kind == SendEvent::Kind::failed) side.requester.fail(message, status);
      if (event.kind == SendEvent::Kind::placed) side.completer.placed(message, status);
      return core;
    }
    case SendOp::rnr_timeout:
      if (!side.window.rnr_waiting) illegal("no RNR timer was running");
      if (now < side.rnr_until) illegal("the RNR timer fired too early");
      side.requester.rnr_timeout();
      return core;
    case SendOp::ack_timeout:
      if (side.timeout == 0) illegal("the QP has no acknowledge timer");
      if (now < side.since + ticks(nic::ack_timeout(side.timeout))) illegal("the acknowledge timer fired too early");
      side.since = now;
      core.outcome = Outcome::progress;
      if (side.requester.awaits_answer() && side.window.retries_left == 0) core.outcome = Outcome::failed;
      core.rewound = side.requester.ack_timeout();
      return core;
    case SendOp::drained:
      if (!side.draining || side.drain_told || !side.requester.drained()) illegal("the send queue is not drained");
      side.drain_told = true;
      return core;
  }
  return core;
}

SendRecord Lockstep::control(SendSide& side, SendRecord core, const SendControl& control) {
  const roce::SendAttributes attributes{.remote = {control.remote_qpn}, .mtu = roce::mtu_bytes(control.mtu),
                                        .max_rd_atomic = control.max_rd_atomic, .retry_count = control.retry_count,
                                        .rnr_retry = control.rnr_retry};
  if (side.alive) {
    core.psn = side.window.oldest_psn().value();
    core.end_psn = side.window.unsent_psn.value();
    core.retries = side.window.retries_left;
    core.rnr_retries = side.window.rnr_retries_left;
    core.drained = side.requester.drained();
  }
  switch (control.kind) {
    case Control::reset: {
      auto history = std::move(side.history);
      std::destroy_at(&side);
      std::construct_at(&side);
      side.history = std::move(history);
      break;
    }
    case Control::start:
      side.window.start(attributes, roce::Psn(control.psn));
      side.alive = true;
      [[fallthrough]];
    case Control::update:
      side.window.update(attributes);
      side.timeout = control.timeout;
      side.draining = control.draining;
      if (!side.draining) side.drain_told = false;
      side.requester.stop_starting(side.draining);
      break;
    case Control::error: side.failing = true; break;
    case Control::query: break;
  }
  return core;
}

SendRecord Lockstep::post(SendSide& side, SendRecord core, const Post& post) {
  roce::SendRequest request{.id = side.posted, .operation = operation_of(post.operation), .length = post.length,
                            .remote_address = post.remote_address, .rkey = {post.rkey}, .swap_add = post.swap_add,
                            .compare = post.compare, .immediate = {}, .invalidate = {}, .solicited = post.solicited,
                            .fence = post.fence, .refused = {}};
  if (post.has_immediate) request.immediate = post.immediate;
  if (post.refused != 0) request.refused = static_cast<roce::Status>(post.refused);
  side.window.post(request);
  const auto& message = side.window.messages.back();
  core.message = index_of(side.posted++);
  core.psn = message.first.value();
  core.end_psn = (message.first + message.packets).value();
  if (side.window.messages.size() > kMessages) illegal("more messages than the window holds");
  return core;
}

SendRecord Lockstep::packet(SendSide& side, SendRecord core) {
  if (!side.alive || side.failing) {
    illegal("a queue pair that does not send has sent");
    return core;
  }
  const auto packet = side.requester.next_packet();
  if (!packet) {
    illegal("nothing may be sent now");
    return core;
  }
  const auto& headers = packet->headers;
  core.message = index_of(packet->message);
  core.opcode = static_cast<std::uint8_t>(headers.bth.opcode);
  core.destination = headers.bth.destination.value;
  core.psn = headers.bth.psn.value();
  core.end_psn = packet->end.value();
  core.ack_request = headers.bth.ack_request;
  core.solicited = headers.bth.solicited;
  core.offset = packet->offset;
  core.bytes = static_cast<std::uint16_t>(packet->payload);
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

SendRecord Lockstep::response(SendSide& side, SendRecord core, const Response& response, std::uint64_t now) {
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
  const auto outcome = side.completer.receive(headers, response.bytes);
  core.outcome = static_cast<Outcome>(outcome.kind);
  core.rewound = outcome.rewound;
  core.place = outcome.placement.has_value();
  if (outcome.placement) {
    core.message = index_of(outcome.placement->message);
    core.offset = outcome.placement->offset;
  }
  core.end_psn = side.window.oldest_psn().value();
  if (outcome.kind == roce::ResponseOutcome::Kind::progress || outcome.rewound) side.since = now;
  if (outcome.kind == roce::ResponseOutcome::Kind::rnr) side.rnr_until = now + ticks(nic::rnr_delay(outcome.rnr_timer));
  return core;
}

SendRecord Lockstep::complete(SendSide& side, SendRecord core) {
  const auto completion = side.failing ? side.completer.take_flushed() : side.completer.take_completion();
  if (!completion) {
    illegal("no message is done");
    return core;
  }
  core.message = index_of(side.retired++);
  core.status = static_cast<std::uint8_t>(side.failing ? roce::Status::flushed_error : completion->status);
  if (completion->status != roce::Status::success) side.failing = true;
  return core;
}

}  // namespace rnicsim::rtl
