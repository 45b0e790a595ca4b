// SPDX-License-Identifier: Apache-2.0
// The extended completion queue: polling with calls, and fields read one by one.
#include "model/nic/capability_params.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint64_t kFields =
    std::uint64_t{IBV_WC_STANDARD_FLAGS} | std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

class ExtendedCq : public RcPair {
 protected:
  static ibv_cq_init_attr_ex attributes(std::uint64_t fields) {
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 32;
    wanted.wc_flags = fields;
    return wanted;
  }
  // Creates the endpoint's CQ and queue pair again.
  static ibv_cq_ex* extend(Endpoint& end, std::uint32_t flags = 0) {
    EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
    EXPECT_EQ(ibv_destroy_cq(end.cq), 0);
    auto wanted = attributes(kFields);
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = flags;
    ibv_cq_ex* cq = ibv_create_cq_ex(end.context, &wanted);
    EXPECT_NE(cq, nullptr);
    end.cq = ibv_cq_ex_to_cq(cq);
    end.qp = queue_pair(end);
    return cq;
  }
  static ibv_qp* queue_pair(Endpoint& end) {
    ibv_qp_init_attr initial{};
    initial.send_cq = initial.recv_cq = end.cq;
    initial.cap = {16, 16, 4, 4, 64};
    initial.qp_type = IBV_QPT_RC;
    initial.sq_sig_all = 1;
    ibv_qp* qp = ibv_create_qp(end.pd, &initial);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
  static int start_soon(ibv_cq_ex* cq) {
    ibv_poll_cq_attr poll{};
    for (int look = 0; look < 100; ++look)
      if (ibv_start_poll(cq, &poll) == 0) return 0;
    return ENOENT;
  }
  // h1 has the extended CQ; h0 sends `messages` of 10 + i bytes with immediate data.
  void run_extended(int messages, std::function<void(Endpoint&, ibv_cq_ex*, std::uint32_t peer)> on_h1,
                    std::uint32_t flags = 0) {
    Exchange<EndpointAddress> addresses;
    run(
        [&] {
          Endpoint end;
          end.connect(addresses.swap(0, end.address()));
          meet(0);
          for (int i = 0; i < messages; ++i) {
            auto wr = end.request(IBV_WR_SEND_WITH_IMM, 0, std::uint32_t(10 + i));
            wr.imm_data = 0x11223300u + std::uint32_t(i);
            ASSERT_EQ(end.post(wr), 0);
            EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          }
          meet(0);
          meet(0);
        },
        [&] {
          Endpoint end;
          auto* cq = extend(end, flags);
          const auto remote = addresses.swap(1, end.address());
          end.connect(remote);
          for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
          meet(1);
          meet(1);
          on_h1(end, cq, remote.qpn);
          meet(1);
        });
  }
};

TEST_F(ExtendedCq, StartNextEnd) {
  run_extended(3, [](Endpoint& end, ibv_cq_ex* cq, std::uint32_t) {
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(start_soon(cq), round == 0 ? 0 : ENOENT);
      if (round == 1) break;  // empty: ibv_end_poll() must not be called
      for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(cq->wr_id, i);
        EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
        EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
        EXPECT_EQ(ibv_wc_read_byte_len(cq), 10 + i);
        EXPECT_EQ(ibv_wc_read_imm_data(cq), 0x11223300u + i);
        EXPECT_EQ(ibv_wc_read_wc_flags(cq), unsigned(IBV_WC_WITH_IMM));
        EXPECT_EQ(ibv_wc_read_qp_num(cq), end.qp->qp_num);
        EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0u);
        EXPECT_EQ(ibv_next_poll(cq), i < 2 ? 0 : ENOENT);
      }
      ibv_end_poll(cq);
    }
  });
}

