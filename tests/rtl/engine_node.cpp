// SPDX-License-Identifier: Apache-2.0
#include "tests/rtl/engine_node.h"

#include <utility>

#include "model/roce/opcode.h"

namespace rnicsim::rtl::test {
namespace {

constexpr std::uint64_t kCyclesATick = 256;
constexpr std::uint64_t kFlight = 40;
constexpr std::uint64_t kMourning = 2000;
constexpr std::uint64_t kPatience = 3'000'000;  // cycles without progress
constexpr std::uint32_t kMaxMessage = 1u << 30;
constexpr std::uint8_t kRdAtomic = 4;
constexpr std::uint8_t kProtectionError = 4;

}  // namespace

void Node::start(std::uint8_t slot, std::uint32_t psn, std::uint32_t peer_psn) {
  for (const auto kind : {Control::error, Control::reset}) {
    queues_.push(SendControl{.slot = slot, .kind = kind});
    queues_.push(AnswerControl{.slot = slot, .kind = kind});
  }
  queues_.push(SendControl{.slot = slot,
                           .kind = Control::start,
                           .psn = psn,
                           .mtu = weather_.mtu,
                           .remote_qpn = slot,
                           .max_rd_atomic = kRdAtomic,
                           .retry_count = 7,
                           .rnr_retry = 7,
                           .timeout = weather_.timeout});
  queues_.push(AnswerControl{.slot = slot,
                             .kind = Control::start,
                             .psn = peer_psn,
                             .mtu = weather_.mtu,
                             .remote_qpn = slot,
                             .allow_write = true,
                             .allow_read = true,
                             .allow_atomic = true,
                             .max_dest_rd_atomic = kRdAtomic,
                             .min_rnr_timer = 1,
                             .max_message = kMaxMessage});
  auto& qp = slots_[slot];
  const auto life = qp.life + 1;
  qp = {};
  qp.life = life;
  qp.resets = 2;
}

void Node::later(std::uint8_t slot, std::function<void()> action) {
  agenda_.emplace(draw(), [this, slot, life = slots_[slot].life, action = std::move(action)] {
    if (slots_[slot].life == life) action();
  });
}

void Node::fail(std::uint8_t slot) {
  if (!std::exchange(slots_[slot].failing, true)) failed_(slot);
}

bool Node::idle() const {
  for (const auto& qp : slots_)
    if (qp.outstanding != 0 || qp.failing) return false;
  return true;
}

void Node::tick() {
  ++cycle_;
  for (; !agenda_.empty() && agenda_.begin()->first <= cycle_; agenda_.erase(agenda_.begin()))
    agenda_.begin()->second();
  for (unsigned slot = 0; slot < weather_.slots; ++slot) leave(static_cast<std::uint8_t>(slot));
  if (random_() % 8 == 0) post();
  if (!chance(weather_.idle)) queues_.offer(engine_);
  const auto now = cycle_ / kCyclesATick;
  const auto& outputs = engine_.begin_cycle(now, !chance(weather_.stalled), !chance(weather_.stalled));
  if (outputs.send) {
    reference_model_.send(*outputs.send, engine_, now);
    take(*outputs.send);
  }
  if (outputs.answer) {
    reference_model_.answer(*outputs.answer, engine_, now);
    take(*outputs.answer);
  }
  engine_.end_cycle();
}

void Node::post() {
  const auto slot = static_cast<std::uint8_t>(random_() % weather_.slots);
  auto& qp = slots_[slot];
  if (!posting_ || qp.outstanding == kMessages || qp.resets != 0 || qp.failing) return;
  constexpr MessageKind kKinds[] = {MessageKind::send,      MessageKind::send,         MessageKind::write,
                                    MessageKind::write,     MessageKind::write,        MessageKind::read,
                                    MessageKind::fetch_add, MessageKind::compare_swap, MessageKind::nop};
  Post post{.slot = slot, .operation = kKinds[random_() % std::size(kKinds)]};
  const bool is_atomic = post.operation == MessageKind::fetch_add || post.operation == MessageKind::compare_swap;
  post.length = is_atomic ? 8 : chance(100) ? 0 : static_cast<std::uint32_t>(random_() % weather_.longest);
  post.remote_address = std::uint64_t{random_()} << 20;
  post.rkey = static_cast<std::uint32_t>(random_());
  post.swap_add = random_();
  post.compare = random_();
  const bool may_tell = post.operation == MessageKind::send || post.operation == MessageKind::write;
  post.has_immediate = may_tell && chance(300);
  post.immediate = static_cast<std::uint32_t>(random_());
  post.solicited = chance(200);
  post.fence = chance(50);
  if (error()) post.refused = kProtectionError;
  ++qp.outstanding;
  queues_.push(post);
}

// --- The requester side.
void Node::take(const SendRecord& record) {
  auto& qp = slots_[record.slot];
  if (record.op == SendOp::control && engine_.input<SendControl>().kind == Control::reset && qp.resets != 0)
    --qp.resets;
  if (qp.resets != 0) return;
  const auto slot = record.slot;
  if (record.op == SendOp::response) ++outcomes_[record.outcome];
  if (record.rewound) {
    const auto count = static_cast<std::uint8_t>(qp.requests.size());
    qp.requests.clear();
    if (count != 0) queues_.push(SendEvent{.slot = slot, .kind = SendEvent::Kind::left, .count = count});
  }
  if (record.place) {
    later(slot, [this, slot, message = record.message] {
      const std::uint8_t status = error() ? kProtectionError : 0;
      queues_.push(SendEvent{.slot = slot, .kind = SendEvent::Kind::placed, .message = message, .status = status});
    });
  }
  if (record.op == SendOp::packet) {
    const auto at = qp.requests.empty() ? draw() : std::max(draw(), qp.requests.back().at);
    const auto bytes = record.bytes;
    qp.requests.push_back({at,
                           {.is_request = true,
                            .slot = slot,
                            .opcode = record.opcode,
                            .psn = record.psn,
                            .ack_request = record.ack_request,
                            .bytes = bytes,
                            .address = record.address,
                            .rkey = record.rkey,
                            .length = record.length},
                           record.end_psn,
                           record.message});
  }
  if (record.op == SendOp::complete) {
    --qp.outstanding;
    ++completed_;
    if (record.status != 0) fail(slot);
  }
}

// Packets leave in order. If the data of one cannot be read, the packets behind it are not sent.
void Node::leave(std::uint8_t slot) {
  auto& qp = slots_[slot];
  if (!qp.requests.empty() && qp.requests.front().at <= cycle_) {
    auto& first = qp.requests.front();
    if (first.packet.bytes != 0 && error()) {
      const auto count = static_cast<std::uint8_t>(qp.requests.size());
      queues_.push(SendEvent{
          .slot = slot, .kind = SendEvent::Kind::failed, .message = first.message, .status = kProtectionError});
      queues_.push(SendEvent{.slot = slot, .kind = SendEvent::Kind::left, .count = count});
      qp.requests.clear();
    } else {
      ++opcodes_[first.packet.opcode];
      ++packets_;
      queues_.push(
          SendEvent{.slot = slot, .kind = SendEvent::Kind::left, .count = 1, .has_psn = true, .psn = first.end_psn});
      send_(first.packet);
      qp.requests.pop_front();
    }
  }
  if (!qp.answers.empty() && qp.answers.front().at <= cycle_) {
    auto& first = qp.answers.front();
    const auto& row = *roce::find_opcode(first.packet.opcode);
    if (row.operation == roce::Operation::read_response && first.packet.bytes != 0 && error()) {
      const auto count = static_cast<std::uint8_t>(qp.answers.size());
      queues_.push(AnswerEvent{.slot = slot, .kind = AnswerEvent::Kind::left, .count = count});
      queues_.push(AnswerEvent{
          .slot = slot, .kind = AnswerEvent::Kind::failed, .result = Result::access, .psn = first.packet.psn});
      qp.answers.clear();
    } else {
      ++opcodes_[first.packet.opcode];
      ++packets_;
      queues_.push(AnswerEvent{.slot = slot, .kind = AnswerEvent::Kind::left, .count = 1});
      send_(first.packet);
      qp.answers.pop_front();
    }
  }
}

// --- The responder side.
void Node::receive(const Packet& packet) {
  if (!packet.is_request) {
    queues_.push(Response{packet.slot, packet.opcode, packet.psn, packet.syndrome, packet.bytes});
    return;
  }
  slots_[packet.slot].inbound.push_back(packet);
  pump(packet.slot);
}

void Node::pump(std::uint8_t slot) {
  auto& qp = slots_[slot];
  if (qp.asked || qp.inbound.empty() || qp.resets != 0) return;
  const auto& packet = qp.inbound.front();
  auto request = qp.offer;
  request.slot = slot;
  request.opcode = packet.opcode;
  request.psn = packet.psn;
  request.ack_request = packet.ack_request;
  request.bytes = packet.bytes;
  request.address = packet.address;
  request.rkey = packet.rkey;
  request.length = packet.length;
  const auto* row = roce::find_opcode(packet.opcode);
  if (row != nullptr && row->operation == roce::Operation::send && !row->begins()) request.receive_bytes = kMaxMessage;
  // The receive may be known already.
  if (!request.receive_known && chance(500)) {
    request.receive_known = request.receive_available = true;
    request.receive_bytes = kMaxMessage;
  }
  qp.asked = true;
  queues_.push(request);
}

void Node::take(const AnswerRecord& record) {
  auto& qp = slots_[record.slot];
  const auto slot = record.slot;
  if (record.op == AnswerOp::control && engine_.input<AnswerControl>().kind == Control::reset && qp.resets != 0) {
    if (--qp.resets == 0) pump(slot);
  }
  if (qp.resets != 0) return;
  if (record.op == AnswerOp::request) validated(record);
  if (record.op == AnswerOp::packet) {
    const auto at = qp.answers.empty() ? draw() : std::max(draw(), qp.answers.back().at);
    const auto& row = *roce::find_opcode(record.opcode);
    const bool is_data = row.operation == roce::Operation::read_response;
    qp.answers.push_back({at,
                          {.slot = slot,
                           .opcode = record.opcode,
                           .psn = record.psn,
                           .bytes = static_cast<std::uint16_t>(is_data ? record.length : 0),
                           .syndrome = row.has(roce::header::kAeth) ? record.syndrome : std::uint8_t{0x1f},
                           .original = record.original},
                          0,
                          0});
    if (record.fatal) fail(slot);
  }
  const bool may_help = record.op == AnswerOp::event || record.op == AnswerOp::packet;
  if (may_help && std::exchange(qp.waits, false)) pump(slot);
}

void Node::validated(const AnswerRecord& record) {
  const auto slot = record.slot;
  auto& qp = slots_[slot];
  ++verdicts_[record.verdict];
  qp.asked = false;
  switch (record.verdict) {
    case Verdict::busy: qp.waits = true; return;
    case Verdict::want_receive:
      qp.asked = true;
      later(slot, [this, slot] {
        auto& offer = slots_[slot].offer;
        offer.receive_known = true;
        offer.receive_available = !chance(weather_.no_receive);
        offer.receive_bytes = error() ? 1 : kMaxMessage;
        slots_[slot].asked = false;
        pump(slot);
      });
      return;
    case Verdict::want_access:
      qp.asked = true;
      later(slot, [this, slot] {
        slots_[slot].offer.access_known = true;
        slots_[slot].offer.access_granted = !error();
        slots_[slot].asked = false;
        pump(slot);
      });
      return;
    case Verdict::place:
      if (record.length == 0) break;
      later(slot, [this, slot, pending_answer = record.pending_answer] {
        const auto result = !error() ? Result::ok : chance(500) ? Result::access : Result::operation;
        queues_.push(AnswerEvent{
            .slot = slot, .kind = AnswerEvent::Kind::placed, .pending_answer = pending_answer, .result = result});
      });
      break;
    case Verdict::atomic:
      later(slot, [this, slot, pending_answer = record.pending_answer, saved = record.saved] {
        queues_.push(AnswerEvent{.slot = slot,
                                 .kind = AnswerEvent::Kind::atomic,
                                 .pending_answer = pending_answer,
                                 .saved = saved,
                                 .result = error() ? Result::access : Result::ok,
                                 .original = random_()});
      });
      break;
    default: break;
  }
  qp.inbound.pop_front();
  qp.offer = {};
  pump(slot);
}

// --- Between the two nodes.
Network::Network(const Weather& weather)
    : weather_(weather),
      random_(weather.seed),
      a_(
          weather, weather.seed + 1, [this](const Packet& packet) { carry(b_, packet); },
          [this](std::uint8_t slot) { broke(slot); }),
      b_(
          weather, weather.seed + 2, [this](const Packet& packet) { carry(a_, packet); },
          [this](std::uint8_t slot) { broke(slot); }) {
  for (unsigned slot = 0; slot < weather.slots; ++slot) restart(static_cast<std::uint8_t>(slot));
}

// The other node must notice the failure before the restart.
void Network::broke(std::uint8_t slot) { broken_.try_emplace(slot, cycle_ + kMourning); }

void Network::restart(std::uint8_t slot) {
  std::erase_if(flying_, [slot](const auto& one) { return one.second.second.slot == slot; });
  const auto psn = static_cast<std::uint32_t>(random_()) & 0xffffff;
  const auto other = (random_() % 2 == 0 ? 0xffffff - 20 : static_cast<std::uint32_t>(random_())) & 0xffffff;
  a_.start(slot, psn, other);
  b_.start(slot, other, psn);
}

Packet Network::spoil(Packet packet) {
  const std::uint32_t mtu = roce::mtu_bytes(weather_.mtu);
  const std::uint32_t sizes[] = {
      0, 1, mtu - 1, mtu, mtu + 1, 0xffff, 0xffffffff, 1u << 31, static_cast<std::uint32_t>(random_())};
  const auto size = sizes[random_() % std::size(sizes)];
  switch (random_() % 8) {
    case 0: packet.opcode = static_cast<std::uint8_t>(random_()); break;
    case 1: packet.opcode = static_cast<std::uint8_t>(random_() % 0x18); break;
    case 2: packet.psn += random_() % 9 - 4; break;
    case 3: packet.psn = static_cast<std::uint32_t>(random_()); break;
    case 4: packet.psn ^= 0x800000; break;
    case 5: packet.bytes = static_cast<std::uint16_t>(size); break;
    case 6: packet.length = size; break;
    default: packet.syndrome = static_cast<std::uint8_t>(random_());
  }
  if ((packet.syndrome & 0x60) == 0x20) packet.syndrome = 0x21;  // RNR NAK with a short wait, for the test's time limit
  packet.psn &= 0xffffff;
  packet.address += random_() % 2;
  packet.is_request ^= random_() % 16 == 0;
  // A packet without AETH has no syndrome.
  const auto* row = roce::find_opcode(packet.opcode);
  if (row != nullptr && !row->has(roce::header::kAeth)) packet.syndrome = 0x1f;
  return packet;
}

void Network::carry(Node& to, const Packet& packet) {
  if (random_() % 1000 < weather_.spoiled)
    flying_.emplace(cycle_ + 1 + random_() % (2 * kFlight), std::pair(&to, spoil(packet)));
  if (random_() % 1000 < weather_.lost) return;
  const unsigned copies = random_() % 1000 < weather_.doubled ? 2 : 1;
  for (unsigned i = 0; i < copies; ++i) {
    const auto extra = random_() % 1000 < weather_.reordered ? random_() % 400 : 0;
    flying_.emplace(cycle_ + kFlight + extra, std::pair(&to, packet));
  }
}

bool Network::run(std::uint64_t messages) {
  std::uint64_t moved = cycle_, completed = 0;
  while (true) {
    ++cycle_;
    for (; !flying_.empty() && flying_.begin()->first <= cycle_; flying_.erase(flying_.begin()))
      flying_.begin()->second.first->receive(flying_.begin()->second.second);
    a_.tick();
    b_.tick();
    std::erase_if(broken_, [this](const auto& broken) {
      if (broken.second <= cycle_) restart(broken.first);
      return broken.second <= cycle_;
    });
    if (a_.reference_model().failed() || b_.reference_model().failed()) return false;
    const auto sum = a_.completed() + b_.completed();
    if (sum != completed) moved = cycle_;
    completed = sum;
    if (completed >= messages) {
      a_.stop_posting();
      b_.stop_posting();
      if (a_.idle() && b_.idle()) return true;
    }
    if (cycle_ - moved > kPatience) return false;
  }
}

}  // namespace rnicsim::rtl::test
