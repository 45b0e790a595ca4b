// SPDX-License-Identifier: Apache-2.0
#include "sim/replay/responder_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "model/abi/queue.h"
#include "sim/replay/request_answers.h"

namespace rnicsim::sim::replay {
namespace {

using nic::AccessResult;
using roce::Aeth;

// Each QP's receive ring and doorbell record and each receive's buffer have address ranges of their own, without memory
// behind them.
constexpr std::uint64_t kSpace = std::uint64_t{1} << 32;
constexpr std::uint64_t kRecordAt = 0;
constexpr std::uint64_t kRingAt = 4096;
constexpr std::uint8_t kLogReceives = 8;
constexpr std::uint8_t kLogStride = 5;  // a data segment, and a segment that ends the list
constexpr std::uint32_t kReceiveKey = 0x7e000001;
constexpr std::uint32_t kAllRemote = nic::access::kRemoteWrite | nic::access::kRemoteRead | nic::access::kRemoteAtomic;

std::uint64_t space_of(roce::Qpn qpn) { return kSpace * (std::uint64_t{qpn.value} + 1); }

nic::QpContext context_of(const QpEnvironment& qp) {
  auto context = plain_context();
  context.transport = qp.transport;
  context.has_send = context.has_receive = true;
  context.log_receive_wqes = kLogReceives;
  context.log_receive_stride = kLogStride;
  context.receive_ring = space_of(qp.number) + kRingAt;
  context.doorbell_record = space_of(qp.number) + kRecordAt;
  context.path_mtu = qp.path_mtu;
  context.qkey = qp.qkey;
  context.access_flags = kAllRemote;
  context.remote_qpn = qp.peer_qpn.value;
  context.receive_psn = qp.first_psn.value();
  context.min_rnr_timer = qp.min_rnr_timer;
  context.path.remote_gid = qp.peer;
  context.path.remote_mac = qp.peer_mac;
  return context;
}

std::array<std::byte, roce::kAtomicBytes> host_bytes(std::uint64_t number) {
  std::array<std::byte, roce::kAtomicBytes> bytes;
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

AccessResult refused(std::uint8_t syndrome) {
  if (syndrome == Aeth::kRemoteAccessError) return AccessResult::denied;
  return syndrome == Aeth::kRemoteOperationError ? AccessResult::bus_error : AccessResult::ok;
}

}  // namespace

ResponderDriver::ResponderDriver(EngineHost& host, const Environment& environment)
    : host_(host), environment_(environment), memory_(environment.regions) {
  for (const auto& qp : environment.qps) sides_[qp.number.value].qp = &qp;
}

std::vector<ResponderDriver::Result> ResponderDriver::run() {
  host_.begin(*this);
  // By frame: a multicast datagram goes to several QPs.
  std::map<std::uint32_t, std::vector<std::pair<Side*, const Request*>>> order;
  for (const auto& qp : environment_.qps) {
    host_.connect(qp.number, context_of(qp));
    for (const auto& request : qp.requests) order[request.packet->frame].emplace_back(&side_of(qp.number), &request);
  }
  for (const auto& [frame, steps] : order)
    for (const auto& [side, request] : steps) feed(*side, *request);
  std::vector<Result> results;
  for (const auto& qp : environment_.qps) results.push_back(std::move(side_of(qp.number).result));
  return results;
}

void ResponderDriver::feed(Side& side, const Request& request) {
  if (request.receive) side.receives.push_back(*request.receive);
  // A request that is not executed, such as a duplicate, does not interrupt the present WRITE.
  const bool taken = request.executed || !side.qp->reliable();
  if (taken && request.packet->row().begins()) side.written = 0;
  learn(side, request);
  current_ = &request;
  current_mtu_ = roce::mtu_bytes(side.qp->path_mtu);
  const auto packet = nic::Packet::make();
  packet->headers = request.packet->headers;
  packet->addresses = request.packet->addresses;
  packet->put(Payload(request.packet->payload));
  host_.engine().packet({.packet = packet, .destination = side.qp->number, .grh = request.packet->grh});
  host_.settle();
  take_write(side, request);
}

void ResponderDriver::packet(const nic::PacketOut& packet) {
  auto& answers = side_of(packet.source).result.answers;
  answers.push_back({current_ ? current_->packet->frame : 0, packet.packet->headers, packet.packet->payload()});
}

// Converts a completion to the message that the program receives.
void ResponderDriver::received(const nic::CqeWrite& write) {
  const auto& cqe = write.cqe;
  if (cqe.syndrome != roce::Status::success || current_ == nullptr) return;
  auto& side = side_of({cqe.qpn});
  const auto opcode = cqe.opcode;
  Delivery delivery{.frame = current_->packet->frame, .is_write = opcode == nic::CqeOpcode::receive_write_with_imm};
  if (delivery.is_write || opcode == nic::CqeOpcode::receive_send_with_imm) delivery.immediate = cqe.immediate;
  if (opcode == nic::CqeOpcode::receive_send_with_inv) delivery.invalidate = cqe.immediate;
  if (side.qp->transport == roce::Transport::ud) delivery.source = cqe.source_qpn;
  if (!delivery.is_write) {
    delivery.bytes = std::exchange(side.buffers[receive_of(side, cqe.wqe_counter)], {});
    delivery.bytes.resize(std::min<std::size_t>(cqe.byte_count, delivery.bytes.size()));
  }
  side.result.deliveries.push_back(std::move(delivery));
}

// A WRITE has no completion: memory is checked where the wire implies that the WRITE is complete.
void ResponderDriver::take_write(Side& side, const Request& request) {
  const auto frame = request.packet->frame;
  const auto implied = std::ranges::lower_bound(side.qp->deliveries, frame, {}, &Delivery::frame);
  if (implied == side.qp->deliveries.end() || implied->frame != frame || !implied->is_write) return;
  auto& deliveries = side.result.deliveries;
  const bool completed = !deliveries.empty() && deliveries.back().frame == frame;
  if (side.written != implied->target.length || (implied->immediate && !completed)) return;
  if (!completed) deliveries.push_back({.frame = frame, .is_write = true});
  auto& bytes = deliveries.back().bytes;
  bytes.resize(implied->target.length);
  memory_.read(implied->target.rkey.value, implied->target.address, bytes);
}

ResponderDriver::Side& ResponderDriver::side_of(roce::Qpn qpn) {
  const auto side = sides_.find(qpn.value);
  if (side == sides_.end()) throw std::runtime_error(fmt::format("the engine names an unknown QP {:#08x}", qpn.value));
  return side->second;
}

// The newest receive with this 16-bit index.
std::uint64_t ResponderDriver::receive_of(const Side& side, std::uint16_t index) const {
  const auto newest = side.receives.empty() ? 0 : side.receives.size() - 1;
  return newest - static_cast<std::uint16_t>(newest - index);
}

// Learns memory contents from the real NIC's answers to this request.
void ResponderDriver::learn(const Side& side, const Request& request) {
  const auto& headers = request.packet->headers;
  if (!headers.atomic && request.packet->row().operation != roce::Operation::read) return;
  const auto mtu = roce::mtu_bytes(side.qp->path_mtu);
  each_answer(*side.qp, request, [&](const WirePacket& answer, std::uint32_t index) {
    if (headers.atomic && answer.headers.atomic_ack)
      memory_.learn(headers.atomic->rkey.value, headers.atomic->address, host_bytes(*answer.headers.atomic_ack));
    if (headers.reth)
      memory_.learn(headers.reth->rkey.value, headers.reth->address + std::uint64_t{index} * mtu,
                    answer.payload.bytes());
  });
}

nic::WqeBytes ResponderDriver::fetch(const nic::WqeFetch& request) {
  const auto& side = side_of(request.qpn);
  const auto offset = request.address - space_of(request.qpn);
  nic::WqeBytes answer{.tag = request.tag, .ok = true, .bytes = {}};
  const auto posted = side.receives.size();
  if (offset == kRecordAt && request.bytes == sizeof(abi::QpDoorbellRecord)) {
    abi::QpDoorbellRecord record;
    record.receive_producer = static_cast<std::uint16_t>(posted);
    answer.bytes = Payload::copy_of(std::as_bytes(std::span(&record, 1)));
    return answer;
  }
  constexpr std::uint64_t kSlots = 1u << kLogReceives;
  constexpr std::uint64_t kStride = 1u << kLogStride;
  if (offset < kRingAt || offset + request.bytes > kRingAt + kSlots * kStride || offset % kStride != 0)
    return answer.ok = false, answer;
  std::vector<std::byte> wqes;
  for (auto at = offset - kRingAt; at < offset - kRingAt + request.bytes; at += kStride) {
    const auto slot = at / kStride;
    if (slot >= posted) return answer.ok = false, answer;
    const auto number = posted - 1 - (posted - 1 - slot) % kSlots;  // newest receive WQE in this slot
    abi::DataSegment data;
    data.byte_count = side.receives[number];
    data.lkey = kReceiveKey;
    data.address = number * kSpace;
    append(wqes, data);
    abi::DataSegment end;
    end.lkey = abi::kInvalidLkey;
    append(wqes, end);
  }
  answer.bytes = Payload::copy_of(wqes);
  return answer;
}

AccessResult ResponderDriver::check_region(const nic::Region& region) const {
  switch (memory_.check(region.key, region.address, region.length)) {
    case Memory::Access::ok: return AccessResult::ok;
    case Memory::Access::bad_key: return AccessResult::bad_key;
    case Memory::Access::bad_range: return AccessResult::bad_range;
  }
  return AccessResult::ok;
}

AccessResult ResponderDriver::check(const nic::AccessCheck& request) {
  const bool at_once = current_ && current_->refused_psn == current_->first_psn();
  if (at_once && current_->refusal == Aeth::kRemoteAccessError) return AccessResult::denied;
  return check_region(request.region);
}

AccessResult ResponderDriver::scatter(const nic::Scatter& request) {
  if (const auto result = refused(current_->refusal); result != AccessResult::ok) return result;
  auto& side = side_of(request.qpn);
  std::uint32_t offset = 0;
  for (const auto& region : request.regions) {
    const auto bytes = request.payload.slice(offset, region.length).bytes();
    offset += region.length;
    if (!request.remote) {
      if (const auto result = to_receive(side, region, bytes); result != AccessResult::ok) return result;
      continue;
    }
    if (const auto result = check_region(region); result != AccessResult::ok) return result;
    memory_.write(region.key, region.address, bytes);
    side.written += bytes.size();
  }
  return AccessResult::ok;
}

AccessResult ResponderDriver::to_receive(Side& side, const nic::Region& region, std::span<const std::byte> bytes) {
  if (region.key != kReceiveKey) return AccessResult::bad_key;
  auto& buffer = side.buffers[region.address / kSpace];
  const auto offset = region.address % kSpace;
  buffer.resize(std::max<std::size_t>(buffer.size(), offset + bytes.size()));
  std::ranges::copy(bytes, buffer.begin() + static_cast<std::ptrdiff_t>(offset));
  return AccessResult::ok;
}

nic::DmaDone ResponderDriver::gather(const nic::Gather& request) {
  nic::DmaDone done{.tag = request.tag, .result = AccessResult::ok, .payload = {}};
  std::vector<std::byte> bytes;
  for (const auto& region : request.regions) {
    done.result = check_region(region);
    if (current_->refusal != 0 && current_->packet->headers.reth) {
      const auto index = distance(current_->first_psn(), current_->refused_psn);
      const auto at = current_->packet->headers.reth->address + static_cast<std::uint64_t>(index) * current_mtu_;
      if (at >= region.address && at < region.address + region.length) done.result = refused(current_->refusal);
    }
    if (done.result != AccessResult::ok) return done;
    const auto held = bytes.size();
    bytes.resize(held + region.length);
    count(region.length, memory_.read(region.key, region.address, std::span(bytes).subspan(held)));
  }
  done.payload = Payload::copy_of(bytes);
  return done;
}

nic::AtomicDone ResponderDriver::atomic(const nic::Atomic& request) {
  const auto& [address, rkey, swap_add, compare] = request.operation;
  nic::AtomicDone done{.tag = request.tag, .result = refused(current_->refusal), .original = 0};
  if (done.result == AccessResult::ok) done.result = check_region({rkey.value, address, roce::kAtomicBytes});
  if (done.result != AccessResult::ok) return done;
  std::array<std::byte, roce::kAtomicBytes> bytes;
  count(bytes.size(), memory_.read(rkey.value, address, bytes));
  std::memcpy(&done.original, bytes.data(), sizeof done.original);
  const auto swapped = done.original == compare ? swap_add : done.original;
  memory_.write(rkey.value, address, host_bytes(request.is_swap ? swapped : done.original + swap_add));
  return done;
}

void ResponderDriver::count(std::size_t bytes, std::size_t written) {
  memory_use_.checked += written;
  memory_use_.learnt += bytes - written;
}

}  // namespace rnicsim::sim::replay
