// SPDX-License-Identifier: Apache-2.0
// A queue pair of a scripted node, driven by registers and rings alone, so that a target can write any bytes to them.
// Two nodes on a cable have two pairs: inputs affect the victims; the witnesses must keep working.
// Node b also has QPs of the unreliable transports, which only receive. An XRC sender at a has its receiver at b, with
// three shared receive queues, one of which is in the receiver's XRC domain. Each node has a region of device memory
// and an on-demand region.
#pragma once

#include <memory>

#include "tests/soak/fuzz/fuzz.h"
#include "tests/soak/fuzz/host_pages.h"
#include "tests/unit/nic/nic_pair.h"
#include "tests/unit/nic/objects/shared_ring.h"

namespace rnicsim::fuzz {

using nic::test::Node;

// Numbers of a QP and its CQs on the node. The send CQ comes first, then the receive CQ.
struct QpNumbers {
  std::uint32_t qpn;
  std::uint32_t first_cqn;
  std::uint32_t uar_page;
  std::uint32_t pd;
  std::uint32_t key;
};
inline constexpr QpNumbers kVictim{nic::test::kQpn, nic::test::kSendCqn, nic::test::kUarPage, nic::test::kPd,
                                   nic::test::kKey};
inline constexpr QpNumbers kWitness{0x20, 5, 4, 6, 8 << 8 | 0x66};
inline constexpr QpNumbers kUc{0x30, 7, 5, nic::test::kPd, 9 << 8 | 0x77};  // in the victims' PD
inline constexpr QpNumbers kUd{0x31, 9, 6, 8, 10 << 8 | 0x88};
inline constexpr QpNumbers kXrc{0x32, 11, 7, nic::test::kPd, 13 << 8 | 0x99};
inline constexpr std::uint32_t kXrcd = 0x8001, kStrangeXrcd = 0x8002;
inline constexpr std::uint32_t kSrqn = 6, kStrangeSrqn = 7, kOrdinarySrqn = 8;
inline constexpr std::uint32_t kDeviceKey = 11 << 8 | 0xaa, kPagedKey = 12 << 8 | 0xbb;  // in the victims' PD
inline constexpr std::uint32_t kDeviceBytes = 64 << 10;
inline constexpr std::uint32_t kQkey = 0x1234;
inline constexpr std::uint32_t kFirstPsn = 0xfffff0;

class RawQp {
 public:
  static constexpr std::uint32_t kLogBlocks = 6;
  static constexpr std::uint32_t kLogReceives = 5;
  static constexpr std::uint32_t kLogStride = 6;
  static constexpr std::uint32_t kLogCqes = 7;
  static constexpr std::uint32_t kBufferBytes = 64 << 10;

  RawQp(Node& node, const QpNumbers& numbers, abi::Transport transport = abi::Transport::rc)
      : node_(node), numbers_(numbers), transport_(transport) {}

  // `own`: creates CQs and a region; otherwise the QP uses those of the node's bring-up.
  void create(bool own) {
    if (own) {
      for (std::uint32_t i = 0; i < 2; ++i) create_cq(i);
      buffer = node_.host.allocate(kBufferBytes);
      abi::CreateMpt mpt;
      mpt.header.opcode = std::uint16_t(abi::CommandOpcode::create_mpt);
      mpt.header.object = numbers_.key >> 8;
      mpt.context.key = numbers_.key;
      mpt.context.pd = numbers_.pd;
      mpt.context.pasid = nic::test::kPasid;
      mpt.context.access_flags = 0xf;
      mpt.context.start = mpt.context.bus_address = buffer;
      mpt.context.length = kBufferBytes;
      must(mpt);
    }
    send_ring = node_.host.allocate(std::size_t{abi::kSendBlock} << kLogBlocks);
    receive_ring = node_.host.allocate(std::size_t{1} << (kLogReceives + kLogStride));
    record = node_.host.allocate(64);
    node_.host.put(record, abi::QpDoorbellRecord{});
    abi::CreateQp qp;
    qp.header.opcode = std::uint16_t(abi::CommandOpcode::create_qp);
    qp.header.object = numbers_.qpn;
    qp.context = transport_ == abi::Transport::xrc_recv ? domain_context() : fixed_context();
    must(qp);
  }