TEST_F(ExtendedCq, EndBeforeTheLastLeavesTheRest) {
  run_extended(3, [](Endpoint& end, ibv_cq_ex* cq, std::uint32_t) {
    ASSERT_EQ(start_soon(cq), 0);
    EXPECT_EQ(cq->wr_id, 0u);
    ibv_end_poll(cq);
    ibv_wc wc;  // ibv_poll_cq() works on it, too
    ASSERT_EQ(ibv_poll_cq(end.cq, 1, &wc), 1);
    EXPECT_EQ(wc.wr_id, 1u);
    EXPECT_EQ(wc.byte_len, 11u);
    ASSERT_EQ(start_soon(cq), 0);
    EXPECT_EQ(cq->wr_id, 2u);
    EXPECT_EQ(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
    EXPECT_EQ(ibv_poll_cq(end.cq, 1, &wc), 0);
  });
}

TEST_F(ExtendedCq, SingleThreaded) {
  run_extended(
      2,
      [](Endpoint&, ibv_cq_ex* cq, std::uint32_t) {
        ASSERT_EQ(start_soon(cq), 0);
        EXPECT_EQ(ibv_next_poll(cq), 0);
        EXPECT_EQ(cq->wr_id, 1u);
        ibv_end_poll(cq);
        EXPECT_EQ(start_soon(cq), ENOENT);
      },
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
}

TEST_F(ExtendedCq, StatusOfAnError) {
  run_alone([](Endpoint& end) {
    auto* cq = extend(end);
    end.to_init();
    ASSERT_EQ(end.receive(0, 64, 5), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    ASSERT_EQ(start_soon(cq), 0);
    EXPECT_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(cq->wr_id, 5u);
    EXPECT_EQ(ibv_wc_read_qp_num(cq), end.qp->qp_num);
    ibv_end_poll(cq);
  });
}

// Each completion's timestamp lies between readings of the device's clock before and after it.
TEST_F(ExtendedCq, TheTimestampIsTheDevicesClock) {
  run_alone([&](Endpoint& end) {
    auto* cq = extend(end);
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    EXPECT_EQ(device.completion_timestamp_mask, ~0ull);
    const auto khz = device.hca_core_clock;
    ASSERT_GT(khz, 0u);
    const auto cycles_now = [khz] { return std::uint64_t(now().ps) / 1000 * khz / 1'000'000; };
    end.to_init();
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto before = cycles_now();
      ASSERT_EQ(end.receive(0, 64, i), 0);
      if (i == 0) {
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
      }
      ASSERT_EQ(start_soon(cq), 0);
      const auto stamp = ibv_wc_read_completion_ts(cq);
      ibv_end_poll(cq);
      settle(0);
      EXPECT_GE(stamp, before);
      EXPECT_LE(stamp, cycles_now());
      EXPECT_GT(stamp, last);
      last = stamp;
      pass(0, Duration{100'000'000});
    }
  });
}

// The same in nanoseconds since 1970: the clock of a host within the test's process starts there.
TEST_F(ExtendedCq, TheWallClock) {
  run_alone([&](Endpoint& end) {
    auto wanted = attributes(std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK});
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
    ibv_cq_ex* cq = ibv_create_cq_ex(end.context, &wanted);
    ASSERT_NE(cq, nullptr);
    end.cq = ibv_cq_ex_to_cq(cq);
    end.qp = queue_pair(end);
    end.to_init();
    ASSERT_EQ(end.receive(0, 64), 0);
    pass(0, Duration{3'000'000'000});
    const auto before = std::uint64_t(now().ps) / 1000;
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    ASSERT_EQ(start_soon(cq), 0);
    const auto stamp = ibv_wc_read_completion_wallclock_ns(cq);
    ibv_end_poll(cq);
    settle(0);
    EXPECT_GE(stamp, before);
    EXPECT_LE(stamp, std::uint64_t(now().ps) / 1000);
  });
}

// Read functions exist only for the requested fields.
TEST_F(ExtendedCq, OnlyWhatWasAskedForCanBeRead) {
  run_alone([&](Endpoint& end) {
    for (std::uint64_t bit = 1; bit <= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK; bit <<= 1) {
      auto wanted = attributes(bit);
      errno = 0;
      ibv_cq_ex* cq = ibv_create_cq_ex(end.context, &wanted);
      const bool of_frames = bit == IBV_WC_EX_WITH_FLOW_TAG || bit == IBV_WC_EX_WITH_CVLAN;
      if ((of_frames && !capabilities().raw) || bit == IBV_WC_EX_WITH_TM_INFO) {
        EXPECT_EQ(cq, nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        continue;
      }
      ASSERT_NE(cq, nullptr) << bit;
      EXPECT_NE(cq->read_opcode, nullptr);
      EXPECT_NE(cq->read_vendor_err, nullptr);
      EXPECT_NE(cq->read_wc_flags, nullptr);
      const std::pair<std::uint64_t, bool> there[] = {
          {IBV_WC_EX_WITH_BYTE_LEN, cq->read_byte_len != nullptr},
          {IBV_WC_EX_WITH_IMM, cq->read_imm_data != nullptr},
          {IBV_WC_EX_WITH_QP_NUM, cq->read_qp_num != nullptr},
          {IBV_WC_EX_WITH_SRC_QP, cq->read_src_qp != nullptr},
          {IBV_WC_EX_WITH_SLID, cq->read_slid != nullptr},
          {IBV_WC_EX_WITH_SL, cq->read_sl != nullptr},
          {IBV_WC_EX_WITH_DLID_PATH_BITS, cq->read_dlid_path_bits != nullptr},
          {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, cq->read_completion_ts != nullptr},
          {IBV_WC_EX_WITH_CVLAN, cq->read_cvlan != nullptr},
          {IBV_WC_EX_WITH_FLOW_TAG, cq->read_flow_tag != nullptr},
          {IBV_WC_EX_WITH_TM_INFO, cq->read_tm_info != nullptr},
          {IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, cq->read_completion_wallclock_ns != nullptr}};
      for (const auto& [field, readable] : there) EXPECT_EQ(readable, field == bit) << bit << ", " << field;
      EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    }
  });
}

// A completion from an RC peer has no QP number and no path.
TEST_F(ExtendedCq, WhatAConnectedPeerDoesNotSay) {
  run_extended(1, [](Endpoint&, ibv_cq_ex* cq, std::uint32_t) {
    ASSERT_EQ(start_soon(cq), 0);
    EXPECT_EQ(ibv_wc_read_src_qp(cq), 0u);
    EXPECT_EQ(ibv_wc_read_slid(cq), 0u);
    EXPECT_EQ(ibv_wc_read_sl(cq), 0u);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0u);
    ibv_end_poll(cq);
  });
}

TEST_F(ExtendedCq, AttributesThatAreNotUnderstood) {
  run_alone([](Endpoint& end) {
    const auto refused = [&](int error, const std::function<void(ibv_cq_init_attr_ex&)>& spoil) {
      auto wanted = attributes(IBV_WC_STANDARD_FLAGS);
      spoil(wanted);
      errno = 0;
      EXPECT_EQ(ibv_create_cq_ex(end.context, &wanted), nullptr);
      EXPECT_EQ(errno, error);
    };
    refused(EINVAL, [](auto& wanted) { wanted.cqe = 0; });
    refused(EINVAL, [](auto& wanted) { wanted.comp_vector = 1000; });
    refused(EINVAL, [](auto& wanted) { wanted.comp_mask = 1u << 30; });
    refused(EOPNOTSUPP, [](auto& wanted) { wanted.wc_flags |= IBV_WC_EX_WITH_TM_INFO; });
    refused(EINVAL, [](auto& wanted) {
      wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
      wanted.flags = 1u << 30;
    });
    auto wanted = attributes(kFields);
    ibv_cq_ex* cq = ibv_create_cq_ex(end.context, &wanted);
    ASSERT_NE(cq, nullptr);
    ibv_poll_cq_attr poll{};
    poll.comp_mask = 1;
    EXPECT_EQ(ibv_start_poll(cq, &poll), EINVAL);
    poll.comp_mask = 0;
    EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);
    EXPECT_EQ(ibv_start_poll(cq, &poll), ENOENT);  // no lock is left taken
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  });
}

// With this flag a CQ that overwrites unpolled entries does not fail.
TEST_F(ExtendedCq, OverrunIgnored) {
  run_alone([](Endpoint& end) {
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
    end.qp = nullptr;
    auto wanted = attributes(IBV_WC_STANDARD_FLAGS);
    wanted.cqe = 4;
    wanted.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    wanted.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    end.cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(end.context, &wanted));
    ASSERT_NE(end.cq, nullptr);
    ibv_qp_init_attr initial{};
    initial.send_cq = initial.recv_cq = end.cq;
    initial.cap = {1, 16, 1, 1, 0};
    initial.qp_type = IBV_QPT_RC;
    end.qp = ibv_create_qp(end.pd, &initial);
    ASSERT_NE(end.qp, nullptr);
    never_wait(end.context->async_fd);
    end.to_init();
    for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(end.receive(0, 64, i), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    EXPECT_TRUE(take_async_events(end.context).empty());
    EXPECT_EQ(end.state(), IBV_QPS_ERR);
    // The latest entries replaced the first: 8 and 9 have the places of 0 and 1.
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 8, 2);
    EXPECT_EQ(ibv_resize_cq(end.cq, 64), EINVAL);  // lost entries cannot be moved to a new ring
  });
}

}  // namespace
}  // namespace rnicsim::testing
