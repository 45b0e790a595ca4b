// SPDX-License-Identifier: Apache-2.0
// Bad input of a broken or hostile program affects only that program: a refusal, an error completion, a counter. The
// simulator and the neighbours continue.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "model/abi/device.h"
#include "model/host/cpu_port.h"
#include "model/host/kernel_agent.h"
#include "model/host/memory/iommu.h"
#include "sim/adapter.h"
#include "tests/support/endpoint.h"
#include "tests/support/two_hosts.h"
#include "verbs/provider/commands.h"
#include "verbs/provider/completion_ring.h"

namespace rnicsim::testing {
namespace {

using abi::CommandOpcode;

// A QP created with commands alone; its WQEs are any bytes.
class RawQp {
 public:
  RawQp() : port_(static_cast<host::CpuPort&>(*process_port())) {
    EXPECT_EQ(port_.alloc_pd(pd), 0);
    EXPECT_EQ(port_.alloc_uar(uar), 0);
    ring_ = memory(kBlocks * abi::kSendBlock);
    record_ = reinterpret_cast<abi::QpDoorbellRecord*>(memory(64).memory);
    auto* cq_record = reinterpret_cast<abi::CqDoorbellRecord*>(memory(64).memory);
    const auto cq_ring = memory(kCqes * sizeof(abi::Cqe));
    completions_ = provider::CompletionRing(4, cq_ring, cq_record);
    abi::Cqc cqc;
    cqc.log_entries = 4;
    cqc.uar_page = static_cast<std::uint16_t>(uar);
    cqc.ring = cq_ring.bus_address;
    cqc.doorbell_record = reinterpret_cast<std::uint64_t>(cq_record);
    EXPECT_EQ(run(provider::create_cq(0, cqc), &cqn), 0);
    abi::Qpc qpc;
    qpc.log_send_blocks = 6;
    qpc.flags = abi::Qpc::kHasSend;
    qpc.uar_page = static_cast<std::uint16_t>(uar);
    qpc.pd = pd;
    qpc.send_cqn = qpc.receive_cqn = cqn;
    qpc.send_ring = ring_.bus_address;
    qpc.doorbell_record = reinterpret_cast<std::uint64_t>(record_);
    EXPECT_EQ(run(provider::create_qp(0, qpc), &qpn), 0);
  }

  // To RTS, connected to this host's own GID: no test here reaches the wire.
  void connect(const ibv_gid& gid) {
    using namespace abi::qp_attr;
    abi::Qpc context;
    context.port = 1;
    context.state = abi::QpState::init;
    EXPECT_EQ(run(provider::modify_qp(qpn, kState | kPkeyIndex | kPort | kAccessFlags, context)), 0);
    context.state = abi::QpState::rtr;
    context.path_mtu = 3;
    context.remote_qpn = 0xabcdef;
    std::memcpy(context.path.remote_gid, gid.raw, 16);
    context.path.sgid_index = 1;
    EXPECT_EQ(
        run(provider::modify_qp(
            qpn, kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn | kMaxDestRdAtomic | kMinRnrTimer, context)),
        0);
    context.state = abi::QpState::rts;
    EXPECT_EQ(
        run(provider::modify_qp(qpn, kState | kTimeout | kRetryCount | kRnrRetry | kSendPsn | kMaxRdAtomic, context)),
        0);
  }

  template <class Mailbox>
  int run(const Mailbox& mailbox, std::uint32_t* object = nullptr) {
    abi::CommandResult result;
    const int refused = port_.command(events, provider::encode(mailbox), std::as_writable_bytes(std::span(&result, 1)));
    if (object) *object = result.object;
    return refused != 0 ? refused : provider::to_errno(result.status);
  }

  void post(abi::SendOpcode opcode, std::uint8_t segments, std::uint16_t wqe_index, std::uint32_t qpn_in_wqe) {
    abi::ControlSegment control;
    control.opcode = opcode;
    control.wqe_index = wqe_index;
    control.segments = segments;
    control.qpn_flags = qpn_in_wqe << 8 | abi::ControlSegment::kSignaled;
    std::memcpy(ring_.memory, &control, sizeof control);
    ring(uar, qpn, 1);
  }
  void ring(std::uint32_t page, std::uint32_t number, std::uint32_t producer) {
    record_->send_producer = producer;
    const abi::SendDoorbell doorbell{number, producer};
    port_.mmio_write(abi::kUarBase + page * abi::kUarPageSize + abi::uar::kSendDoorbell, provider::bytes_of(doorbell));
  }
  // The device's CQE for the first WQE; nullopt: none within 100 polls.
  std::optional<abi::Cqe> completion() {
    for (int look = 0; look < 100; ++look) {
      if (auto cqe = completions_.take()) return cqe;
      port_.wait_visible();
    }
    return std::nullopt;
  }