  void connect(std::uint8_t peer, std::uint8_t mtu = 3) {
    using namespace abi::qp_attr;
    abi::Qpc c;
    c.port = 1;
    c.access_flags = 0xe;
    c.path_mtu = mtu;
    c.remote_qpn = numbers_.qpn;
    c.receive_psn = c.send_psn = kFirstPsn;
    c.max_rd_atomic = c.max_dest_rd_atomic = 4;
    c.min_rnr_timer = 1;
    c.timeout = 8;
    c.retry_count = 3;
    c.rnr_retry = 3;
    std::ranges::copy(Node::gid_of(peer), c.path.remote_gid);
    c.path.remote_mac[5] = peer;
    if (transport_ == abi::Transport::ud) {
      c.qkey = kQkey;
      modify(abi::QpState::init, kPkeyIndex | kPort | abi::qp_attr::kQkey, c);
      modify(abi::QpState::rtr, 0, c);
      return modify(abi::QpState::rts, kSendPsn, c);
    }
    const bool unreliable = transport_ == abi::Transport::uc;
    const bool answers = !unreliable && transport_ != abi::Transport::xrc_send;
    const bool requests = !unreliable && transport_ != abi::Transport::xrc_recv;
    modify(abi::QpState::init, kPkeyIndex | kPort | kAccessFlags, c);
    modify(abi::QpState::rtr,
           kPath | kPathMtu | kRemoteQpn | kReceivePsn | (answers ? kMaxDestRdAtomic | kMinRnrTimer : 0), c);
    modify(abi::QpState::rts,
           kSendPsn | (unreliable ? 0 : kTimeout) | (requests ? kRetryCount | kRnrRetry | kMaxRdAtomic : 0), c);
  }

  // --- Work requests.
  struct Request {
    abi::SendOpcode opcode = abi::SendOpcode::write;
    std::uint64_t address = 0;
    std::uint32_t length = 0;
    std::uint64_t remote_address = 0;
    std::uint32_t rkey = 0;
    std::uint32_t lkey = 0;  // 0: the QP's own
    std::uint32_t srqn = 0;  // XRC
  };
  void post_send(const Request& request) {
    std::array<std::byte, abi::kSendBlock> wqe{};
    std::size_t at = sizeof(abi::ControlSegment);
    const auto put = [&](const auto& segment) {
      std::memcpy(wqe.data() + at, &segment, sizeof segment);
      at += sizeof segment;
    };
    const bool atomic = request.opcode == abi::SendOpcode::compare_swap || request.opcode == abi::SendOpcode::fetch_add;
    if (transport_ == abi::Transport::xrc_send) {
      abi::XrcSegment queue;
      queue.srqn = request.srqn;
      put(queue);
    }
    if (request.rkey != 0) {
      abi::RemoteAddressSegment remote;
      remote.address = request.remote_address;
      remote.rkey = request.rkey;
      put(remote);
    }
    if (atomic) put(abi::AtomicSegment{});
    if (request.length != 0) put(data_segment(request.address, request.length, request.lkey));
    abi::ControlSegment control;
    control.opcode = request.opcode;
    control.wqe_index = producer;
    control.segments = static_cast<std::uint8_t>(at / 16);
    control.qpn_flags = numbers_.qpn << 8 | abi::ControlSegment::kSignaled;
    std::memcpy(wqe.data(), &control, sizeof control);
    node_.host.put(send_ring + std::uint64_t{abi::kSendBlock} * (producer & ((1u << kLogBlocks) - 1)), wqe);
    ++producer;
    write_record();
    ring(producer);
  }
  void post_receive(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey = 0) {
    abi::DataSegment entry[2];
    entry[0] = data_segment(address, bytes, lkey);
    entry[1].lkey = abi::kInvalidLkey;
    node_.host.put(receive_ring + (std::uint64_t{receive_producer} % (1u << kLogReceives) << kLogStride), entry);
    ++receive_producer;
    write_record();
  }
  void ring(std::uint32_t value) { write_uar(abi::uar::kSendDoorbell, std::uint64_t{numbers_.qpn} << 32 | value); }
  void write_uar(std::uint32_t offset, std::uint64_t value) {
    node_.write_be(abi::kUarBase + numbers_.uar_page * abi::kUarPageSize + offset, value);
  }
  void write_record() {
    abi::QpDoorbellRecord words;
    words.receive_producer = receive_producer;
    words.send_producer = producer;
    node_.host.put(record, words);
  }

