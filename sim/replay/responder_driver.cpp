#include "sim/replay/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "model/abi/command.h"
#include "model/base/kernel.h"

namespace rnicsim::sim::replay {
namespace {

using nic::AccessResult;
using roce::Aeth;

// Each QP's receive ring, doorbell record and receive buffers stand at addresses of its own, which nothing backs.
constexpr std::uint64_t kQpSpace = std::uint64_t{1} << 32;
constexpr std::uint64_t kRecordAt = 0;
constexpr std::uint64_t kRingAt = 4096;
constexpr std::uint8_t kLogReceives = 8;
constexpr std::uint8_t kLogStride = 5;  // a data segment, and one that ends the list
constexpr std::uint32_t kReceiveKey = 0x7e000001;
constexpr std::uint32_t kPd = 1;
constexpr Pasid kPasid = 1;
constexpr std::uint32_t kCredits = 16;
constexpr std::uint8_t kOnlyPort = 1;  // not kPort: that is the attribute
constexpr std::uint8_t kRdAtomic = 16;
constexpr std::uint32_t kAllRemote = abi::access::kRemoteWrite | abi::access::kRemoteRead | abi::access::kRemoteAtomic;

std::uint64_t space_of(roce::Qpn qpn) { return kQpSpace * (std::uint64_t{qpn.value} + 1); }

abi::Qpc context_of(const QpEnvironment& qp) {
  abi::Qpc context;
  context.flags = abi::Qpc::kHasSend | abi::Qpc::kHasReceive;
  context.log_receive_wqes = kLogReceives;
  context.log_receive_stride = kLogStride;
  context.pd = kPd;
  context.pasid = kPasid;
  context.receive_ring = space_of(qp.qpn) + kRingAt;
  context.doorbell_record = space_of(qp.qpn) + kRecordAt;
  context.port = kOnlyPort;
  context.path_mtu = qp.path_mtu;
  context.access_flags = kAllRemote;
  context.remote_qpn = qp.peer_qpn.value;
  context.receive_psn = qp.first_psn.value();
  context.max_rd_atomic = kRdAtomic;
  context.max_dest_rd_atomic = kRdAtomic;
  context.min_rnr_timer = qp.min_rnr_timer;
  std::ranges::copy(qp.peer, context.path.remote_gid);
  std::ranges::copy(qp.peer_mac, context.path.remote_mac);
  return context;
}

template <class Object>
void append(std::vector<std::byte>& out, const Object& object) {
  const auto bytes = std::as_bytes(std::span(&object, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
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

Driver::Driver(nic::QpEngine& engine, const Environment& environment, const Engines* made_by)
    : engine_(engine), environment_(environment), made_by_(made_by), memory_(environment.regions) {
  for (const auto& qp : environment.qps) sides_[qp.qpn.value] = {.qp = &qp, .context = context_of(qp)};
  bind();
}

// What the engine asks for while it takes an input is answered once it has returned.
void Driver::bind() {
  auto& out = engine_.outputs();
  out.transmit.bind([](nic::TransmitWork) {});
  out.transmit_wanted.bind([this](std::uint32_t unit) { engine_.transmit_free(unit); });
  out.context_write_back.bind([this](nic::ContextWriteBack back) { written_back_[back.qpn.value] = back.context; });
  out.wqe_fetch.bind([this](nic::WqeFetch request) { later([this, request] { engine_.wqe(fetch(request)); }); });
  out.gather.bind(
      [this](const nic::Gather& request) { later([this, request] { engine_.gathered(gather(request)); }); });
  out.scatter.bind([this](const nic::Scatter& request) {
    later([this, request] { engine_.scattered({request.tag, scatter(request), {}}); });
  });
  out.access_check.bind([this](nic::AccessCheck request) {
    later([this, request] { engine_.checked({request.tag, check_request(request), {}}); });
  });
  out.atomic.bind([this](nic::Atomic request) { later([this, request] { engine_.atomic_done(atomic(request)); }); });
  out.invalidate.bind([this](nic::Invalidate request) {
    later([this, tag = request.tag] { engine_.key_changed({tag, AccessResult::ok, {}}); });
  });
  out.bind_window.bind([this](nic::BindWindow request) {
    later([this, tag = request.tag] { engine_.key_changed({tag, AccessResult::ok, {}}); });
  });
  out.srq_take.bind([this](nic::SrqTake take) {
    later([this, take] { engine_.srq_taken({.tag = take.tag, .qpn = take.qpn, .srqn = take.srqn}); });
  });
  out.srq_give_back.bind([](nic::SrqGiveBack) {});
  out.packet.bind([this](const nic::PacketOut& packet) {
    side_of(packet.source).answers.push_back({current_ ? current_->packet->frame : 0, packet.headers, packet.payload});
    later([this] { engine_.credit(1); });
  });
  out.command_done.bind([this](nic::QpCommandDone done) { command_done_ = done; });
  // Nobody polls, and a responder has no timers.
  out.wqe_held.bind([](nic::WqeHeld) {});
  out.wqe_needed.bind([this](nic::WqeNeeded needed) { later([this, tag = needed.tag] { engine_.wqe_at_hand(tag); }); });
  out.wqe_retired.bind([](nic::WqeRetired&&) {});
  out.cqe.bind([](nic::CqeWrite) {});
  out.event.bind([](nic::EventOut) {});
  out.timer.bind([](nic::TimerArm) {});
}

std::vector<std::vector<Answer>> Driver::run() {
  sc_core::sc_start(sc_core::SC_ZERO_TIME);  // elaborates
  engine_.credit(kCredits);
  settle();
  std::map<std::uint32_t, std::pair<Side*, const Request*>> order;  // by frame
  for (const auto& qp : environment_.qps) {
    auto& side = side_of(qp.qpn);
    connect(side);
    for (const auto& request : qp.requests) order[request.packet->frame] = {&side, &request};
  }
  for (const auto& [frame, step] : order) feed(*step.first, *step.second);
  std::vector<std::vector<Answer>> answers;
  for (const auto& qp : environment_.qps) answers.push_back(std::move(side_of(qp.qpn).answers));
  return answers;
}

void Driver::connect(Side& side) {
  using namespace abi::qp_attr;
  using enum abi::QpState;
  using Kind = nic::QpCommand::Kind;
  command(side, Kind::create, std::nullopt, 0);
  command(side, Kind::modify, init, kState | kPkeyIndex | kPort | kAccessFlags);
  command(side, Kind::modify, rtr,
          kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer);
  command(side, Kind::modify, rts, kState | kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic);
}

void Driver::command(Side& side, nic::QpCommand::Kind kind, std::optional<abi::QpState> to, std::uint32_t attributes) {
  auto context = side.context;
  if (to) context.state = *to;
  command_done_.reset();
  engine_.command({.tag = next_tag_++,
                   .kind = kind,
                   .qpn = side.qp->qpn,
                   .context = context,
                   .attributes = attributes,
                   .current = std::nullopt});
  settle();
  if (command_done_ && command_done_->status == static_cast<std::uint8_t>(abi::CommandStatus::ok)) return;
  throw std::runtime_error(fmt::format("the engine refused a command on QP {:#08x}: status {:#x}, syndrome {:#x}",
                                       side.qp->qpn.value, command_done_ ? command_done_->status : 0,
                                       command_done_ ? command_done_->syndrome : 0));
}

void Driver::feed(Side& side, const Request& request) {
  if (request.receive) side.receives.push_back(*request.receive);
  learn(side, request);
  current_ = &request;
  current_mtu_ = roce::mtu_bytes(side.qp->path_mtu);
  engine_.packet({.headers = request.packet->headers,
                  .payload = request.packet->payload,
                  .source = request.packet->addresses.source});
  settle();
}

void Driver::settle() {
  for (;;) {
    while (!pending_.empty()) {
      const auto answer = std::move(pending_.front());
      pending_.pop_front();
      answer();
    }
    if (made_by_ != nullptr) made_by_->check();
    if (!sc_core::sc_pending_activity()) return;
    sc_core::sc_start(sc_core::sc_time_to_pending_activity());
  }
}

Driver::Side& Driver::side_of(roce::Qpn qpn) {
  const auto side = sides_.find(qpn.value);
  if (side == sides_.end()) throw std::runtime_error(fmt::format("the engine speaks of QP {:#08x}", qpn.value));
  return side->second;
}

// What the real NIC's answers to this very request say of its memory.
void Driver::learn(const Side& side, const Request& request) {
  const auto& headers = request.packet->headers;
  if (!headers.atomic && request.packet->row().operation != roce::Operation::read) return;
  const auto mtu = roce::mtu_bytes(side.qp->path_mtu);
  const auto& answers = side.qp->answers;
  auto at = std::ranges::upper_bound(answers, request.packet->frame, {}, &WirePacket::frame);
  for (; at != answers.end(); ++at) {
    const auto& answer = **at;
    const auto index = distance(request.first_psn(), answer.psn());
    // Answers to earlier requests, of other PSNs, may still be on their way.
    const bool other = index < 0 || index >= static_cast<std::int32_t>(request.packets);
    if (other || answer.row().operation == roce::Operation::acknowledge) continue;
    if (headers.atomic && answer.headers.atomic_ack)
      memory_.learn(headers.atomic->rkey.value, headers.atomic->address, host_bytes(*answer.headers.atomic_ack));
    if (headers.reth)
      memory_.learn(headers.reth->rkey.value, headers.reth->address + static_cast<std::uint64_t>(index) * mtu,
                    answer.payload.bytes());
    if (answer.psn() == request.last_psn()) break;
  }
}

nic::WqeBytes Driver::fetch(const nic::WqeFetch& request) {
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
    const auto number = posted - 1 - (posted - 1 - slot) % kSlots;  // the newest that was put into this slot
    abi::DataSegment data;
    data.byte_count = side.receives[number];
    data.lkey = kReceiveKey;
    data.address = 0;
    append(wqes, data);
    abi::DataSegment end;
    end.lkey = abi::kInvalidLkey;
    append(wqes, end);
  }
  answer.bytes = Payload::copy_of(wqes);
  return answer;
}

AccessResult Driver::check(const nic::Region& region) const {
  switch (memory_.check(region.key, region.address, region.length)) {
    case Memory::Access::ok:
      return AccessResult::ok;
    case Memory::Access::bad_key:
      return AccessResult::bad_key;
    case Memory::Access::bad_range:
      return AccessResult::bad_range;
  }
  return AccessResult::ok;
}

AccessResult Driver::check_request(const nic::AccessCheck& request) const {
  const bool at_once = current_ && current_->refused_psn == current_->first_psn();
  if (at_once && current_->refusal == Aeth::kRemoteAccessError) return AccessResult::denied;
  return check(request.region);
}

AccessResult Driver::scatter(const nic::Scatter& request) {
  if (const auto result = refused(current_->refusal); result != AccessResult::ok) return result;
  std::uint32_t offset = 0;
  for (const auto& region : request.regions) {
    const auto bytes = request.payload.slice(offset, region.length).bytes();
    offset += region.length;
    if (!request.remote) {
      if (region.key != kReceiveKey) return AccessResult::bad_key;
      continue;
    }
    if (const auto result = check(region); result != AccessResult::ok) return result;
    memory_.write(region.key, region.address, bytes);
  }
  return AccessResult::ok;
}

nic::DmaDone Driver::gather(const nic::Gather& request) {
  nic::DmaDone done{.tag = request.tag, .result = AccessResult::ok, .payload = {}};
  std::vector<std::byte> bytes;
  for (const auto& region : request.regions) {
    done.result = check(region);
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

nic::AtomicDone Driver::atomic(const nic::Atomic& request) {
  const auto& [address, rkey, swap_add, compare] = request.operation;
  nic::AtomicDone done{.tag = request.tag, .result = refused(current_->refusal), .original = 0};
  if (done.result == AccessResult::ok) done.result = check({rkey.value, address, roce::kAtomicBytes});
  if (done.result != AccessResult::ok) return done;
  std::array<std::byte, roce::kAtomicBytes> bytes;
  count(bytes.size(), memory_.read(rkey.value, address, bytes));
  std::memcpy(&done.original, bytes.data(), sizeof done.original);
  const auto swapped = done.original == compare ? swap_add : done.original;
  memory_.write(rkey.value, address, host_bytes(request.is_swap ? swapped : done.original + swap_add));
  return done;
}

void Driver::count(std::size_t bytes, std::size_t written) {
  memory_use_.checked += written;
  memory_use_.learnt += bytes - written;
}

}  // namespace rnicsim::sim::replay
