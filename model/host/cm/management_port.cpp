// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/management_port.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "model/abi/device.h"
#include "verbs/provider/commands.h"

namespace rnicsim::host {
namespace {

constexpr std::uint32_t kQpn = 1;
constexpr std::uint32_t kWellKnownQkey = 0x80010000;  // well-known Q_Key (IBTA vol 1, 10.2.4)
constexpr std::uint32_t kPd = 0;                      // the kernel's protection domain
constexpr std::uint32_t kRegion = 0;
constexpr std::uint32_t kLkey = kRegion << 8;
constexpr std::uint32_t kSends = 128;
constexpr std::uint32_t kReceives = 512;
constexpr std::uint32_t kEntries = 1024;  // entries of the CQ: more than both
constexpr std::size_t kGrh = 40;
constexpr std::size_t kReceiveBuffer = 320;  // GRH and datagram, in whole cache lines
static_assert(kReceiveBuffer >= kGrh + cm::kMadBytes);

constexpr std::uint8_t log2_of(std::uint32_t power) { return std::uint8_t(std::bit_width(power) - 1); }

// In RoCEv2's GRH an IPv4 header fills the last 20 bytes (IBTA vol 1, A17.4.5.2).
Gid gid_at(std::span<const std::byte> grh, bool ipv4, std::size_t ipv4_offset, std::size_t ipv6_offset) {
  const std::byte* at = grh.data() + (ipv4 ? ipv4_offset : ipv6_offset);
  if (ipv4) {
    std::array<std::uint8_t, 4> address;
    std::memcpy(address.data(), at, address.size());
    return ipv4_mapped_gid(address);
  }
  Gid gid;
  std::memcpy(gid.data(), at, gid.size());
  return gid;
}

}  // namespace

void ManagementPort::bring_up() {
  if ((driver_.capabilities().features & abi::feature::kUd) == 0) return;
  send_buffers_ = driver_.allocate(kSends * cm::kMadBytes);
  receive_buffers_ = driver_.allocate(kReceives * kReceiveBuffer);
  create_queues();
  for (std::uint32_t buffer = 0; buffer < kReceives; ++buffer) receive_into(buffer);
  receive_->ring();
  completions_.arm(driver_.uar(), kCqn, false);
  available_ = true;
}

void ManagementPort::create_queues() {
  const auto records = driver_.allocate(2 * sizeof(abi::QpDoorbellRecord));
  create_completion_queue(records.at(sizeof(abi::QpDoorbellRecord)));
  register_buffers();
  make_ready(create_queue_pair(records));
}

void ManagementPort::create_completion_queue(const provider::DmaBuffer& record) {
  const auto cq_ring = driver_.allocate(kEntries * sizeof(abi::Cqe));
  completions_ = {log2_of(kEntries), cq_ring, reinterpret_cast<abi::CqDoorbellRecord*>(record.memory)};
  abi::Cqc cqc;
  cqc.log_entries = log2_of(kEntries);
  cqc.pasid = kKernelPasid;
  cqc.ring = cq_ring.bus_address;
  cqc.doorbell_record = record.bus_address;
  cqc.eqn = Driver::kFirstCompletionEqn;
  driver_.create(abi::IcmTable::cqc, kCqn, provider::encode(provider::create_cq(kCqn, cqc)), "create_cq");
}

void ManagementPort::register_buffers() {
  abi::Mpt region;
  region.key = kLkey;
  region.pd = kPd;
  region.pasid = kKernelPasid;
  region.access_flags = abi::access::kLocalWrite;
  region.start = region.bus_address = std::min(send_buffers_.bus_address, receive_buffers_.bus_address);
  region.length = std::max(send_buffers_.bus_address + kSends * cm::kMadBytes,
                           receive_buffers_.bus_address + kReceives * kReceiveBuffer) -
                  region.start;
  region.valid = 1;
  driver_.create(abi::IcmTable::mpt, kRegion, provider::encode(provider::create_mpt(kRegion, region)), "create_mpt");
}

abi::Qpc ManagementPort::create_queue_pair(const provider::DmaBuffer& records) {
  const auto wqe_blocks =
      std::uint32_t((provider::wqe_bytes_with_sges(abi::Transport::ud, 1) + abi::kSendBlock - 1) / abi::kSendBlock);
  const std::uint8_t log_blocks = provider::log_send_blocks(kSends, wqe_blocks);
  const std::uint8_t log_stride = provider::log_receive_stride(1);
  const auto send_ring = driver_.allocate(std::size_t(abi::kSendBlock) << log_blocks);
  const auto receive_ring = driver_.allocate(std::size_t(kReceives) << log_stride);
  auto* record = reinterpret_cast<abi::QpDoorbellRecord*>(records.memory);
  send_.emplace(
      provider::SendRing::Layout{.qpn = kQpn, .log_blocks = log_blocks, .capacity = kSends, .blue_flame = false},
      send_ring, record, &driver_.uar());
  receive_.emplace(provider::ReceiveRing::Layout{.log_entries = log2_of(kReceives), .log_stride = log_stride},
                   receive_ring, record);
  abi::Qpc qpc;
  qpc.transport = abi::Transport::ud;
  qpc.log_send_blocks = log_blocks;
  qpc.log_receive_wqes = log2_of(kReceives);
  qpc.log_receive_stride = log_stride;
  qpc.flags = abi::Qpc::kHasSend | abi::Qpc::kHasReceive;
  qpc.pd = kPd;
  qpc.pasid = kKernelPasid;
  qpc.send_cqn = qpc.receive_cqn = kCqn;
  qpc.send_ring = send_ring.bus_address;
  qpc.receive_ring = receive_ring.bus_address;
  qpc.doorbell_record = records.bus_address;
  driver_.create(abi::IcmTable::qpc, kQpn, provider::encode(provider::create_qp(kQpn, qpc)), "create_qp");
  return qpc;
}

// Moves the queue pair to RTS.
void ManagementPort::make_ready(abi::Qpc qpc) {
  namespace attribute = abi::qp_attr;
  qpc.port = 1;
  qpc.qkey = kWellKnownQkey;
  const auto move = [&](abi::QpState state, std::uint32_t attributes) {
    qpc.state = state;
    driver_.must_execute(provider::encode(provider::modify_qp(kQpn, attribute::kState | attributes, qpc)), "modify_qp");
  };
  move(abi::QpState::init, attribute::kPkeyIndex | attribute::kPort | attribute::kQkey);
  move(abi::QpState::rtr, 0);
  move(abi::QpState::rts, attribute::kSendPsn);
}

void ManagementPort::receive_into(std::uint32_t buffer) {
  receive_->open(buffer);
  receive_->segment(receive_buffers_.bus_address + buffer * kReceiveBuffer, kReceiveBuffer, kLkey);
  receive_->close();
}

void ManagementPort::send(const abi::AddressVector& path, const cm::Mad& mad) {
  waiting_.push_back({path, mad});
  post_waiting();
}

void ManagementPort::post_waiting() {
  for (; !waiting_.empty() && !send_->full(); waiting_.pop_front()) {
    const Departure& departure = waiting_.front();
    const auto buffer = send_buffers_.at(next_send_ * cm::kMadBytes);
    next_send_ = (next_send_ + 1) % kSends;
    std::ranges::copy(departure.mad, buffer.memory);
    provider::WqeBuilder wqe;
    wqe.begin(abi::SendOpcode::send, abi::ControlSegment::kSignaled);
    abi::DatagramSegment segment;
    segment.path = departure.path;
    segment.remote_qpn = kQpn;
    segment.qkey = kWellKnownQkey;
    wqe.datagram(segment);
    wqe.data(buffer.bus_address, cm::kMadBytes, kLkey);
    send_->post(wqe, 0);
  }
  send_->ring();
}

std::optional<ManagementPort::Arrival> ManagementPort::arrival_in(const abi::Cqe& cqe, std::uint32_t buffer) const {
  if (provider::is_error(cqe) || cqe.byte_count != kGrh + cm::kMadBytes) return std::nullopt;
  const std::span<const std::byte> grh(receive_buffers_.memory + buffer * kReceiveBuffer, kGrh);
  const bool ipv4 = (cqe.flags & abi::Cqe::kIpv4) != 0;
  Arrival arrival;
  arrival.remote = gid_at(grh, ipv4, 32, 8);
  arrival.local = gid_at(grh, ipv4, 36, 24);
  arrival.traffic_class =
      ipv4 ? std::uint8_t(grh[21]) : std::uint8_t(std::uint8_t(grh[0]) << 4 | std::uint8_t(grh[1]) >> 4);
  std::copy_n(grh.data() + kGrh, cm::kMadBytes, arrival.mad.begin());
  return arrival;
}

void ManagementPort::interrupt(const std::function<void(const Arrival&)>& arrived) {
  while (const auto cqe = completions_.take()) {
    if (provider::is_requester(*cqe)) {
      send_->retire(cqe->wqe_counter);
      continue;
    }
    const auto buffer = std::uint32_t(receive_->retire(cqe->wqe_counter));
    if (const auto arrival = arrival_in(*cqe, buffer)) arrived(*arrival);
    receive_into(buffer);
  }
  completions_.release();
  receive_->ring();
  post_waiting();
  completions_.arm(driver_.uar(), kCqn, false);
}

}  // namespace rnicsim::host