  // --- Completions. which: 0 send CQ, 1 receive CQ.
  std::optional<abi::Cqe> poll(std::size_t which) {
    auto& cq = cqs_[which];
    if (cq.ring == 0) return node_.poll(numbers_.first_cqn + std::uint32_t(which));
    const auto cqe = node_.host.get<abi::Cqe>(cq.ring + sizeof(abi::Cqe) * (cq.consumer & ((1u << kLogCqes) - 1)));
    if ((cqe.opcode_owner >> 4) == 0xf || (cqe.opcode_owner & 1) != (cq.consumer >> kLogCqes & 1)) return std::nullopt;
    ++cq.consumer;
    abi::CqDoorbellRecord words;
    words.consumer = cq.consumer & nic::kCounterMask;
    node_.host.put(cq.record, words);
    return cqe;
  }
  std::optional<abi::Cqe> wait(std::size_t which) {
    for (int i = 0; i < 1000; ++i) {
      if (auto cqe = poll(which)) return cqe;
      sc_core::sc_start(1, sc_core::SC_US);
    }
    return std::nullopt;
  }

  abi::Qpc query() {
    abi::CommandHeader query;
    query.opcode = std::uint16_t(abi::CommandOpcode::query_qp);
    query.object = numbers_.qpn;
    must(query);
    return node_.output<abi::QueryQp>().context;
  }
  abi::DataSegment data_segment(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey) const {
    abi::DataSegment data;
    data.byte_count = bytes;
    data.lkey = lkey != 0 ? lkey : numbers_.key;
    data.address = address;
    return data;
  }

  const QpNumbers& numbers() const { return numbers_; }

  std::uint64_t buffer = 0;
  std::uint64_t send_ring = 0, receive_ring = 0, record = 0;
  std::uint16_t producer = 0, receive_producer = 0;

 private:
  struct Ring {
    std::uint64_t ring = 0;
    std::uint64_t record = 0;
    std::uint32_t consumer = 0;
  };
  abi::Qpc fixed_context() const {
    const bool receives = transport_ != abi::Transport::xrc_send;
    abi::Qpc c;
    c.transport = transport_;
    c.log_send_blocks = kLogBlocks;
    if (receives) {
      c.log_receive_wqes = kLogReceives;
      c.log_receive_stride = kLogStride;
      c.receive_ring = receive_ring;
    }
    c.flags = std::uint8_t(abi::Qpc::kHasSend | (receives ? abi::Qpc::kHasReceive : 0));
    c.uar_page = static_cast<std::uint16_t>(numbers_.uar_page);
    c.pd = numbers_.pd;
    c.pasid = nic::test::kPasid;
    c.send_cqn = numbers_.first_cqn;
    c.receive_cqn = numbers_.first_cqn + 1;
    c.send_ring = send_ring;
    c.doorbell_record = record;
    return c;
  }
  static abi::Qpc domain_context() {
    abi::Qpc c;
    c.transport = abi::Transport::xrc_recv;
    c.xrcd = kXrcd;
    return c;
  }
  template <class Mailbox>
  void must(const Mailbox& mailbox) {
    require(node_.command(mailbox) == abi::CommandStatus::ok, "a good command is refused");
  }
  void modify(abi::QpState to, std::uint32_t mask, const abi::Qpc& attributes) {
    abi::ModifyQp modify;
    modify.header.opcode = std::uint16_t(abi::CommandOpcode::modify_qp);
    modify.header.object = numbers_.qpn;
    modify.attributes = mask | abi::qp_attr::kState;
    modify.context = attributes;
    modify.context.state = to;
    must(modify);
  }
  void create_cq(std::uint32_t which) {
    auto& ring = cqs_[which];
    ring = {node_.host.allocate(sizeof(abi::Cqe) << kLogCqes), node_.host.allocate(64), 0};
    for (std::uint32_t i = 0; i < 1u << kLogCqes; ++i) {
      abi::Cqe empty;
      empty.opcode_owner = abi::Cqe::kInitialOwner;
      node_.host.put(ring.ring + sizeof empty * i, empty);
    }
    node_.host.put(ring.record, abi::CqDoorbellRecord{});
    abi::CreateCq cq;
    cq.header.opcode = std::uint16_t(abi::CommandOpcode::create_cq);
    cq.header.object = numbers_.first_cqn + which;
    cq.context.log_entries = kLogCqes;
    cq.context.uar_page = static_cast<std::uint16_t>(numbers_.uar_page);
    cq.context.pasid = nic::test::kPasid;
    cq.context.ring = ring.ring;
    cq.context.doorbell_record = ring.record;
    cq.context.eqn = 1;
    must(cq);
  }

