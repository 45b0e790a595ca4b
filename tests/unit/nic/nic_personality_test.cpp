// SPDX-License-Identifier: Apache-2.0
// The NIC as another device (little_device.h): bring-up, SEND, WRITE and READ; only the personality knows the layouts.
#include "model/fabric/link.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "model/roce/qp_state.h"
#include "tests/unit/nic/little_device.h"
#include "tests/unit/nic/scripted_node.h"

namespace rnicsim::nic::test::personality {
namespace {

using little::Opcode;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kPage = 5;
constexpr std::uint8_t kLogSends = 5;  // blocks
constexpr std::uint32_t kBlock = 32;
constexpr std::uint32_t kCqeBytes = 48;
constexpr std::uint32_t kEqeBytes = 16;

struct LittleCqe {
  std::uint64_t timestamp = 0;
  std::uint32_t immediate = 0;
  std::uint32_t byte_count = 0;
  std::uint32_t qpn = 0;
  std::uint16_t wqe_counter = 0;
  std::uint8_t brought = 0;
  roce::Status status{};
  std::uint8_t opcode = 0;
  std::uint8_t phase = 0;
};

// A host with such a device, its driver, and one QP.
class LittleNode {
 public:
  LittleNode(const char* name, const NicParams& params, std::uint8_t number)
      : host((std::string(name) + "_host").c_str()),
        nic((std::string(name) + "_nic").c_str(), params, make_model_engine, personality_),
        number_(number) {
    host.bar.bind(nic.bar());
    host.config.bind(nic.config());
    nic.dma().bind(host.upstream);
  }

 private:
  const LittlePersonality personality_;

 public:
  Host host;
  Nic nic;
  std::uint64_t buffer = 0;
  std::uint64_t qpcs = 0;  // contexts of QPs in ICM

  void bring_up() {
    host.config_write(0x04, 6, 2);
    const std::uint32_t vector[] = {static_cast<std::uint32_t>(abi::kMsiWindow) + 16, 0, 1, 0};
    for (std::uint32_t i = 0; i < 4; ++i) write(little::kMsixTable + 16 + 4 * i, vector[i]);
    host.config_write(0xa2, 1u << 15, 2);
    queue_ = host.allocate(4096);
    mailbox_ = host.allocate(4096);
    output_ = host.allocate(4096);
    write(little::kCommandQueue, queue_);
    for (std::uint32_t table = 0; table < 4; ++table) {
      const auto memory = host.allocate(64 * personality_.layout.contexts[table]);
      if (table == 0) qpcs = memory;
      expect_ok(CommandOpcode::map_icm, 0, IcmRange{IcmTable(table), 0, 64, memory});
    }
    expect_ok(CommandOpcode::initialize, 0);
    for (std::uint32_t eqn = 0; eqn < 2; ++eqn) {
      eqs_[eqn] = host.allocate(64 * kEqeBytes);
      expect_ok(CommandOpcode::create_eq, eqn,
                EventQueueContext{.log_entries = 6, .vector = std::uint16_t(eqn), .ring = eqs_[eqn]});
    }
    for (const auto cqn : {kSendCqn, kReceiveCqn}) create_cq(cqn);
    expect_ok(CommandOpcode::set_gid, 1, GidSetting{0, true, {0, 0, 0, 0, 0, number_}, Node::gid_of(number_)});
    buffer = host.allocate(1 << 20);
    expect_ok(CommandOpcode::create_mpt, kKey >> 8,
              MemoryRegion{.key = kKey,
                           .pd = kPd,
                           .pasid = kPasid,
                           .access = 0xf,
                           .start = buffer,
                           .length = 1 << 20,
                           .bus_address = buffer});
    create_qp();
  }

  void connect(const LittleNode& peer) {
    using namespace roce::attr;
    QpModification modify;
    auto& c = modify.context;
    c.port = 1;
    c.access_flags = 0xe;
    c.path_mtu = 3;
    c.remote_qpn = kQpn;
    c.receive_psn = c.send_psn = 0xfffff0;
    c.max_rd_atomic = c.max_dest_rd_atomic = 4;
    c.min_rnr_timer = 1;
    c.timeout = 8;
    c.retry_count = c.rnr_retry = 3;
    c.path.remote_gid = Node::gid_of(peer.number_);
    c.path.remote_mac[5] = peer.number_;
    const auto go = [&](roce::QpState to, std::uint32_t attributes) {
      c.state = to;
      modify.attributes = kState | attributes;
      expect_ok(CommandOpcode::modify_qp, kQpn, modify);
    };
    go(roce::QpState::init, kPkeyIndex | kPort | kAccess);
    go(roce::QpState::rtr, kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer);
    go(roce::QpState::rts, kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic);
  }

