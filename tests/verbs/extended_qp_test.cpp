// SPDX-License-Identifier: Apache-2.0
// The extended queue pair: work requests built with ibv_wr_* calls, executed completely or not at all.
#include <cstring>
#include <numeric>

#include "model/nic/capability_params.h"
#include "model/nic/personality/commands.h"
#include "tests/verbs/xrc_domain.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint64_t kOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                                      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;

class ExtendedQp : public RcPair {
 protected:
  static ibv_qp_init_attr_ex attributes(Endpoint& end, std::uint64_t operations) {
    ibv_qp_init_attr_ex wanted{};
    wanted.send_cq = wanted.recv_cq = end.cq;
    wanted.cap = {end.options.max_wr, end.options.max_wr, end.options.max_sge, end.options.max_sge,
                  end.options.max_inline};
    wanted.qp_type = IBV_QPT_RC;
    wanted.sq_sig_all = end.options.signal_all;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    wanted.pd = end.pd;
    wanted.send_ops_flags = operations;
    return wanted;
  }
  // Returns 0 and destroys the queue pair if it could be created; otherwise errno.
  static int refusal(Endpoint& end, ibv_qp_init_attr_ex& wanted) {
    errno = 0;
    ibv_qp* qp = ibv_create_qp_ex(end.context, &wanted);
    return qp == nullptr ? errno : ibv_destroy_qp(qp);
  }
  // Creates the endpoint's queue pair again, extended.
  static void extend(Endpoint& end) {
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    auto wanted = attributes(end, kOperations);
    end.qp = ibv_create_qp_ex(end.context, &wanted);
    ASSERT_NE(end.qp, nullptr);
    ASSERT_NE(ibv_qp_to_qp_ex(end.qp), nullptr);
  }
  using Action = std::function<void(Endpoint&, ibv_qp_ex*, const EndpointAddress& remote)>;
  void run_extended(Action on_h0, Body on_h1, EndpointOptions options = {}) {
    Exchange<EndpointAddress> addresses;
    run(
        [&] {
          Endpoint end(options);
          extend(end);
          std::iota(end.buffer.begin(), end.buffer.end(), std::uint8_t{1});
          const auto remote = addresses.swap(0, end.address());
          end.connect(remote);
          meet(0);
          on_h0(end, ibv_qp_to_qp_ex(end.qp), remote);
          meet(0);
        },
        [&] {
          Endpoint end;
          end.connect(addresses.swap(1, end.address()));
          for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(end.receive(std::uint32_t(4096 * i), 4096, i), 0);
          meet(1);
          meet(1);
          on_h1(end);
        });
  }
  static std::uint64_t address_of(Endpoint& end, std::size_t offset) {
    return reinterpret_cast<std::uint64_t>(end.buffer.data()) + offset;
  }
  static void next(ibv_qp_ex* qp, std::uint64_t wr_id, unsigned flags = 0) {
    qp->wr_id = wr_id;
    qp->wr_flags = flags;
  }
  static bool holds(const Endpoint& end, std::size_t at, std::size_t length, std::size_t source) {
    for (std::size_t i = 0; i < length; ++i)
      if (end.buffer[at + i] != std::uint8_t(source + i + 1)) return false;
    return true;
  }
};