  Node& node_;
  const QpNumbers numbers_;
  const abi::Transport transport_;
  std::array<Ring, 2> cqs_;
};

// Function-level reset, then the node's bring-up from its start.
inline void restart(Node& node) {
  node.host.config_write(abi::config::kDeviceControl, abi::config::kFunctionLevelReset, 2);
  node.host.heap = nic::test::kMemoryBase;
  node.host.landed.clear();
  node.host.interrupts.clear();
  node.bring_up();
}

class Stage {
 public:
  static constexpr std::uint8_t kA = 1, kB = 2;

  // The stage of this process, reset for the next input. Every 256th use builds a new stage, so that no state
  // accumulates.
  static Stage& fresh() {
    static std::unique_ptr<Stage> stage;
    static int uses = 0;
    if (!stage || ++uses % 256 == 0) {
      stage.reset();
      sc_core::sc_get_curr_simcontext()->reset();
      testing::GTEST_FLAG(break_on_failure) = true;
      stage = std::make_unique<Stage>();
    }
    stage->start();
    return *stage;
  }

  // The witness QPs work: a WRITE in one direction and a SEND in the other.
  void check() {
    for (const bool forth : {true, false}) {
      auto& from = forth ? *witness_a_ : *witness_b_;
      auto& to = forth ? *witness_b_ : *witness_a_;
      auto& from_host = forth ? cable_.a.host : cable_.b.host;
      auto& to_host = forth ? cable_.b.host : cable_.a.host;
      constexpr std::uint32_t kBytes = 3000;
      for (std::uint32_t i = 0; i < kBytes; ++i)
        *from_host.at(from.buffer + i) = static_cast<std::byte>(i * 7 + ++salt_);
      if (!forth) to.post_receive(to.buffer + kBytes, kBytes);
      const auto opcode = forth ? abi::SendOpcode::write : abi::SendOpcode::send;
      from.post_send({.opcode = opcode,
                      .address = from.buffer,
                      .length = kBytes,
                      .remote_address = to.buffer + kBytes,
                      .rkey = forth ? kWitness.key : 0});
      const auto sent = from.wait(0);
      require(sent && sent->syndrome == abi::CqeSyndrome::success, "the witness QP cannot send");
      const auto taken = forth ? sent : to.wait(1);
      require(taken && taken->syndrome == abi::CqeSyndrome::success, "the witness QP cannot receive");
      require(std::equal(from_host.at(from.buffer), from_host.at(from.buffer + kBytes), to_host.at(to.buffer + kBytes)),
              "the witness QP's data is wrong");
    }
  }
  // Resets both devices and connects the witnesses again.
  void restart() { start(); }
  // Waits until retries, RNR timers and other timers have ended (3 s).
  static void settle() { sc_core::sc_start(3, sc_core::SC_SEC); }

