// SPDX-License-Identifier: Apache-2.0
// A port with a minimal device: WQEs complete at once, and a SEND arrives at the QP's own receive queue. No payload is
// moved.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "model/abi/device.h"
#include "model/abi/queue.h"
#include "verbs/port/device_port.h"
#include "verbs/provider/commands.h"

namespace rnicsim {

class FakePort : public DevicePort {
 public:
  void mmio_write(std::uint32_t offset, std::span<const std::byte> data) override {
    const std::uint32_t at = (offset - abi::kUarBase) % abi::kUarPageSize;
    if (at == abi::uar::kSendDoorbell) run(abi::load_be<std::uint32_t>(data.data()));
    if (at >= abi::uar::kBlueFlame0) run(abi::load_be<std::uint32_t>(data.data() + 8) >> 8);
    if (at == abi::uar::kCqArm) armed_[abi::load_be<std::uint32_t>(data.data()) >> 8] = true;
  }
  std::uint64_t mmio_read(std::uint32_t, std::uint32_t) override { return 0; }

  std::byte* allocate(std::size_t bytes, std::size_t alignment) override {
    void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    std::memset(memory, 0, bytes);
    ++allocations;
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory, std::size_t) override {
    --allocations;
    std::free(memory);
  }

  int pin(const void* address, std::size_t, bool, std::uint64_t& bus_address) override {
    bus_address = reinterpret_cast<std::uint64_t>(address);
    return ++pins, 0;
  }
  int unpin(std::uint64_t, std::size_t, bool) override { return --pins, 0; }
  int alloc_pd(std::uint32_t& number) override { return number = next_++, 0; }
  int dealloc_pd(std::uint32_t) override { return 0; }
  int alloc_uar(std::uint32_t& page) override { return page = 5, 0; }
  int free_uar(std::uint32_t) override { return 0; }
  int open_context(int, std::uint32_t& number) override { return number = next_++, 0; }
  int import_context(int, std::uint32_t&) override { return EINVAL; }
  int close_context(std::uint32_t) override { return 0; }
  int import_pd(std::uint32_t, std::uint32_t) override { return ENOENT; }
  int open_xrcd(int, int, std::uint32_t&) override { return EOPNOTSUPP; }
  int close_xrcd(std::uint32_t) override { return ENOENT; }
  int open_qp(std::uint32_t, std::uint32_t, std::uint32_t) override { return EINVAL; }
  int command(std::uint32_t events, std::span<const std::byte> input, std::span<std::byte> output) override;

  int open_channel(int fd, std::uint32_t& channel) override {
    channel = next_++;
    channels_[channel] = ::dup(fd);
    return 0;
  }
  int close_channel(std::uint32_t channel) override {
    ::close(channels_.at(channel));
    channels_.erase(channel);
    return 0;
  }
  int bind_completions(std::uint32_t cqn, std::uint32_t channel) override { return bound_[cqn] = channel, 0; }
  int bind_events(std::uint32_t channel) override { return events_ = channel, 0; }
  int refill_channel(std::uint32_t) override { return 0; }
  int port_info(abi::NetworkInterface& host) override { return host.mac[0] = 2, host.mac[5] = 1, 0; }
  int lid_route(std::uint16_t, abi::GidEntry&) override { return ENOENT; }
  int rdma_cm(std::uint32_t, std::uint32_t, std::span<const std::byte>, std::span<std::byte>) override {
    return EOPNOTSUPP;
  }
  int resolve_path(abi::AddressVector& path) override { return path.remote_mac[5] = 7, 0; }
  int gid_entry(std::uint32_t, std::uint32_t index, abi::GidEntry& entry) override {
    if (index >= 4) return EINVAL;
    if (index >= 2) return ENODATA;
    entry = {.gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1},
             .index = index,
             .type = 1 + index,
             .port = 1};
    return 0;
  }
  std::uint32_t completion_vectors() const override { return 2; }

  void charge(abi::CpuCost cost, std::uint32_t times) override { charged[std::size_t(cost)] += times; }
  void wait_visible() override { ++waits; }
  void pass_lock(TimedLock&, abi::CpuCost) override { ++charged[std::size_t(abi::CpuCost::doorbell_lock)]; }
  bool wait_for_event(std::uint32_t, int fd, bool) override {
    pollfd readable{.fd = fd, .events = POLLIN};
    return ::poll(&readable, 1, 1000) == 1;
  }