  CommandStatus command(std::uint16_t code, std::uint32_t object, auto&&... input) {
    Bytes mailbox(512);
    LittleWriter write_mailbox(mailbox);
    write_mailbox(object);
    write_mailbox(code);
    write_mailbox(std::uint16_t{0});
    (little::fields(write_mailbox, input), ...);
    std::ranges::copy(mailbox, host.at(mailbox_));
    LittleWriter entry(std::span(host.at(queue_ + 40), 40));  // the second entry
    for (const auto head : {little::kDevices, std::uint8_t{0}, std::uint8_t{0}, std::uint8_t{0}}) entry(head);
    entry(std::uint32_t{512});
    entry(std::uint32_t(mailbox.size()));
    entry(output_);
    entry(mailbox_);
    write(little::kExecute, std::uint8_t{1});
    const auto* done = host.at(queue_ + 40);
    for (int i = 0; i < 100 && done[0] != std::byte{1}; ++i) sc_core::sc_start(1, sc_core::SC_US);
    EXPECT_EQ(done[0], std::byte{1});
    return static_cast<CommandStatus>(done[1]);
  }
  void expect_ok(CommandOpcode opcode, std::uint32_t object, auto&&... input) {
    EXPECT_EQ(command(little::code_of(opcode), object, input...), CommandStatus::ok) << int(opcode);
  }
  QpContext query() {
    expect_ok(CommandOpcode::query_qp, kQpn);
    return context_at(output_ + little::kResultHead);
  }
  QpContext context_at(std::uint64_t address) {
    QpContext context;
    personality_.decode(std::span(host.at(address), 192), context);
    return context;
  }

  void post_send(Opcode opcode, std::uint32_t length, std::uint64_t remote = 0, std::uint32_t immediate = 0,
                 std::uint64_t from = 0) {
    Bytes wqe(2 * kBlock);
    LittleWriter fill(wqe);
    fill(std::uint8_t{2});
    fill(opcode);
    fill(little::kSignaled);
    fill(std::uint8_t{1});
    fill(sends_);
    fill(std::uint16_t{0});
    fill(kQpn);
    fill(immediate);
    fill(remote);
    fill(kKey);
    segment(fill, from == 0 ? buffer : from, length);
    for (std::size_t block = 0; block < 2; ++block, ++sends_)
      std::ranges::copy(std::span(wqe).subspan(block * kBlock, kBlock),
                        host.at(send_ring_ + kBlock * (sends_ % (1u << kLogSends))));
    ring(little::Ring::send, kQpn, sends_);
  }
  void post_receive(std::uint64_t address, std::uint32_t bytes) {
    LittleWriter fill(std::span(host.at(receive_ring_ + 64 * (receives_ % 16)), 64));
    fill(std::uint32_t{1});
    segment(fill, address, bytes);
    ++receives_;
    LittleWriter(std::span(host.at(record_ + 8), 2))(receives_);
  }
  void ring(little::Ring what, std::uint32_t number, std::uint32_t position) {
    std::array<std::byte, little::kDoorbellBytes> bell{};
    LittleWriter fill(bell);
    fill(position);
    fill(number);
    fill(what);
    host.mmio(little::kUar + (what == little::Ring::events ? 0 : kPage) * little::kUarPageBytes + little::kDoorbell,
              bell);
  }