TEST_F(ExtendedQp, EveryOperationInOneBatch) {
  run_extended(
      [](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        ibv_wr_start(qp);
        next(qp, 1);
        ibv_wr_send(qp);
        ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 100);
        next(qp, 2);
        ibv_wr_send_imm(qp, 0x11223344);
        const ibv_sge two[] = {{address_of(end, 100), 10, end.mr->lkey}, {address_of(end, 200), 20, end.mr->lkey}};
        ibv_wr_set_sge_list(qp, 2, two);
        next(qp, 3);
        ibv_wr_rdma_write(qp, remote.rkey, remote.buffer + 20'000);
        ibv_wr_set_inline_data(qp, end.buffer.data() + 7, 33);
        next(qp, 4);
        ibv_wr_rdma_write_imm(qp, remote.rkey, remote.buffer + 30'000, 0x55667788);
        const ibv_data_buf pieces[] = {{end.buffer.data(), 5}, {end.buffer.data() + 50, 0}, {end.buffer.data() + 9, 6}};
        ibv_wr_set_inline_data_list(qp, 3, pieces);
        next(qp, 5);
        ibv_wr_rdma_read(qp, remote.rkey, remote.buffer + 20'000);
        ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 50'000), 33);
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        const ibv_wc_opcode opcodes[] = {IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
                                         IBV_WC_RDMA_READ};
        for (std::uint64_t i = 0; i < 5; ++i) {
          const auto wc = completion_soon(end.cq);
          ASSERT_TRUE(wc);
          EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc->wr_id, i + 1);
          EXPECT_EQ(wc->opcode, opcodes[i]);
        }
        EXPECT_TRUE(holds(end, 50'000, 33, 7));
      },
      [](Endpoint& end) {
        auto wc = completion_soon(end.cq).value();
        EXPECT_EQ(wc.byte_len, 100u);
        EXPECT_TRUE(holds(end, 0, 100, 0));
        wc = completion_soon(end.cq).value();
        EXPECT_EQ(wc.byte_len, 30u);
        EXPECT_EQ(wc.imm_data, 0x11223344u);
        EXPECT_TRUE(holds(end, 4096, 10, 100) && holds(end, 4106, 20, 200));
        wc = completion_soon(end.cq).value();
        EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_EQ(wc.imm_data, 0x55667788u);
        EXPECT_EQ(wc.byte_len, 11u);
        EXPECT_TRUE(holds(end, 20'000, 33, 7));
        EXPECT_TRUE(holds(end, 30'000, 5, 0) && holds(end, 30'005, 6, 9));
      });
}

TEST_F(ExtendedQp, NothingHappensBeforeTheBatchIsComplete) {
  run_extended(
      [&](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        ibv_wr_start(qp);
        next(qp, 1);
        ibv_wr_rdma_write(qp, remote.rkey, remote.buffer + 20'000);
        ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        next(qp, 2);
        ibv_wr_rdma_write(qp, remote.rkey, remote.buffer + 20'008);
        ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        pass(0, Duration{50'000'000});
        EXPECT_TRUE(wire().empty());
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 1, 2);
      },
      [](Endpoint&) {});
}

TEST_F(ExtendedQp, AnAbortedBatchLeavesNoTrace) {
  run_extended(
      [&](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        for (std::uint32_t i = 0; i < 3 * end.options.max_wr; ++i) {
          ibv_wr_start(qp);
          next(qp, 1);
          ibv_wr_rdma_write(qp, remote.rkey, remote.buffer);
          ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
          next(qp, 2);
          ibv_wr_send(qp);
          ibv_wr_abort(qp);
        }
        EXPECT_FALSE(completion_soon(end.cq, 20));
        EXPECT_TRUE(wire().empty());
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 8);  // ibv_post_send(), on the same queue
        wr.wr_id = 3;
        ASSERT_EQ(end.post(wr), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 3, 1);
      },
      [](Endpoint&) {});
}

TEST_F(ExtendedQp, SignalsAreTakenFromTheFlags) {
  EndpointOptions options;
  options.signal_all = false;
  run_extended(
      [](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        ibv_wr_start(qp);
        for (std::uint64_t i = 1; i <= 4; ++i) {
          next(qp, i, i == 4 ? IBV_SEND_SIGNALED : 0);
          ibv_wr_rdma_write(qp, remote.rkey, remote.buffer);
          ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        }
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 4, 1);
        EXPECT_FALSE(completion_soon(end.cq, 20));
      },
      [](Endpoint&) {}, options);
}

TEST_F(ExtendedQp, OneErrorDiscardsTheBatchAndTheFirstIsTold) {
  run_extended(
      [&](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        const auto cap = query(end.qp).cap;
        std::vector<ibv_sge> many(cap.max_send_sge + 1);
        std::vector<std::uint8_t> large(cap.max_inline_data + 1);
        const auto write = [&] {
          next(qp, 1);
          ibv_wr_rdma_write(qp, remote.rkey, remote.buffer);
        };
        const auto good = [&] {
          write();
          ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        };
        const auto batch = [&](const char* what, int error, const std::function<void()>& bad) {
          SCOPED_TRACE(what);
          ibv_wr_start(qp);
          good();
          bad();
          good();
          errno = 0;
          EXPECT_EQ(ibv_wr_complete(qp), error);
          EXPECT_EQ(errno, error);
        };
        batch("too many segments", EINVAL, [&] { write(), ibv_wr_set_sge_list(qp, many.size(), many.data()); });
        batch("too much inline", EINVAL, [&] { write(), ibv_wr_set_inline_data(qp, large.data(), large.size()); });
        batch("two errors", EINVAL, [&] {
          write(), ibv_wr_set_inline_data(qp, large.data(), large.size());
          ibv_wr_send_tso(qp, nullptr, 0, 0);
        });
        batch("two errors, the other way round", EOPNOTSUPP, [&] {
          ibv_wr_send_tso(qp, nullptr, 0, 0);
          write(), ibv_wr_set_inline_data(qp, large.data(), large.size());
        });
        batch("an inline read", EINVAL, [&] {
          ibv_wr_rdma_read(qp, remote.rkey, remote.buffer);
          ibv_wr_set_inline_data(qp, large.data(), 8);
        });
        batch("a segment of 2 GiB", EINVAL, [&] { write(), ibv_wr_set_sge(qp, end.mr->lkey, 0, 0x80000000); });
        batch("two setters", EINVAL, [&] { good(), ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8); });
        batch("a setter of nothing", EINVAL, [&] {
          ibv_wr_abort(qp);
          ibv_wr_start(qp);
          ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        });
        batch("a full queue", ENOMEM, [&] {
          for (std::uint32_t i = 0; i < cap.max_send_wr; ++i) good();
        });
        EXPECT_FALSE(completion_soon(end.cq, 20));
        EXPECT_TRUE(wire().empty());
        ibv_wr_start(qp);
        next(qp, 77);
        ibv_wr_send(qp);
        ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 77, 1);
      },
      [](Endpoint& end) { EXPECT_EQ(completion_soon(end.cq).value().byte_len, 8u); });
}

TEST_F(ExtendedQp, ABatchFillsTheQueueExactly) {
  run_extended(
      [](Endpoint& end, ibv_qp_ex* qp, const EndpointAddress& remote) {
        const auto capacity = query(end.qp).cap.max_send_wr;
        ibv_wr_start(qp);
        for (std::uint64_t i = 0; i < capacity; ++i) {
          next(qp, i);
          ibv_wr_rdma_write(qp, remote.rkey, remote.buffer);
          ibv_wr_set_sge(qp, end.mr->lkey, address_of(end, 0), 8);
        }
        EXPECT_EQ(ibv_wr_complete(qp), 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, capacity);
      },
      [](Endpoint&) {});
}

TEST_F(ExtendedQp, NotInAStateThatSends) {
  run_alone([](Endpoint& end) {
    extend(end);
    auto* qp = ibv_qp_to_qp_ex(end.qp);
    end.to_init();
    ibv_wr_start(qp);
    ibv_wr_send(qp);
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  });
}

// As mlx5 does.
TEST_F(ExtendedQp, OperationsThatWereNotNamedHaveNoPointer) {
  run_alone([](Endpoint& end) {
    auto wanted = attributes(end, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);
    ibv_qp* made = ibv_create_qp_ex(end.context, &wanted);
    ASSERT_NE(made, nullptr);
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(made);
    ASSERT_NE(qp, nullptr);
    EXPECT_NE(qp->wr_send, nullptr);
    EXPECT_NE(qp->wr_rdma_write_imm, nullptr);
    EXPECT_EQ(qp->wr_send_imm, nullptr);
    EXPECT_EQ(qp->wr_rdma_write, nullptr);
    EXPECT_EQ(qp->wr_rdma_read, nullptr);
    EXPECT_EQ(qp->wr_atomic_cmp_swp, nullptr);
    EXPECT_EQ(qp->wr_atomic_fetch_add, nullptr);
    // A requested operation that the device lacks is refused with EOPNOTSUPP.
    ibv_device_attr device{};
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    if ((device.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0) {
      EXPECT_EQ(qp->wr_send_inv, nullptr);
      EXPECT_EQ(qp->wr_local_inv, nullptr);
      EXPECT_EQ(qp->wr_bind_mw, nullptr);
    }
    EXPECT_EQ(ibv_destroy_qp(made), 0);
  });
}

// The header's inline functions pass only a PD to ibv_create_qp and ibv_create_srq.
TEST_F(ExtendedQp, ThePdThatIsNamedIsThere) {
  run_alone([](Endpoint& end) {
    for (const auto type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
      auto wanted = attributes(end, 0);
      wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
      wanted.qp_type = type;
      wanted.pd = nullptr;
      errno = 0;
      EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, EINVAL);
    }
    ibv_srq_init_attr_ex shared{};
    shared.attr = {.max_wr = 4, .max_sge = 1};
    shared.comp_mask = IBV_SRQ_INIT_ATTR_PD;
    errno = 0;
    EXPECT_EQ(ibv_create_srq_ex(end.context, &shared), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(ExtendedQp, OnlyWhoNamesOperationsGetsIt) {
  run_alone([](Endpoint& end) {
    EXPECT_EQ(ibv_qp_to_qp_ex(end.qp), nullptr);
    auto wanted = attributes(end, 0);
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;  // an ordinary queue pair
    ibv_qp* qp = ibv_create_qp_ex(end.context, &wanted);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(ibv_qp_to_qp_ex(qp), nullptr);
    EXPECT_GE(wanted.cap.max_send_wr, end.options.max_wr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
  });
}

TEST_F(ExtendedQp, RefusedAtCreation) {
  run_alone([](Endpoint& end) {
    const auto refused = [&](const char* what, int error, const std::function<void(ibv_qp_init_attr_ex&)>& spoil) {
      SCOPED_TRACE(what);
      auto wanted = attributes(end, IBV_QP_EX_WITH_SEND);
      spoil(wanted);
      errno = 0;
      EXPECT_EQ(ibv_create_qp_ex(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, error);
    };
    for (const auto operation : {IBV_QP_EX_WITH_TSO, ibv_qp_create_send_ops_flags(1 << 13)})
      refused("operation", EOPNOTSUPP, [&](auto& wanted) { wanted.send_ops_flags |= operation; });
    refused("unknown comp_mask", EINVAL, [](auto& wanted) { wanted.comp_mask |= 1u << 30; });
    refused("no PD", EINVAL, [](auto& wanted) { wanted.pd = nullptr; });
    refused("no CQ", EINVAL, [](auto& wanted) { wanted.send_cq = nullptr; });
    refused("unknown type", EINVAL, [](auto& wanted) { wanted.qp_type = ibv_qp_type(77); });
    refused("unknown create flag", EINVAL, [](auto& wanted) {
      wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
      wanted.create_flags = 1u << 20;
    });
    refused("no receive CQ", EINVAL, [](auto& wanted) { wanted.recv_cq = nullptr; });
    Endpoint other;
    refused("another context's PD", EINVAL, [&](auto& wanted) { wanted.pd = other.pd; });
    refused("another context's CQ", ENOENT, [&](auto& wanted) { wanted.send_cq = other.cq; });
    refused("another context's receive CQ", ENOENT, [&](auto& wanted) { wanted.recv_cq = other.cq; });
  });
}

TEST_F(ExtendedQp, NoMoreThanTheDeviceHas) {
  struct Limit {
    std::uint32_t ibv_qp_cap::*asked;
    std::uint32_t most;
  };
  const auto& device = capabilities();
  const Limit limits[] = {{&ibv_qp_cap::max_send_wr, device.max_qp_wr},
                          {&ibv_qp_cap::max_recv_wr, device.max_qp_wr},
                          {&ibv_qp_cap::max_send_sge, device.max_sge},
                          {&ibv_qp_cap::max_recv_sge, device.max_sge},
                          {&ibv_qp_cap::max_inline_data, device.max_inline}};
  run_alone([&](Endpoint& end) {
    for (const auto& limit : limits) {
      SCOPED_TRACE(&limit - limits);
      auto wanted = attributes(end, IBV_QP_EX_WITH_SEND);
      wanted.cap = {1, 1, 1, 1, 0};
      wanted.cap.*limit.asked = limit.most;
      const auto most = wanted;
      EXPECT_EQ(refusal(end, wanted), 0);
      EXPECT_GE(wanted.cap.*limit.asked, limit.most);
      for (const std::uint32_t more : {limit.most + 1, 1u << 31, ~0u}) {
        wanted = most;
        wanted.cap.*limit.asked = more;
        EXPECT_EQ(refusal(end, wanted), EINVAL) << more;
        EXPECT_EQ(wanted.cap.*limit.asked, more) << "what was refused is as it was given";
      }
    }
  });
}

// "Greater than or equal to the values requested", also if there is no queue for them.
TEST_F(ExtendedQp, NoLessThanWasAsked) {
  const ibv_qp_cap asked[] = {{0, 0, 0, 0, 0}, {0, 0, 3, 3, 32}, {5, 0, 3, 2, 7}, {0, 5, 2, 3, 9}, {1, 1, 0, 0, 0}};
  run_alone([&](Endpoint& end) {
    for (const auto& cap : asked) {
      SCOPED_TRACE(&cap - asked);
      auto wanted = attributes(end, IBV_QP_EX_WITH_SEND);
      wanted.cap = cap;
      ibv_qp* qp = ibv_create_qp_ex(end.context, &wanted);
      ASSERT_NE(qp, nullptr);
      ibv_qp_attr is;
      ibv_qp_init_attr initial;
      ASSERT_EQ(ibv_query_qp(qp, &is, IBV_QP_CAP, &initial), 0);
      for (const ibv_qp_cap& granted : {wanted.cap, is.cap, initial.cap}) {
        EXPECT_GE(granted.max_send_wr, cap.max_send_wr);
        EXPECT_GE(granted.max_recv_wr, cap.max_recv_wr);
        EXPECT_GE(granted.max_send_sge, cap.max_send_sge);
        EXPECT_GE(granted.max_recv_sge, cap.max_recv_sge);
        EXPECT_GE(granted.max_inline_data, cap.max_inline_data);
      }
      EXPECT_EQ(ibv_destroy_qp(qp), 0);
    }
  });
}

// Attributes of ibv_create_qp_ex(3), on each transport.
class OnEachTransport : public ExtendedQp {
 protected:
  struct Transport {
    const char* name;
    ibv_qp_type type;
    std::uint32_t flags;       // ibv_qp_create_flags
    std::uint64_t operations;  // ibv_qp_create_send_ops_flags
  };
  static constexpr std::uint64_t kSends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  static constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  static constexpr std::uint64_t kUnreliable = kSends | kWrites | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
  static constexpr std::uint64_t kReliable = kUnreliable | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV |
                                             IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  static constexpr Transport kTransports[] = {
      {"RC", IBV_QPT_RC, 0, kReliable | IBV_QP_EX_WITH_ATOMIC_WRITE},
      {"UC", IBV_QPT_UC, 0, kUnreliable},
      {"UD", IBV_QPT_UD, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SOURCE_QPN, kSends},
      {"raw packets", IBV_QPT_RAW_PACKET,
       IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING |
           IBV_QP_CREATE_PCI_WRITE_END_PADDING,
       IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO},
      {"XRC, sending", IBV_QPT_XRC_SEND, 0, kReliable},
      {"XRC, receiving", IBV_QPT_XRC_RECV, 0, 0}};

  void SetUp() override {
    if (!capabilities().features().xrc) GTEST_SKIP() << "nic.capabilities.xrc";
  }
  void run_each(const std::function<void(Endpoint&, const Transport&, const ibv_qp_init_attr_ex&)>& body) {
    run_alone([&](Endpoint& end) {
      ibv_xrcd* xrcd = open_domain(end.context);
      for (const auto& transport : kTransports) {
        SCOPED_TRACE(transport.name);
        auto wanted = attributes(end, 0);
        wanted.cap = {1, 1, 1, 1, 0};
        wanted.qp_type = transport.type;
        wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
        wanted.xrcd = xrcd;
        if (transport.type == IBV_QPT_XRC_RECV) wanted.comp_mask |= IBV_QP_INIT_ATTR_XRCD;
        body(end, transport, wanted);
      }
      EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
    });
  }
};

TEST_F(OnEachTransport, EveryCombinationOfCreateFlags) {
  run_each([](Endpoint& end, const Transport& transport, const ibv_qp_init_attr_ex& plain) {
    constexpr std::uint32_t kKnown = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                                     IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                                     IBV_QP_CREATE_PCI_WRITE_END_PADDING;
    auto wanted = plain;
    wanted.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    wanted.source_qpn = 0x1234;
    for (std::uint32_t flags = kKnown;; flags = (flags - 1) & kKnown) {
      wanted.create_flags = flags;
      EXPECT_EQ(refusal(end, wanted), flags & ~transport.flags ? EINVAL : 0) << flags;
      if (flags == 0) break;
    }
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      if (kKnown >> bit & 1) continue;
      wanted.create_flags = transport.flags | 1u << bit;
      EXPECT_EQ(refusal(end, wanted), EINVAL) << "bit " << bit;
    }
    wanted.comp_mask = plain.comp_mask;
    EXPECT_EQ(refusal(end, wanted), 0) << "flags that the mask does not name";
  });
}

TEST_F(OnEachTransport, EveryOperation) {
  run_each([](Endpoint& end, const Transport& transport, const ibv_qp_init_attr_ex& plain) {
    auto wanted = plain;
    wanted.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    if (transport.type == IBV_QPT_RAW_PACKET) {
      wanted.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
      wanted.max_tso_header = 64;
    }
    for (std::uint32_t bit = 0; bit < 64; ++bit) {
      wanted.send_ops_flags = std::uint64_t{1} << bit;
      EXPECT_EQ(refusal(end, wanted), transport.operations >> bit & 1 ? 0 : EOPNOTSUPP) << "bit " << bit;
    }
    wanted.send_ops_flags = transport.operations;
    EXPECT_EQ(refusal(end, wanted), 0);
  });
}

// Bits of other transports and unknown bits are refused.
TEST_F(OnEachTransport, EveryFieldOfTheMask) {
  run_each([](Endpoint& end, const Transport& transport, const ibv_qp_init_attr_ex& plain) {
    const bool raw = transport.type == IBV_QPT_RAW_PACKET, receives = transport.type == IBV_QPT_XRC_RECV;
    const auto answer = [&](std::uint32_t bit) {
      auto wanted = plain;
      wanted.comp_mask |= bit;
      wanted.max_tso_header = 64;
      return refusal(end, wanted);
    };
    EXPECT_EQ(answer(IBV_QP_INIT_ATTR_XRCD), receives ? 0 : EINVAL);
    EXPECT_EQ(answer(IBV_QP_INIT_ATTR_MAX_TSO_HEADER), raw ? 0 : EOPNOTSUPP);
    EXPECT_EQ(answer(IBV_QP_INIT_ATTR_IND_TABLE), raw ? EINVAL : EOPNOTSUPP) << "a table without a hash";
    EXPECT_EQ(answer(IBV_QP_INIT_ATTR_RX_HASH), raw ? EINVAL : EOPNOTSUPP) << "a hash without a table";
    for (std::uint32_t bit = 7; bit < 32; ++bit) EXPECT_EQ(answer(1u << bit), EINVAL) << "bit " << bit;
    auto wanted = plain;
    wanted.comp_mask &= ~unsigned(IBV_QP_INIT_ATTR_PD);
    EXPECT_EQ(refusal(end, wanted), receives ? 0 : EINVAL) << "without a PD";
    // ibv_create_qp(3): only RC and UD support a shared receive queue.
    ibv_srq_init_attr of_queue{};
    of_queue.attr = {4, 1, 0};
    ibv_srq* srq = ibv_create_srq(end.pd, &of_queue);
    wanted = plain;
    wanted.srq = srq;
    wanted.cap.max_recv_wr = wanted.cap.max_recv_sge = ~0u;
    const bool shares = transport.type == IBV_QPT_RC || transport.type == IBV_QPT_UD;
    EXPECT_EQ(refusal(end, wanted), shares || receives ? 0 : EINVAL) << "with a shared receive queue";
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
  });
}

}  // namespace
}  // namespace rnicsim::testing