  std::uint32_t pd = 0, uar = 0, cqn = 0, qpn = 0;
  std::uint32_t events = 0;  // channel for events of objects that are created from now on

 private:
  static constexpr std::size_t kBlocks = 64, kCqes = 16;

  provider::DmaBuffer memory(std::size_t bytes) {
    std::byte* at = port_.allocate(bytes, 4096);
    return {at, reinterpret_cast<std::uint64_t>(at)};
  }

  host::CpuPort& port_;
  provider::DmaBuffer ring_;
  abi::QpDoorbellRecord* record_;
  provider::CompletionRing completions_;
};

class BadInput : public TwoHosts {
 protected:
  ibv_gid own_gid() {
    abi::GidEntry entry;
    EXPECT_EQ(process_port()->gid_entry(1, 1, entry), 0);
    ibv_gid gid;
    std::memcpy(gid.raw, entry.gid, 16);
    return gid;
  }

  // `attack` runs on h0 between two transfers of a neighbour, both of which must succeed.
  void run_beside_neighbours(std::function<void()> attack) {
    Exchange<EndpointAddress> addresses;
    const auto write_once = [](Endpoint& end) {
      ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 5000)), 0);
      EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    };
    run(
        [&] {
          Endpoint end;
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          write_once(end);
          attack();
          write_once(end);
          meet(0);
        },
        [&] {
          Endpoint end;
          end.connect(addresses.swap(1, end.address()));
          meet(1);
          meet(1);
        });
  }

  void expect_wqe_error(std::function<void(RawQp&)> post) {
    run_beside_neighbours([&] {
      RawQp qp;
      qp.connect(own_gid());
      post(qp);
      const auto cqe = qp.completion();
      ASSERT_TRUE(cqe);
      EXPECT_EQ(cqe->syndrome, abi::CqeSyndrome::local_qp_operation_error);
      EXPECT_EQ(cqe->qpn, qp.qpn);
    });
  }
};

TEST_F(BadInput, WqeOpcode) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode(0x77), 1, 0, qp.qpn); });
}
TEST_F(BadInput, WqeOfNoLength) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode::send, 0, 0, qp.qpn); });
}
TEST_F(BadInput, WqeLongerThanWhatWasPosted) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode::send, 60, 0, qp.qpn); });
}
TEST_F(BadInput, WqeOfAnotherIndex) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode::send, 1, 7, qp.qpn); });
}
TEST_F(BadInput, WqeOfAnotherQp) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode::send, 1, 0, qp.qpn + 1); });
}
TEST_F(BadInput, WriteWithoutItsAddress) {
  expect_wqe_error([](RawQp& qp) { qp.post(abi::SendOpcode::write, 1, 0, qp.qpn); });
}

TEST_F(BadInput, DoorbellsOfOthers) {
  run_beside_neighbours([&] {
    RawQp qp;
    qp.connect(own_gid());
    const auto refused = host(0).agent().counters().mmio_refused;
    qp.ring(0, qp.qpn, 1);           // the kernel's page
    qp.ring(qp.uar + 1, qp.qpn, 1);  // no process's page
    qp.ring(abi::kUarPages, qp.qpn, 1);
    qp.ring(qp.uar - 1, qp.qpn, 1);    // the neighbour's: of this process too, but not of this QP
    qp.ring(qp.uar, qp.qpn - 1, 999);  // the neighbour's QP, through our page
    qp.ring(qp.uar, 0xffffff, 1);      // no QP at all
    EXPECT_FALSE(qp.completion());
    EXPECT_EQ(host(0).agent().counters().mmio_refused, refused + 3);
  });
}