  void raise(abi::EventType type, std::uint32_t number) {
    const abi::EventRecord record{std::uint32_t(type), number};
    ASSERT_EQ(::write(channels_.at(events_), &record, sizeof record), ssize_t(sizeof record));
  }
  // Writes a CQE for `qpn`. Tests use it for completions that no WQE causes here, such as flush errors.
  void complete(std::uint32_t qpn, abi::CqeOpcode opcode, std::uint16_t counter, abi::CqeSyndrome syndrome,
                abi::SendOpcode send = abi::SendOpcode::nop, std::uint32_t bytes = 0);

  int allocations = 0;
  int pins = 0;
  int waits = 0;
  bool executes = true;  // false: posted WQEs stay in the queue
  std::array<std::uint64_t, std::size_t(abi::CpuCost::count)> charged{};
  std::vector<abi::Mpt> regions;
  std::vector<std::vector<std::byte>> commands;
  std::map<abi::CommandOpcode, int> refused;  // errno of the kernel, by opcode
  std::uint64_t features = abi::feature::kBlueFlame | abi::feature::kRc;
  std::uint8_t flags = 0;  // flags of the CQEs that `complete` writes

 private:
  struct FakeCq {
    abi::Cqc context;
    std::uint64_t produced = 0;
  };
  struct FakeQp {
    abi::Qpc context;
    std::uint16_t send_done = 0;
    std::uint16_t receive_done = 0;
  };
  void run(std::uint32_t qpn);
  std::uint32_t receive_into(FakeQp& qp);

  std::uint32_t next_ = 3;
  std::map<std::uint32_t, FakeCq> cqs_;
  std::map<std::uint32_t, FakeQp> qps_;
  std::map<std::uint32_t, bool> armed_;
  std::map<std::uint32_t, std::uint32_t> bound_;
  std::map<std::uint32_t, int> channels_;
  std::uint32_t events_ = 0;
};

