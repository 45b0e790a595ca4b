// SPDX-License-Identifier: Apache-2.0
// Many QPs between the two nodes of a cable. QP i of one node is connected to QP i of the other.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/nic/nic_pair.h"
#include "tests/unit/nic/objects/shared_ring.h"

namespace rnicsim::nic::test {

constexpr std::uint32_t kFirstQpn = 0x20;
constexpr std::uint32_t kAreaBytes = 8192;  // bytes of a node's buffer for each QP

class QueuePairs {
 public:
  using Change = std::function<void(std::uint32_t, abi::Qpc&)>;
  QueuePairs(
      Node& node, std::uint32_t count, std::uint32_t first = kFirstQpn, Change change = [](std::uint32_t, abi::Qpc&) {})
      : node_(node), first_(first), change_(std::move(change)), rings_(count) {
    for (std::uint32_t i = 0; i < count; ++i) create(i);
  }
  std::uint32_t count() const { return static_cast<std::uint32_t>(rings_.size()); }
  std::uint32_t qpn(std::uint32_t i) const { return first_ + i; }
  std::uint32_t index(std::uint32_t qpn) const { return qpn - first_; }
  std::uint64_t area(std::uint32_t i) const { return node_.buffer + std::uint64_t{i} * kAreaBytes; }

  void create(std::uint32_t i) {
    auto& ring = rings_[i];
    ring = {node_.host.allocate(64 << kLogBlocks), node_.host.allocate(std::size_t{1} << (kLogReceives + kLogStride)),
            node_.host.allocate(64)};
    abi::CreateQp qp;
    qp.header.opcode = std::uint16_t(abi::CommandOpcode::create_qp);
    qp.header.object = qpn(i);
    qp.context = Node::fixed_context(ring.send, ring.receive, ring.record);
    change_(i, qp.context);
    EXPECT_EQ(node_.command(qp), abi::CommandStatus::ok);
  }
  abi::CommandStatus command(std::uint32_t i, abi::CommandOpcode opcode) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = qpn(i);
    return node_.command(header);
  }
  abi::Qpc query(std::uint32_t i) {
    EXPECT_EQ(command(i, abi::CommandOpcode::query_qp), abi::CommandStatus::ok);
    return node_.output<abi::QueryQp>().context;
  }
  abi::CommandStatus modify(std::uint32_t i, abi::QpState to, std::uint32_t mask = 0, const abi::Qpc& attributes = {}) {
    abi::ModifyQp modify;
    modify.header.opcode = std::uint16_t(abi::CommandOpcode::modify_qp);
    modify.header.object = qpn(i);
    modify.attributes = mask | abi::qp_attr::kState;
    modify.context = attributes;
    modify.context.state = to;
    return node_.command(modify);
  }
  // Context of a connected QP; `peer`: number of the peer's node, 1 or 2.
  abi::Qpc attributes(std::uint32_t i, std::uint8_t peer, std::uint32_t peer_qpn) const {
    abi::Qpc c;
    c.port = 1;
    c.access_flags = 0xe;
    c.path_mtu = 3;
    c.remote_qpn = peer_qpn;
    c.receive_psn = c.send_psn = 0xfffff0 + i;
    c.max_rd_atomic = c.max_dest_rd_atomic = 4;
    c.min_rnr_timer = 1;
    c.timeout = 8;
    c.retry_count = 3;
    c.rnr_retry = 7;
    std::ranges::copy(Node::gid_of(peer), c.path.remote_gid);
    c.path.remote_mac[5] = peer;
    return c;
  }
  void connect(
      std::uint32_t i, std::uint8_t peer, const Node::Change& change = [](abi::Qpc&) {}) {
    using namespace abi::qp_attr;
    auto c = attributes(i, peer, qpn(i));
    change(c);
    EXPECT_EQ(modify(i, abi::QpState::init, kPkeyIndex | kPort | kAccessFlags, c), abi::CommandStatus::ok);
    EXPECT_EQ(
        modify(i, abi::QpState::rtr, kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer, c),
        abi::CommandStatus::ok);
    EXPECT_EQ(modify(i, abi::QpState::rts, kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic, c),
              abi::CommandStatus::ok);
  }

