// SPDX-License-Identifier: Apache-2.0
// A host, its NIC and a minimal driver with one QP.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/abi/command.h"
#include "model/abi/queue.h"
#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "model/nic/nic_params.h"
#include "model/nic/personality/contexts.h"
#include "model/roce/types.h"
#include "tests/unit/nic/scripted_host.h"

namespace rnicsim::nic::test {

using namespace rnicsim::literals;

constexpr std::uint32_t kQpn = 0x11;
constexpr std::uint32_t kSendCqn = 1;
constexpr std::uint32_t kReceiveCqn = 2;
constexpr std::uint32_t kUarPage = 3;
constexpr std::uint32_t kPd = 5;
constexpr Pasid kPasid = 9;
constexpr std::uint32_t kKey = 7 << 8 | 0x55;
constexpr std::uint8_t kLogBlocks = 6;
constexpr std::uint8_t kLogReceives = 5;
constexpr std::uint8_t kLogStride = 6;
constexpr std::uint8_t kLogCqes = 6;

struct Remote {
  std::uint64_t address;
  std::uint32_t rkey;
};
struct SendArguments {
  abi::SendOpcode opcode;
  std::uint32_t length = 0;
  std::optional<Remote> remote;
  std::uint64_t address = 0;  // 0: the node's buffer
  std::uint32_t lkey = kKey;
  std::uint32_t immediate = 0;
  std::uint32_t flags = abi::ControlSegment::kSignaled;
  bool blueflame = true;
  std::uint16_t index_error = 0;
  std::optional<abi::BindSegment> bind = {};
  std::optional<abi::RegisterSegment> registration = {};
};

// A host, its NIC, and one QP; the test calls each step of the bring-up.
class Node {
 public:
  Node(const char* name, const NicParams& params, std::uint8_t number)
      : host((std::string(name) + "_host").c_str()),
        nic((std::string(name) + "_nic").c_str(), params),
        number_(number) {
    host.bar.bind(nic.bar());
    host.config.bind(nic.config());
    nic.dma().bind(host.upstream);
  }

  Host host;
  Nic nic;
  std::array<std::uint64_t, 4> icm{};  // memory for the contexts of each table
  std::uint64_t buffer = 0;            // 1 MiB, registered with all access rights
  static constexpr std::uint32_t kBufferBytes = 1 << 20;

  void bring_up() {
    host.config_write(abi::config::kCommand, abi::config::kCommandMemory | abi::config::kCommandBusMaster, 2);
    for (std::uint32_t vector = 0; vector < 4; ++vector) {
      const std::uint32_t words[] = {static_cast<std::uint32_t>(abi::kMsiWindow + 16 * vector), 0, vector, 0};
      for (std::uint32_t i = 0; i < 4; ++i)
        write_be(abi::kMsixTable + 16 * vector + 4 * i, __builtin_bswap32(words[i]));
    }
    host.config_write(abi::config::kMsixControl, abi::config::kMsixEnable, 2);
    queue_ = host.allocate(4096);
    mailbox_ = host.allocate(4096);
    output_ = host.allocate(4096);
    write_be(abi::reg::kCommandQueueBase, queue_);
    for (std::uint32_t table = 0; table < 4; ++table) {
      abi::MapIcm map;
      map.header.opcode = std::uint16_t(abi::CommandOpcode::map_icm);
      map.table = table;
      map.count = 64;
      map.memory = icm[table] = host.allocate(64 * abi::kIcmEntryBytes[table]);
      expect_ok(map);
    }
    abi::CommandHeader initialize;
    initialize.opcode = std::uint16_t(abi::CommandOpcode::initialize);
    expect_ok(initialize);
    for (std::uint32_t eqn = 0; eqn < 2; ++eqn) create_eq(eqn);
    create_cq(kSendCqn);
    create_cq(kReceiveCqn);
    EXPECT_EQ(set_gid(), abi::CommandStatus::ok);
    buffer = host.allocate(kBufferBytes);
    register_memory(kKey, buffer, kBufferBytes, 0xf);
  }