template <class T>
T* memory(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

inline void FakePort::complete(std::uint32_t qpn, abi::CqeOpcode opcode, std::uint16_t counter,
                               abi::CqeSyndrome syndrome, abi::SendOpcode send, std::uint32_t bytes) {
  const abi::Qpc& qpc = qps_.at(qpn).context;
  const bool requester = opcode == abi::CqeOpcode::requester || opcode == abi::CqeOpcode::requester_error;
  const std::uint32_t cqn = requester ? qpc.send_cqn : qpc.receive_cqn;
  FakeCq& cq = cqs_.at(cqn);
  const std::uint64_t mask = (1ull << cq.context.log_entries) - 1;
  abi::Cqe& cqe = memory<abi::Cqe>(cq.context.ring)[cq.produced & mask];
  const auto owner = std::uint8_t(cq.produced >> cq.context.log_entries & 1);
  cqe = {.immediate = 0x01020304u,
         .byte_count = bytes,
         .qpn = qpn,
         .wqe_counter = counter,
         .send_opcode = send,
         .flags = flags,
         .syndrome = syndrome,
         .vlan = std::uint16_t{0x6123}};
  cqe.opcode_owner = std::uint8_t(std::uint8_t(opcode) << 4 | owner);
  ++cq.produced;
  if (std::exchange(armed_[cqn], false) && bound_.contains(cqn)) {
    const abi::EventRecord record{std::uint32_t(abi::EventType::completion), cqn};
    ASSERT_EQ(::write(channels_.at(bound_[cqn]), &record, sizeof record), ssize_t(sizeof record));
  }
}

inline void FakePort::run(std::uint32_t qpn) {
  if (!executes) return;
  FakeQp& qp = qps_.at(qpn);
  const auto producer = std::uint16_t(memory<abi::QpDoorbellRecord>(qp.context.doorbell_record)->send_producer);
  const std::uint32_t mask = (1u << qp.context.log_send_blocks) - 1;
  while (qp.send_done != producer) {
    const auto& control = *memory<abi::ControlSegment>(qp.context.send_ring + (qp.send_done & mask) * 64ull);
    ASSERT_EQ(control.wqe_index, qp.send_done);
    const bool sends = control.opcode == abi::SendOpcode::send || control.opcode == abi::SendOpcode::send_with_imm;
    if (sends) {
      complete(qpn,
               control.opcode == abi::SendOpcode::send ? abi::CqeOpcode::receive_send
                                                       : abi::CqeOpcode::receive_send_with_imm,
               qp.receive_done++, abi::CqeSyndrome::success, abi::SendOpcode::nop, 8);
    }
    if (control.qpn_flags & abi::ControlSegment::kSignaled) {
      complete(qpn, abi::CqeOpcode::requester, qp.send_done, abi::CqeSyndrome::success, control.opcode);
    }
    qp.send_done = std::uint16_t(qp.send_done + (control.segments + 3) / 4);
  }
}

inline int FakePort::command(std::uint32_t, std::span<const std::byte> input, std::span<std::byte> output) {
  const auto header = provider::decode<abi::CommandHeader>(input);
  const auto opcode = abi::CommandOpcode(std::uint16_t(header.opcode));
  commands.emplace_back(input.begin(), input.end());
  if (const auto found = refused.find(opcode); found != refused.end()) return found->second;
  abi::CommandResult result;
  result.object = header.object;
  const auto answer = [&](const auto& mailbox) {
    std::memcpy(output.data(), &mailbox, std::min(output.size(), sizeof mailbox));
  };
  switch (opcode) {
    case abi::CommandOpcode::query_device: {
      abi::DeviceCapabilities all;
      all.features = features;
      all.firmware_version = 1ull << 32 | 2u << 16 | 3u;
      all.max_mr_size = 1ull << 40;
      all.max_qp = all.max_cq = all.max_mr = all.max_pd = 100u;
      all.max_qp_wr = 4096u;
      all.max_send_sge = all.max_receive_sge = 16u;
      all.max_cqe = 65536u;
      all.max_inline = 512u;
      all.ports = 1u;
      all.max_rss = 4u;
      all.max_rss_queues = 8u;
      all.max_flows = all.max_flow_counters = 8u;
      all.max_tso = 1u << 16;
      all.max_tso_header = 128u;
      return answer(all), 0;
    }
    case abi::CommandOpcode::query_port: {
      abi::PortAttributes port;
      port.state = IBV_PORT_ACTIVE;
      port.max_mtu = port.active_mtu = IBV_MTU_4096;
      port.gid_table_length = 4;
      return answer(port), 0;
    }
    case abi::CommandOpcode::create_cq:
      result.object = next_++;
      cqs_[result.object] = {provider::decode<abi::CreateCq>(input).context};
      break;
    case abi::CommandOpcode::create_mpt:
      result.object = 7u;  // every region gets the same index: only the tag tells two regions apart
      regions.push_back(provider::decode<abi::CreateMpt>(input).context);
      break;
    case abi::CommandOpcode::create_qp:
      result.object = next_++;
      qps_[result.object] = {provider::decode<abi::CreateQp>(input).context};
      break;
    case abi::CommandOpcode::modify_qp: {
      const auto modify = provider::decode<abi::ModifyQp>(input);
      FakeQp& qp = qps_.at(header.object);
      if (modify.attributes & abi::qp_attr::kState) qp.context.state = modify.context.state;
      if (modify.attributes & abi::qp_attr::kPath) qp.context.path = modify.context.path;
      if (modify.attributes & abi::qp_attr::kPort) qp.context.port = modify.context.port;
      if (qp.context.state == abi::QpState::reset) qp.send_done = qp.receive_done = 0;
      break;
    }
    case abi::CommandOpcode::query_qp: {
      abi::QueryQp query;
      query.context = qps_.at(header.object).context;
      return answer(query), 0;
    }
    case abi::CommandOpcode::create_rss:
    case abi::CommandOpcode::create_flow:
    case abi::CommandOpcode::create_counter: result.object = next_++; break;
    case abi::CommandOpcode::query_counter: {
      abi::QueryCounter counter;
      counter.packets = 3u;
      counter.bytes = 300u;
      return answer(counter), 0;
    }
    default: break;
  }
  return answer(result), 0;
}

}  // namespace rnicsim