  void post(std::uint32_t i, const SendArguments& arguments) {
    auto& ring = rings_[i];
    std::vector<std::byte> wqe(64);
    abi::ControlSegment control;
    control.opcode = arguments.opcode;
    control.wqe_index = ring.sent;
    control.qpn_flags = qpn(i) << 8 | arguments.flags;
    control.immediate = arguments.immediate;
    std::size_t at = 16;
    const auto append = [&](const auto& segment) {
      std::memcpy(wqe.data() + at, &segment, 16);
      at += 16;
    };
    if (arguments.remote) {
      abi::RemoteAddressSegment remote;
      remote.address = arguments.remote->address;
      remote.rkey = arguments.remote->rkey;
      append(remote);
    }
    if (arguments.opcode == abi::SendOpcode::fetch_add) {
      abi::AtomicSegment atomic;
      atomic.swap_add = arguments.immediate;
      append(atomic);
    }
    if (arguments.length != 0) {
      abi::DataSegment data;
      data.byte_count = arguments.length;
      data.lkey = arguments.lkey;
      data.address = arguments.address != 0 ? arguments.address : area(i);
      append(data);
    }
    control.segments = static_cast<std::uint8_t>(at / 16);
    std::memcpy(wqe.data(), &control, 16);
    std::ranges::copy(wqe, node_.host.at(ring.send + 64ull * (ring.sent & ((1u << kLogBlocks) - 1))));
    ++ring.sent;
    write_record(ring);
    const auto page = abi::kUarBase + kUarPage * abi::kUarPageSize;
    if (arguments.blueflame) return void(node_.host.mmio(page + abi::uar::kBlueFlame0, wqe));
    node_.write_be(page + abi::uar::kSendDoorbell, std::uint64_t{qpn(i)} << 32 | ring.sent);
  }
  void post_receive(std::uint32_t i, std::uint64_t address, std::uint32_t bytes) {
    auto& ring = rings_[i];
    abi::DataSegment data[2];
    data[0].byte_count = bytes;
    data[0].lkey = kKey;
    data[0].address = address;
    data[1].lkey = abi::kInvalidLkey;
    node_.host.put(ring.receive + (std::uint64_t{ring.received} % (1u << kLogReceives) << kLogStride), data);
    ++ring.received;
    write_record(ring);
  }

 private:
  struct Ring {
    std::uint64_t send = 0, receive = 0, record = 0;
    std::uint16_t sent = 0, received = 0;
  };
  void write_record(const Ring& ring) {
    abi::QpDoorbellRecord record;
    record.receive_producer = ring.received;
    record.send_producer = ring.sent;
    node_.host.put(ring.record, record);
  }

  Node& node_;
  const std::uint32_t first_;
  const Change change_;
  std::vector<Ring> rings_;
};

class ManyPairs : public Pair {
 protected:
  void SetUp() override {}

  void build(
      const NicParams& params, std::uint32_t count, const Node::Change& change = [](abi::Qpc&) {}) {
    Pair::build(params);
    qa = std::make_unique<QueuePairs>(a(), count);
    qb = std::make_unique<QueuePairs>(b(), count);
    for (std::uint32_t i = 0; i < count; ++i) {
      qa->connect(i, 2, change);
      qb->connect(i, 1, change);
    }
  }
  Remote remote_of(std::uint32_t i, std::uint64_t offset = 0) { return {qb->area(i) + offset, kKey}; }
  // Polls up to `wanted` completions of `cqn`, all of which must be successful. Returns their number.
  int completions(Node& node, std::uint32_t cqn, int wanted, Duration limit = 30_ms) {
    int count = 0;
    for (const auto end = now() + limit; count < wanted && now() < end;) {
      const auto cqe = node.wait(cqn, 10_us);
      if (!cqe) continue;
      EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::success) << "qpn " << std::uint32_t(cqe->qpn);
      ++count;
    }
    return count;
  }
  // No packet was lost or retransmitted.
  void expect_no_trouble() {
    for (auto* node : {&a(), &b()}) {
      const auto counters = node->nic.counters();
      EXPECT_EQ(counters.engine.wrong_state, 0u);
      EXPECT_EQ(counters.engine.unknown_qp, 0u);
      EXPECT_EQ(counters.engine.out_of_sequence, 0u);
      EXPECT_EQ(counters.engine.duplicate_request, 0u);
      EXPECT_EQ(counters.engine.local_ack_timeout_err, 0u);
      EXPECT_EQ(counters.engine.doorbell_invalid, 0u);
      EXPECT_EQ(counters.pcie.dma_aborts, 0u);
    }
  }

  std::unique_ptr<QueuePairs> qa, qb;
};

}  // namespace rnicsim::nic::test