  // `vlan` 0: no VLAN.
  abi::CommandStatus set_gid(std::uint16_t vlan = 0) {
    abi::SetGid set;
    set.header.opcode = std::uint16_t(abi::CommandOpcode::set_gid);
    set.header.object = 1;
    set.valid = 1;
    set.mac[5] = number_;
    set.vlan = vlan;
    std::ranges::copy(gid_of(number_), set.gid);
    return command(set);
  }
  void register_memory(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, std::uint32_t access) {
    expect_ok(region(key, address, bytes, access));
  }
  abi::CreateMpt region(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, std::uint32_t access) const {
    abi::CreateMpt mpt;
    mpt.header.opcode = std::uint16_t(abi::CommandOpcode::create_mpt);
    mpt.header.object = key >> 8;
    mpt.context.key = key;
    mpt.context.pd = kPd;
    mpt.context.pasid = kPasid;
    mpt.context.access_flags = access;
    mpt.context.start = mpt.context.bus_address = address;
    mpt.context.length = bytes;
    return mpt;
  }

  // Context fields that are fixed at creation.
  static abi::Qpc fixed_context(std::uint64_t send_ring, std::uint64_t receive_ring, std::uint64_t record) {
    abi::Qpc c;
    c.log_send_blocks = kLogBlocks;
    c.log_receive_wqes = kLogReceives;
    c.log_receive_stride = kLogStride;
    c.flags = abi::Qpc::kHasSend | abi::Qpc::kHasReceive;
    c.uar_page = kUarPage;
    c.pd = kPd;
    c.pasid = kPasid;
    c.send_cqn = kSendCqn;
    c.receive_cqn = kReceiveCqn;
    c.send_ring = send_ring;
    c.receive_ring = receive_ring;
    c.doorbell_record = record;
    return c;
  }

  using Change = std::function<void(abi::Qpc&)>;
  void create_qp() {
    send_ring = host.allocate(64 << kLogBlocks);
    receive_ring = host.allocate(std::size_t{1} << (kLogReceives + kLogStride));
    record_ = host.allocate(64);
    EXPECT_EQ(create_qp_anew([](abi::Qpc&) {}), abi::CommandStatus::ok);
  }
  // Creates the QP again on the same rings, after it was destroyed.
  abi::CommandStatus create_qp_anew(const Change& change) {
    abi::CreateQp qp;
    qp.header.opcode = std::uint16_t(abi::CommandOpcode::create_qp);
    qp.header.object = kQpn;
    qp.context = fixed_context(send_ring, receive_ring, record_);
    change(qp.context);
    return command(qp);
  }
  abi::CommandStatus destroy_qp() {
    abi::CommandHeader destroy;
    destroy.opcode = std::uint16_t(abi::CommandOpcode::destroy_qp);
    destroy.object = kQpn;
    return command(destroy);
  }

  void connect(
      const Node& peer, std::uint8_t mtu, const Change& change = [](abi::Qpc&) {}) {
    using namespace abi::qp_attr;
    abi::Qpc c;
    c.port = 1;
    c.access_flags = 0xe;
    c.path_mtu = mtu;
    c.remote_qpn = kQpn;
    c.receive_psn = c.send_psn = 0xfffff0;
    c.max_rd_atomic = c.max_dest_rd_atomic = 4;
    c.min_rnr_timer = 1;
    c.timeout = 8;
    c.retry_count = 3;
    c.rnr_retry = 3;
    const auto gid = gid_of(peer.number_);
    std::ranges::copy(gid, c.path.remote_gid);
    c.path.remote_mac[5] = peer.number_;
    change(c);
    EXPECT_EQ(modify(abi::QpState::init, kPkeyIndex | kPort | kAccessFlags, c), abi::CommandStatus::ok);
    EXPECT_EQ(
        modify(abi::QpState::rtr, kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer, c),
        abi::CommandStatus::ok);
    EXPECT_EQ(modify(abi::QpState::rts, kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic, c),
              abi::CommandStatus::ok);
  }
  abi::CommandStatus modify(abi::QpState to, std::uint32_t mask, const abi::Qpc& attributes = {}) {
    abi::ModifyQp modify;
    modify.header.opcode = std::uint16_t(abi::CommandOpcode::modify_qp);
    modify.header.object = kQpn;
    modify.attributes = mask | abi::qp_attr::kState;
    modify.context = attributes;
    modify.context.state = to;
    return command(modify);
  }

  // After a reset of the QP: the ring counters start from 0.
  void restart() {
    producer_ = receive_producer_ = 0;
    write_record();
  }