  Node& a() { return cable_.a; }
  Node& b() { return cable_.b; }
  RawQp& victim_a() { return *victim_a_; }
  RawQp& victim_b() { return *victim_b_; }
  RawQp& uc_at_b() { return *uc_; }
  RawQp& ud_at_b() { return *ud_; }
  RawQp& xrc_at_a() { return *xrc_a_; }
  RawQp& xrc_at_b() { return *xrc_b_; }
  nic::test::SharedRing& shared_at_b() { return *shared_; }
  HostPages& pages_of(const Node& node) { return &node == &cable_.a ? pages_a_ : pages_b_; }

  Stage() = default;

 private:
  void start() {
    for (auto* node : {&cable_.a, &cable_.b}) fuzz::restart(*node);
    const auto make = [](Node& node, const QpNumbers& numbers, std::uint8_t peer, bool own,
                         abi::Transport transport = abi::Transport::rc) {
      auto qp = std::make_unique<RawQp>(node, numbers, transport);
      qp->create(own);
      qp->connect(peer);
      return qp;
    };
    victim_a_ = make(cable_.a, kVictim, kB, false);
    victim_b_ = make(cable_.b, kVictim, kA, false);
    uc_ = make(cable_.b, kUc, kA, true, abi::Transport::uc);
    ud_ = make(cable_.b, kUd, kA, true, abi::Transport::ud);
    witness_a_ = make(cable_.a, kWitness, kB, true);
    witness_b_ = make(cable_.b, kWitness, kA, true);
    xrc_a_ = make(cable_.a, kXrc, kB, true, abi::Transport::xrc_send);
    xrc_b_ = make(cable_.b, kXrc, kA, true, abi::Transport::xrc_recv);
    nic::test::SharedRing::map_contexts(cable_.b);
    shared_ = make_shared(kSrqn, kXrcd);
    make_shared(kStrangeSrqn, kStrangeXrcd);
    make_shared(kOrdinarySrqn, 0);
    for (auto* node : {&cable_.a, &cable_.b}) register_more(*node);
  }
  // `xrcd` 0: an ordinary SRQ without XRC domain.
  std::unique_ptr<nic::test::SharedRing> make_shared(std::uint32_t srqn, std::uint32_t xrcd) {
    auto ring = std::make_unique<nic::test::SharedRing>(cable_.b, srqn);
    auto mailbox = ring->mailbox();
    if (xrcd != 0) {
      mailbox.context.flags = abi::Srqc::kXrc;
      mailbox.context.xrcd = xrcd;
      mailbox.context.cqn = kXrc.first_cqn + 1;
    }
    require(cable_.b.command(mailbox) == abi::CommandStatus::ok, "a shared receive queue is refused");
    return ring;
  }
  void register_more(Node& node) {
    auto on_device = node.region(kDeviceKey, 0, kDeviceBytes, 0xf | abi::access::kZeroBased);
    on_device.context.kind = abi::MptKind::device_memory;
    require(node.command(on_device) == abi::CommandStatus::ok, "a region of device memory is refused");
    auto& pages = pages_of(node);
    pages.restart();
    auto on_demand =
        node.region(kPagedKey, pages.base, HostPages::kBytes, 0xf | abi::access::kZeroBased | abi::access::kOnDemand);
    on_demand.context.start = 0;
    require(node.command(on_demand) == abi::CommandStatus::ok, "a region on demand is refused");
  }

  nic::test::Cable cable_{nic::NicParams{}};
  HostPages pages_a_{cable_.a}, pages_b_{cable_.b};
  std::unique_ptr<RawQp> victim_a_, victim_b_, uc_, ud_, witness_a_, witness_b_, xrc_a_, xrc_b_;
  std::unique_ptr<nic::test::SharedRing> shared_;
  std::uint32_t salt_ = 0;
};

}  // namespace rnicsim::fuzz