  std::optional<LittleCqe> wait(std::uint32_t cqn) {
    auto& cq = cqs_[cqn];
    const auto* at = host.at(cq.ring + kCqeBytes * (cq.consumer % 4));
    const auto phase = std::byte(1 + (cq.consumer >> 2 & 1));
    for (int i = 0; i < 1000 && at[25] != phase; ++i) sc_core::sc_start(100, sc_core::SC_NS);
    if (at[25] != phase) return std::nullopt;
    LittleCqe cqe;
    LittleReader read(std::span(at, kCqeBytes));
    read(cqe.timestamp);
    read(cqe.immediate);
    read(cqe.byte_count);
    read(cqe.qpn);
    read(cqe.wqe_counter);
    read(cqe.brought);
    read(cqe.status);
    read(cqe.opcode);
    read(cqe.phase);
    ++cq.consumer;
    LittleWriter(std::span(host.at(cq.record), 4))(cq.consumer << 8);
    return cqe;
  }
  std::pair<std::uint32_t, EventType> event(std::uint32_t eqn) {
    LittleReader read(std::span(host.at(eqs_[eqn]), kEqeBytes));
    const auto number = read.take<std::uint32_t>();
    const auto type = read.take<EventType>();
    EXPECT_EQ(read.take<std::uint8_t>(), 1);
    return {number, type};
  }
  void expect_success(std::uint32_t cqn, std::uint32_t bytes) {
    const auto cqe = wait(cqn);
    ASSERT_TRUE(cqe);
    EXPECT_EQ(cqe->status, roce::Status::success);
    EXPECT_EQ(cqe->byte_count, bytes);
    EXPECT_EQ(cqe->qpn, kQpn);
    EXPECT_NE(cqe->timestamp, 0u);
  }
  void fill(std::uint64_t at, std::uint32_t bytes, unsigned seed) {
    for (std::uint32_t i = 0; i < bytes; ++i) host.at(at)[i] = std::byte((i * 131 + seed) ^ (i >> 8));
  }
  Bytes content(std::uint64_t at, std::uint32_t bytes) { return {host.at(at), host.at(at) + bytes}; }

 private:
  struct Cq {
    std::uint64_t ring = 0;
    std::uint64_t record = 0;
    std::uint32_t consumer = 0;
  };
  template <class T>
  void write(std::uint64_t offset, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    LittleWriter{bytes}(value);
    EXPECT_TRUE(host.mmio(offset, bytes));
  }
  static void segment(LittleWriter& fill, std::uint64_t address, std::uint32_t bytes) {
    fill(bytes);
    fill(address);
    fill(kKey);
  }
  void create_cq(std::uint32_t cqn) {
    cqs_[cqn] = {host.allocate(4 * kCqeBytes), host.allocate(64), 0};
    expect_ok(CommandOpcode::create_cq, cqn,
              CompletionQueue{.log_entries = 2,
                              .uar_page = kPage,
                              .pasid = kPasid,
                              .ring = cqs_[cqn].ring,
                              .doorbell_record = cqs_[cqn].record,
                              .eqn = 1});
  }
  void create_qp() {
    send_ring_ = host.allocate(kBlock << kLogSends);
    receive_ring_ = host.allocate(16 * 64);
    record_ = host.allocate(64);
    expect_ok(CommandOpcode::create_qp, kQpn,
              QpContext{.log_send_blocks = kLogSends,
                        .log_receive_wqes = 4,
                        .log_receive_stride = 6,
                        .inline_receive = 8,
                        .has_send = true,
                        .has_receive = true,
                        .uar_page = kPage,
                        .pd = kPd,
                        .pasid = kPasid,
                        .send_cqn = kSendCqn,
                        .receive_cqn = kReceiveCqn,
                        .send_ring = send_ring_,
                        .receive_ring = receive_ring_,
                        .doorbell_record = record_});
  }

  const std::uint8_t number_;
  std::uint64_t queue_ = 0, mailbox_ = 0, output_ = 0;
  std::uint64_t send_ring_ = 0, receive_ring_ = 0, record_ = 0;
  std::uint16_t sends_ = 0;
  std::uint16_t receives_ = 0;
  std::array<Cq, 3> cqs_;
  std::array<std::uint64_t, 2> eqs_{};
};

// Base class that is destroyed last: the next test gets a new kernel.
struct FreshKernel {
  ~FreshKernel() { sc_core::sc_get_curr_simcontext()->reset(); }
};

class LittleDevices : public FreshKernel, public testing::Test {
 protected:
  LittleDevices() {
    a.nic.frame_out().bind([this](Frame frame) { link_.send(0, std::move(frame)); });
    b.nic.frame_out().bind([this](Frame frame) { link_.send(1, std::move(frame)); });
    link_.out(0).bind([this](Frame frame, Duration delay) { a.nic.receive(std::move(frame), delay); });
    link_.out(1).bind([this](Frame frame, Duration delay) { b.nic.receive(std::move(frame), delay); });
    for (auto* node : {&a, &b}) node->bring_up();
    a.connect(b);
    b.connect(a);
  }
  // Only one CQ's context is on the device: the others lie in ICM.
  static NicParams params() {
    NicParams params;
    params.contexts.cqc = {.l0_entries = 1, .l1_entries = 1};
    return params;
  }