  template <class Mailbox>
  abi::CommandStatus command(const Mailbox& mailbox) {
    host.put(mailbox_, mailbox);
    abi::CommandEntry entry;
    entry.owner = 1;
    entry.input_bytes = sizeof(mailbox);
    entry.input = mailbox_;
    entry.output = output_;
    entry.output_bytes = 4096;
    return run_entry(entry);
  }
  abi::CommandStatus run_entry(const abi::CommandEntry& entry) {
    host.put(queue_, entry);
    write_be(abi::reg::kCommandDoorbell, 1u);
    for (int i = 0; i < 100 && host.get<abi::CommandEntry>(queue_).owner != 0; ++i)
      sc_core::sc_start(1, sc_core::SC_US);
    EXPECT_EQ(host.get<abi::CommandEntry>(queue_).owner, 0);
    return host.get<abi::CommandEntry>(queue_).status;
  }
  template <class Output>
  Output output() {
    return host.get<Output>(output_);
  }

  void post_send(const SendArguments& arguments) {
    std::vector<std::byte> wqe(64);
    abi::ControlSegment control;
    control.opcode = arguments.opcode;
    control.wqe_index = static_cast<std::uint16_t>(producer_ + arguments.index_error);
    control.qpn_flags = kQpn << 8 | arguments.flags;
    control.immediate = arguments.immediate;
    std::size_t at = 16;
    if (arguments.remote) {
      abi::RemoteAddressSegment remote;
      remote.address = arguments.remote->address;
      remote.rkey = arguments.remote->rkey;
      std::memcpy(wqe.data() + at, &remote, 16);
      at += 16;
    }
    if (arguments.bind) {
      std::memcpy(wqe.data() + at, &*arguments.bind, sizeof *arguments.bind);
      at += sizeof *arguments.bind;
    }
    if (arguments.registration) {
      std::memcpy(wqe.data() + at, &*arguments.registration, sizeof *arguments.registration);
      at += sizeof *arguments.registration;
    }
    if (arguments.length != 0) {
      abi::DataSegment data;
      data.byte_count = arguments.length;
      data.lkey = arguments.lkey;
      data.address = arguments.address != 0 ? arguments.address : buffer;
      std::memcpy(wqe.data() + at, &data, 16);
      at += 16;
    }
    control.segments = static_cast<std::uint8_t>(at / 16);
    std::memcpy(wqe.data(), &control, 16);
    post_raw(wqe, arguments.blueflame);
  }
  void post_raw(const std::vector<std::byte>& wqe, bool blueflame) {
    std::ranges::copy(wqe, host.at(send_ring + 64ull * (producer_ & ((1u << kLogBlocks) - 1))));
    producer_ = static_cast<std::uint16_t>(producer_ + wqe.size() / 64);
    write_record();
    const auto page = abi::kUarBase + kUarPage * abi::kUarPageSize;
    if (blueflame) return void(host.mmio(page + abi::uar::kBlueFlame0, wqe));
    write_be(page + abi::uar::kSendDoorbell, std::uint64_t{kQpn} << 32 | producer_);
  }
  void post_receive(std::uint64_t address, std::uint32_t bytes, std::uint32_t lkey = kKey) {
    abi::DataSegment data[2];
    data[0].byte_count = bytes;
    data[0].lkey = lkey;
    data[0].address = address;
    data[1].lkey = abi::kInvalidLkey;
    host.put(receive_ring + (std::uint64_t{receive_producer_} % (1u << kLogReceives) << kLogStride), data);
    ++receive_producer_;
    write_record();
  }

  // The next CQE, if the device has written it.
  std::optional<abi::Cqe> poll(std::uint32_t cqn) {
    auto& cq = cqs_[cqn];
    const auto cqe = host.get<abi::Cqe>(cq.ring + 64ull * (cq.consumer & ((1u << kLogCqes) - 1)));
    if ((cqe.opcode_owner >> 4) == 0xf || (cqe.opcode_owner & 1) != (cq.consumer >> kLogCqes & 1)) return std::nullopt;
    ++cq.consumer;
    abi::CqDoorbellRecord record;
    record.consumer = cq.consumer & kCounterMask;
    if (consumes) host.put(cq.record, record);
    return cqe;
  }
  std::optional<abi::Cqe> wait(std::uint32_t cqn, Duration limit = 1_ms) {
    for (const auto end = now() + limit; now() < end;) {
      if (auto cqe = poll(cqn)) return cqe;
      sc_core::sc_start(100, sc_core::SC_NS);
    }
    return poll(cqn);
  }
  abi::CqeSyndrome wait_status(std::uint32_t cqn, Duration limit = 1_ms) {
    const auto cqe = wait(cqn, limit);
    EXPECT_TRUE(cqe) << "no completion";
    return cqe ? cqe->syndrome : abi::CqeSyndrome::general_error;
  }
  void arm(std::uint32_t cqn, bool solicited) {
    write_be(abi::kUarBase + kUarPage * abi::kUarPageSize + abi::uar::kCqArm,
             std::uint64_t{cqn << 8 | std::uint32_t{solicited}} << 32 | cqs_[cqn].consumer);
  }
  std::optional<abi::Eqe> poll_eq(std::uint32_t eqn) {
    auto& eq = eqs_[eqn];
    const auto eqe = host.get<abi::Eqe>(eq.ring + sizeof(abi::Eqe) * (eq.consumer % 64));
    if ((eqe.owner & 1) != (eq.consumer >> 6 & 1)) return std::nullopt;
    ++eq.consumer;
    return eqe;
  }
  template <class T>
  void write_be(std::uint64_t offset, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    abi::store_be(bytes.data(), value);
    host.mmio(offset, bytes);
  }
  void fill(std::uint32_t seed) {
    for (std::uint32_t i = 0; i < kBufferBytes; ++i)
      *host.at(buffer + i) = static_cast<std::byte>((i * 131 + seed) ^ (i >> 8));
  }