TEST_F(BadInput, MailboxesOfGarbage) {
  run_beside_neighbours([&] {
    auto& port = *process_port();
    std::uint64_t state = 1;
    const auto next = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u; };
    for (int round = 0; round < 400; ++round) {
      std::vector<std::byte> input(next() >> 40 & 0x1ff);
      for (auto& byte : input) byte = std::byte(next() >> 56);
      // Half of the mailboxes have a valid opcode.
      constexpr std::uint16_t kOpcodes[] = {0x100, 0x120, 0x210, 0x211, 0x220, 0x230, 0x231, 0x232, 0x233};
      if (input.size() >= 2 && round % 2) abi::store_be(input.data(), kOpcodes[next() >> 33 & 7]);
      std::array<std::byte, 512> output;
      port.command(0, input, output);
    }
    std::array<std::byte, 64> output;
    EXPECT_EQ(port.command(0, {}, output), EINVAL);
    EXPECT_EQ(port.command(0, std::vector<std::byte>(8192), output), EINVAL);
  });
}

TEST_F(BadInput, PrivilegedCommands) {
  run_beside_neighbours([&] {
    RawQp qp;
    EXPECT_EQ(qp.run(provider::header(CommandOpcode::teardown)), EPERM);
    EXPECT_EQ(qp.run(provider::unmap_icm(abi::IcmTable::qpc, 0, 256)), EPERM);
    EXPECT_EQ(qp.run(provider::clear_gid(1, 1)), EPERM);
    EXPECT_EQ(qp.run(provider::header(CommandOpcode::destroy_eq, 0)), EPERM);
  });
}

TEST_F(BadInput, RingsThatAreNotThere) {
  run_beside_neighbours([&] {
    RawQp qp;
    abi::Qpc qpc;
    qpc.log_send_blocks = 6;
    qpc.flags = abi::Qpc::kHasSend;
    qpc.uar_page = static_cast<std::uint16_t>(qp.uar);
    qpc.pd = qp.pd;
    qpc.send_cqn = qpc.receive_cqn = qp.cqn;
    qpc.send_ring = 0xdead'0000'0000;
    qpc.doorbell_record = 0xdead'0001'0000;
    int fds[2];
    ASSERT_EQ(pipe2(fds, O_NONBLOCK), 0);
    ASSERT_EQ(process_port()->open_channel(fds[1], qp.events), 0);
    const auto faults = host(0).iommu().counters().faults;
    ASSERT_EQ(qp.run(provider::create_qp(0, qpc), &qp.qpn), 0);
    qp.connect(own_gid());
    qp.ring(qp.uar, qp.qpn, 1);
    EXPECT_FALSE(qp.completion());  // there is no WQE that could complete
    abi::EventRecord record;
    ASSERT_EQ(read(fds[0], &record, sizeof record), ssize_t(sizeof record));
    EXPECT_EQ(record.type, std::uint32_t(abi::EventType::qp_fatal));
    EXPECT_EQ(record.number, qp.qpn);
    EXPECT_GT(host(0).iommu().counters().faults, faults);
  });
}

// A region that the kernel never pinned, because the program bypassed its library.
TEST_F(BadInput, MemoryThatWasNeverPinned) {
  run_beside_neighbours([&] {
    RawQp commands;
    Endpoint end;
    Endpoint other;
    end.connect(other.address());
    abi::Mpt mpt;
    mpt.pd = end.pd->handle;
    mpt.access_flags = abi::access::kLocalWrite;
    mpt.start = mpt.bus_address = 0x7000'0000'0000;
    mpt.length = 4096;
    mpt.key = 0x55;
    std::uint32_t index = 0;
    ASSERT_EQ(commands.run(provider::create_mpt(0, mpt), &index), 0);
    const auto faults = host(0).iommu().counters().faults;
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    wr.sg_list->addr = mpt.start;
    wr.sg_list->lkey = index << 8 | 0x55;
    ASSERT_EQ(end.post(wr), 0);
    EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(host(0).iommu().counters().faults, faults + 1);
    ASSERT_EQ(commands.run(provider::header(CommandOpcode::destroy_mpt, index)), 0);
  });
}

TEST_F(BadInput, MemoryUnmappedSinceItWasRegistered) {
  run_beside_neighbours([&] {
    Endpoint end;
    Endpoint other;
    end.connect(other.address());
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ibv_mr* mr = ibv_reg_mr(end.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_NE(mr, nullptr);
    munmap(page, 4096);
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    wr.sg_list->addr = reinterpret_cast<std::uint64_t>(page);
    wr.sg_list->lkey = mr->lkey;
    ASSERT_EQ(end.post(wr), 0);
    EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