  fabric::Link link_{"link", {}};
  LittleNode a{"a", params(), 1};
  LittleNode b{"b", params(), 2};
};

TEST_F(LittleDevices, ASendIsReceived) {
  a.fill(a.buffer, 3000, 1);
  b.post_receive(b.buffer + 5000, 4000);
  a.post_send(Opcode::send_imm, 3000, 0, 0x12345678);
  const auto cqe = b.wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->status, roce::Status::success);
  EXPECT_EQ(cqe->opcode, 0x40 + int(CqeOpcode::receive_send_with_imm));
  EXPECT_EQ(cqe->immediate, 0x12345678u);
  EXPECT_EQ(cqe->byte_count, 3000u);
  EXPECT_EQ(b.content(b.buffer + 5000, 3000), a.content(a.buffer, 3000));
  a.expect_success(kSendCqn, 3000);
}

TEST_F(LittleDevices, WritesAndReadsGoRoundTheRings) {
  for (unsigned round = 0; round < 20; ++round) {
    a.fill(a.buffer, 9000, round);
    a.post_send(Opcode::write, 9000, b.buffer + 100);
    a.expect_success(kSendCqn, 9000);
    EXPECT_EQ(b.content(b.buffer + 100, 9000), a.content(a.buffer, 9000)) << round;
    b.fill(b.buffer + 20'000, 700, round + 7);
    a.post_send(Opcode::read, 700, b.buffer + 20'000, 0, a.buffer + 50'000);
    a.expect_success(kSendCqn, 700);
    EXPECT_EQ(a.content(a.buffer + 50'000, 700), b.content(b.buffer + 20'000, 700)) << round;
  }
}

TEST_F(LittleDevices, AShortSendComesInItsCqe) {
  a.fill(a.buffer, 8, 3);
  b.post_receive(b.buffer, 64);
  a.post_send(Opcode::send, 8);
  const auto cqe = b.wait(kReceiveCqn);
  ASSERT_TRUE(cqe);
  EXPECT_EQ(cqe->brought, 8);
  EXPECT_EQ(b.nic.counters().completion.inline_cqes, 1u);
}

// Contexts of evicted queues are fetched from ICM, in this device's layout.
TEST_F(LittleDevices, ContextsStandInIcm) {
  for (int i = 0; i < 6; ++i) {
    b.post_receive(b.buffer, 64);
    a.post_send(Opcode::send, 16);
    a.expect_success(kSendCqn, 16);
    b.expect_success(kReceiveCqn, 16);
    a.post_receive(a.buffer, 64);
    b.post_send(Opcode::send, 16);
    b.expect_success(kSendCqn, 16);
    a.expect_success(kReceiveCqn, 16);
  }
  EXPECT_GT(a.nic.counters().contexts.cqc.misses, 6u);
  EXPECT_GT(a.nic.counters().contexts.fills, 6u);
  const auto context = a.context_at(a.qpcs + 192 * kQpn);
  EXPECT_EQ(context.state, roce::QpState::rts);
  EXPECT_EQ(context.path.remote_gid, Node::gid_of(2));
  const auto now = a.query();
  EXPECT_EQ(now.send_consumer, 12u) << "blocks";
  EXPECT_EQ(now.next_send_psn, 0xfffff6u);
}

TEST_F(LittleDevices, AnArmedCqRaisesAnEventAndAnInterrupt) {
  a.ring(little::Ring::arm, kSendCqn, 0);
  a.host.interrupts.clear();
  a.post_send(Opcode::write, 8, b.buffer);
  a.expect_success(kSendCqn, 8);
  sc_core::sc_start(10, sc_core::SC_US);
  EXPECT_EQ(a.event(1), std::pair(kSendCqn, EventType::completion));
  EXPECT_EQ(a.host.interrupts, std::vector<std::uint64_t>{1});
}

// Writes in the layout of the rnic driver are refused.
TEST_F(LittleDevices, TheOtherLayoutIsRefused) {
  const std::array<std::byte, 8> bell{};
  EXPECT_TRUE(a.host.mmio(little::kUar + kPage * little::kUarPageBytes + abi::uar::kSendDoorbell, bell));
  EXPECT_EQ(a.nic.counters().doorbell.doorbell_malformed, 1u);
  EXPECT_FALSE(a.host.mmio(abi::reg::kCommandQueueBase, bell));
  EXPECT_EQ(a.command(std::uint16_t(CommandOpcode::query_qp), kQpn), CommandStatus::bad_opcode);
}

}  // namespace
}  // namespace rnicsim::nic::test::personality