  // Addresses of the memory shared with the device.
  std::uint64_t command_queue() const { return queue_; }
  std::uint64_t mailbox() const { return mailbox_; }
  std::uint64_t output_mailbox() const { return output_; }
  std::uint64_t event_ring(std::uint32_t eqn) const { return eqs_[eqn].ring; }
  std::uint64_t record() const { return record_; }
  std::uint64_t cq_ring(std::uint32_t cqn) const { return cqs_[cqn].ring; }
  std::uint64_t cq_record(std::uint32_t cqn) const { return cqs_[cqn].record; }
  std::uint16_t send_producer() const { return producer_; }

  std::uint64_t send_ring = 0;
  std::uint64_t receive_ring = 0;
  bool consumes = true;  // polling updates the consumer index for the device

  static roce::Gid gid_of(std::uint8_t number) {
    roce::Gid gid{};
    gid[10] = gid[11] = 0xff;
    gid[12] = 10;
    gid[15] = number;
    return gid;
  }

 private:
  struct Ring {
    std::uint64_t ring = 0;
    std::uint64_t record = 0;
    std::uint32_t consumer = 0;
  };
  template <class Mailbox>
  void expect_ok(const Mailbox& mailbox) {
    EXPECT_EQ(command(mailbox), abi::CommandStatus::ok) << "syndrome " << output<abi::CommandResult>().syndrome;
  }
  void create_eq(std::uint32_t eqn) {
    abi::CreateEq eq;
    eq.header.opcode = std::uint16_t(abi::CommandOpcode::create_eq);
    eq.header.object = eqn;
    eq.context.log_entries = 6;
    eq.context.msix_vector = static_cast<std::uint16_t>(eqn + 1);
    eqs_[eqn] = {host.allocate(64 * sizeof(abi::Eqe)), 0, 0};
    for (int i = 0; i < 64; ++i) host.at(eqs_[eqn].ring + 32 * i)[31] = std::byte{abi::Eqe::kInitialOwner};
    eq.context.ring = eqs_[eqn].ring;
    expect_ok(eq);
  }
  void create_cq(std::uint32_t cqn) {
    abi::CreateCq cq;
    cq.header.opcode = std::uint16_t(abi::CommandOpcode::create_cq);
    cq.header.object = cqn;
    cq.context.log_entries = kLogCqes;
    cq.context.uar_page = kUarPage;
    cq.context.pasid = kPasid;
    cqs_[cqn] = {host.allocate(64 << kLogCqes), host.allocate(64), 0};
    for (int i = 0; i < 1 << kLogCqes; ++i) host.at(cqs_[cqn].ring + 64 * i)[63] = std::byte{abi::Cqe::kInitialOwner};
    cq.context.ring = cqs_[cqn].ring;
    cq.context.doorbell_record = cqs_[cqn].record;
    cq.context.eqn = 1;
    expect_ok(cq);
  }
  void write_record() {
    abi::QpDoorbellRecord record;
    record.receive_producer = receive_producer_;
    record.send_producer = producer_;
    host.put(record_, record);
  }

  std::uint8_t number_;
  std::uint64_t queue_ = 0, mailbox_ = 0, output_ = 0, record_ = 0;
  std::uint16_t producer_ = 0;
  std::uint16_t receive_producer_ = 0;
  std::array<Ring, 3> cqs_;
  std::array<Ring, 2> eqs_;
};

}  // namespace rnicsim::nic::test
