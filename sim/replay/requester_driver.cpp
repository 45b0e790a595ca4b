// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/requester_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "model/abi/queue.h"
#include "sim/replay/timers.h"

namespace rnicsim::sim::replay {
namespace {

using namespace rnicsim::literals;

// The send ring and each request's buffer have address ranges of their own, without memory behind them.
constexpr std::uint64_t kSpace = std::uint64_t{1} << 32;
constexpr std::uint64_t kRingAt = std::uint64_t{1} << 48;
constexpr std::uint8_t kLogBlocks = 15;
constexpr nic::Qpn kOwn{2};  // the engine's QP number, independent of the wire's
constexpr std::uint32_t kSendKey = 0x7e000002;
// Tolerance for late timers of an engine that keeps its timers itself.
constexpr Duration kLate = 20_us;

nic::QpContext context_of(const RequesterEnvironment& qp) {
  auto context = plain_context();
  context.transport = qp.transport;
  context.has_send = true;
  context.log_send_blocks = kLogBlocks;
  context.send_ring = kRingAt;
  context.path_mtu = qp.path_mtu;
  context.remote_qpn = qp.peer_qpn.value;
  context.send_psn = qp.posted.front().first.value();
  context.timeout = qp.timeout;
  context.retry_count = qp.retry_count;
  context.rnr_retry = qp.rnr_retry;
  context.path.remote_gid = qp.peer;
  context.path.remote_mac = qp.peer_mac;
  return context;
}

abi::DatagramSegment datagram_of(const WirePacket& packet) {
  abi::DatagramSegment segment;
  std::ranges::copy(packet.addresses.destination, segment.path.remote_gid);
  std::ranges::copy(packet.addresses.destination_mac, segment.path.remote_mac);
  segment.remote_qpn = packet.headers.bth.destination.value;
  segment.qkey = packet.headers.deth->qkey;
  return segment;
}

// A UD QP sends the Q_Key of its WQE; if the top bit is set there, it sends the QP's own Q_Key.
std::uint32_t own_qkey(const RequesterEnvironment& qp) {
  for (const auto* packet : qp.sent)
    if (packet->headers.deth && (packet->headers.deth->qkey & abi::kOwnQkey) != 0) return packet->headers.deth->qkey;
  return 0;
}

std::uint32_t immediate_of(const Posted& request) {
  if (request.tail == nullptr) return 0;
  const auto& headers = request.tail->headers;
  return headers.invalidate ? headers.invalidate->value : headers.immediate.value_or(0);
}

void append_segments(std::vector<std::byte>& wqe, const Posted& request, std::uint64_t buffer) {
  const auto& headers = request.head->headers;
  if (headers.deth) append(wqe, datagram_of(*request.head));
  abi::RemoteAddressSegment remote;
  if (headers.reth) remote.address = headers.reth->address, remote.rkey = headers.reth->rkey.value;
  if (headers.atomic) remote.address = headers.atomic->address, remote.rkey = headers.atomic->rkey.value;
  if (headers.reth || headers.atomic) append(wqe, remote);
  if (headers.atomic) {
    abi::AtomicSegment operands;
    operands.swap_add = headers.atomic->swap_add;
    operands.compare = headers.atomic->compare;
    append(wqe, operands);
  }
  abi::DataSegment data;
  data.byte_count = request.length;
  data.lkey = kSendKey;
  data.address = buffer;
  append(wqe, data);
}

std::vector<std::byte> wqe_of(const Posted& request, roce::Qpn qpn, std::uint16_t index, std::uint64_t buffer) {
  std::vector<std::byte> wqe(sizeof(abi::ControlSegment));
  append_segments(wqe, request, buffer);
  abi::ControlSegment control;
  control.opcode = static_cast<abi::SendOpcode>(request.opcode);
  control.wqe_index = index;
  control.segments = static_cast<std::uint8_t>(wqe.size() / sizeof control);
  const bool solicited = request.tail != nullptr && request.tail->headers.bth.solicited;
  control.qpn_flags =
      qpn.value << 8 | abi::ControlSegment::kSignaled | (solicited ? abi::ControlSegment::kSolicited : 0);
  control.immediate = immediate_of(request);
  std::memcpy(wqe.data(), &control, sizeof control);
  wqe.resize((wqe.size() + abi::kSendBlock - 1) / abi::kSendBlock * abi::kSendBlock);
  return wqe;
}

}  // namespace

RequesterDriver::Result RequesterDriver::run() {
  if (qp_.posted.empty()) return {};
  result_.completions.resize(qp_.posted.size());
  result_.brought.resize(qp_.posted.size());
  auto context = context_of(qp_);
  context.qkey = own_qkey(qp_);
  host_.begin(*this);
  host_.connect(kOwn, context);
  for (const auto& event : qp_.events) {
    frame_ = event.packet->frame;
    event.sent ? send(event) : answer(event);
  }
  finish();
  return std::move(result_);
}

void RequesterDriver::send(const WireEvent& event) {
  if (event.cause != Cause::none) release();
  if (event.posts) post();
  if (event.cause == Cause::rnr || event.cause == Cause::timeout) end_timer(event);
  if (event.acknowledged) return;
  ++due_;
  let_send();
}

void RequesterDriver::answer(const WireEvent& event) {
  held_.push_back(&event);
  if (event.in_order && held_.size() == 1) release();
}

void RequesterDriver::release() {
  for (const auto* event : std::exchange(held_, {})) {
    const auto packet = nic::Packet::make();
    packet->headers = event->packet->headers;
    packet->addresses = event->packet->addresses;
    packet->put(Payload(event->packet->payload));
    host_.engine().packet({.packet = packet, .destination = kOwn});
    host_.settle();
  }
}

void RequesterDriver::post() {
  const auto number = posted_++;
  const auto index = static_cast<std::uint16_t>(ring_.size() / abi::kSendBlock);
  const auto wqe = wqe_of(qp_.posted[number], kOwn, index, number * kSpace);
  ring_.insert(ring_.end(), wqe.begin(), wqe.end());
  const auto blocks = ring_.size() / abi::kSendBlock;
  request_of_block_.resize(blocks, number);
  host_.engine().doorbell({kOwn, static_cast<std::uint16_t>(blocks), {}});
  host_.settle();
}

// Lets the engine send until it has sent as many packets as the real NIC.
void RequesterDriver::let_send() {
  while (result_.sent.size() < due_ && !wanted_.empty()) {
    for (const auto unit : std::exchange(wanted_, {})) host_.engine().transmit_free(unit);
    host_.settle();
  }
}

// The real NIC's timer has expired. Our timer must not be shorter than the transport allows, nor longer than the real
// one was.
void RequesterDriver::end_timer(const WireEvent& event) {
  if (timers_.empty() && host_.keeps_time()) return pass_timer(event);
  if (timers_.empty() && event.cause == Cause::rnr) return too_early(event, {});
  const auto waited = expire(event.packet->time - event.since);
  if (waited && *waited < event.least) too_early(event, *waited);
}

// The same for an engine that keeps its timers itself.
void RequesterDriver::pass_timer(const WireEvent& event) {
  host_.pass(event.least - kLate);
  if (event.cause == Cause::rnr && !wanted_.empty()) return too_early(event, event.least - kLate);
  const auto room = event.packet->time - event.since - event.least;
  host_.pass(std::min(2 * kLate, room + kLate));
}

std::optional<Duration> RequesterDriver::expire(Duration within) {
  const auto first = std::ranges::min_element(timers_, {}, [](const auto& each) { return each.second; });
  if (first == timers_.end() || first->second > within) return std::nullopt;
  const auto [kind, after] = *first;
  timers_.erase(first);
  host_.engine().timer_expired(kOwn, kind);
  host_.settle();
  return after;
}

void RequesterDriver::too_early(const WireEvent& event, Duration waited) {
  result_.timers.push_back({Subject::timer,
                            event.packet->frame,
                            fmt::format("sends again after {}", to_string(waited)),
                            fmt::format("waits {} at least", to_string(event.least)),
                            {}});
}

// End of the capture: our NIC must not send more packets either.
void RequesterDriver::finish() {
  release();
  if (qp_.gives_up) {
    constexpr Duration kAnyTime{std::numeric_limits<std::int64_t>::max()};
    if (!expire(kAnyTime) && host_.keeps_time()) host_.pass(least_ack_timeout(qp_.timeout) + kLate);
  }
  if (qp_.unfinished) return;
  constexpr std::size_t kMostSurplus = 64;
  due_ = result_.sent.size() + kMostSurplus;
  let_send();
}

void RequesterDriver::packet(const nic::PacketOut& packet) {
  auto headers = packet.packet->headers;
  if (headers.deth && headers.deth->source == kOwn) headers.deth->source = qp_.qpn;
  result_.sent.push_back({frame_, headers, packet.packet->payload()});
}

void RequesterDriver::timer(const nic::TimerArm& arm) {
  if (arm.cancel)
    timers_.erase(arm.kind);
  else
    timers_[arm.kind] = arm.after;
}

// A WQE retired without a CQE was posted as signaled, so it stays without a completion.
void RequesterDriver::sent(const nic::WqeRetired& retired) {
  if (!retired.cqe) return;
  const auto newest = request_of_block_.size() - 1;
  const auto block = newest - static_cast<std::uint16_t>(newest - retired.index);
  result_.completions[request_of_block_[block]] = retired.cqe->cqe.syndrome;
}

nic::WqeBytes RequesterDriver::fetch(const nic::WqeFetch& request) {
  nic::WqeBytes answer{.tag = request.tag, .ok = false, .bytes = {}};
  constexpr std::uint64_t kRing = std::uint64_t{abi::kSendBlock} << kLogBlocks;
  const auto offset = request.address - kRingAt;
  if (offset + request.bytes > kRing || ring_.empty()) return answer;
  // Newest WQE in these blocks of the ring.
  const auto at = offset + (ring_.size() - 1 - offset) / kRing * kRing;
  if (offset >= ring_.size() || at + request.bytes > ring_.size()) return answer;
  answer.ok = true;
  answer.bytes = Payload::copy_of(std::span(ring_).subspan(at, request.bytes));
  return answer;
}

nic::DmaDone RequesterDriver::gather(const nic::Gather& request) {
  const auto& posted = qp_.posted;
  nic::DmaDone done{.tag = request.tag, .result = nic::AccessResult::ok, .payload = {}};
  std::vector<std::byte> bytes;
  for (const auto& region : request.regions) {
    const auto number = region.address / kSpace;
    if (region.key != kSendKey || number >= posted.size()) return done.result = nic::AccessResult::bad_key, done;
    const auto& payload = posted[number].payload;
    const auto offset = region.address % kSpace;
    const auto known = offset < payload.size() ? std::min<std::size_t>(region.length, payload.size() - offset) : 0;
    const auto from = payload.begin() + static_cast<std::ptrdiff_t>(offset * (known != 0));
    bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(known));
    bytes.resize(bytes.size() + region.length - known);
  }
  done.payload = Payload::copy_of(bytes);
  return done;
}

nic::AccessResult RequesterDriver::scatter(const nic::Scatter& request) {
  auto& brought = result_.brought;
  std::uint32_t offset = 0;
  for (const auto& region : request.regions) {
    const auto number = region.address / kSpace;
    if (region.key != kSendKey || number >= brought.size()) return nic::AccessResult::bad_key;
    const auto bytes = request.payload.slice(offset, region.length).bytes();
    offset += region.length;
    auto& buffer = brought[number];
    const auto at = region.address % kSpace;
    buffer.resize(std::max<std::size_t>(buffer.size(), at + bytes.size()));
    std::ranges::copy(bytes, buffer.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return nic::AccessResult::ok;
}

// A requester executes no atomics.
nic::AtomicDone RequesterDriver::atomic(const nic::Atomic& request) {
  return {.tag = request.tag, .result = nic::AccessResult::denied, .original = 0};
}

}  // namespace rnicsim::sim::replay
