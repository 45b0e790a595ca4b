// SPDX-License-Identifier: Apache-2.0
// Receives whose payload is in the CQE: the library copies it to its place when the completion is polled.
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "model/nic/nic.h"
#include "model/nic/nic_counters.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kMost = 32;  // the device's limit
constexpr std::uint32_t kLanding = 4096;
constexpr std::uint8_t kUntouched = 0xee;

class InlineReceive : public RcPair {
 protected:
  explicit InlineReceive(const std::vector<std::string>& sets = {}) : RcPair(sets) {}

  static EndpointOptions receiver() {
    EndpointOptions options;
    options.inline_receive = kMost;
    return options;
  }
  // h1 sends, h0 receives in its CQEs.
  void run_receiving(Body receive, Body send, const EndpointOptions& options = receiver()) {
    run_connected(
        [&](Endpoint& end) {
          std::ranges::fill(end.buffer, kUntouched);
          receive(end);
        },
        [&](Endpoint& end) {
          std::iota(end.buffer.begin(), end.buffer.end(), std::uint8_t(1));
          send(end);
        },
        options);
  }
  static void send(Endpoint& end, ibv_send_wr wr, ibv_wc_status status = IBV_WC_SUCCESS) {
    ASSERT_EQ(end.post(wr), 0);
    EXPECT_EQ(end.completion().status, status);
  }
  static int receive(Endpoint& end, std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.sg_list = list.data();
    wr.num_sge = int(list.size());
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(end.qp, &wr, &bad);
  }
  static std::uint64_t address(const Endpoint& end, std::uint32_t offset) {
    return reinterpret_cast<std::uint64_t>(end.buffer.data()) + offset;
  }
  // Checks the message, which counts up from `first`, and the untouched bytes around it.
  static void expect_bytes(const Endpoint& end, std::uint32_t offset, std::uint32_t length, std::uint8_t first = 1) {
    for (std::uint32_t i = 0; i < length; ++i) ASSERT_EQ(end.buffer[offset + i], std::uint8_t(first + i)) << i;
    EXPECT_EQ(end.buffer[offset + length], kUntouched);
    if (offset != 0) {
      EXPECT_EQ(end.buffer[offset - 1], kUntouched);
    }
  }
  std::uint64_t inline_cqes() { return host(0).nic().counters().completion.inline_cqes; }
};

// The CPU also copies to device memory, where it can access only whole words.
TEST_F(InlineReceive, IntoDeviceMemory) {
  run_receiving(
      [&](Endpoint& end) {
        constexpr std::uint32_t kAt = 6, kLength = 13, kBytes = 32, kFrom = 4;
        ibv_alloc_dm_attr wanted{kFrom + kBytes, 0, 0};
        ibv_dm* dm = ibv_alloc_dm(end.context, &wanted);
        ASSERT_NE(dm, nullptr);
        std::uint8_t bytes[kBytes];
        std::ranges::fill(bytes, kUntouched);
        ASSERT_EQ(ibv_memcpy_to_dm(dm, kFrom, bytes, kBytes), 0);
        ibv_mr* mr = ibv_reg_dm_mr(end.pd, dm, kFrom, kBytes, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE);
        ASSERT_NE(mr, nullptr);
        ASSERT_EQ(receive(end, {{kAt, 3, mr->lkey}, {kAt + 3, 20, mr->lkey}}), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(inline_cqes(), 1u);
        ASSERT_EQ(ibv_memcpy_from_dm(bytes, dm, kFrom, kBytes), 0);
        for (std::uint32_t i = 0; i < kBytes; ++i) {
          const bool brought = i >= kAt && i < kAt + kLength;
          EXPECT_EQ(bytes[i], brought ? std::uint8_t(1 + i - kAt) : kUntouched) << i;
        }
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        EXPECT_EQ(ibv_free_dm(dm), 0);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 13));
      });
}

TEST_F(InlineReceive, BothSidesOfTheLimit) {
  run_receiving(
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(end.receive(kLanding + 256 * i, 128, i), 0);
        meet(0);
        std::uint32_t at = kLanding;
        for (const std::uint32_t length : {1u, kMost, kMost + 1}) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.opcode, IBV_WC_RECV);
          EXPECT_EQ(wc.byte_len, length);
          EXPECT_EQ(wc.wr_id, (at - kLanding) / 256);
          expect_bytes(end, at, length);
          at += 256;
        }
        EXPECT_EQ(inline_cqes(), 2u);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const std::uint32_t length : {1u, kMost, kMost + 1}) send(end, end.request(IBV_WR_SEND, 0, length));
      });
}

TEST_F(InlineReceive, LiesInMemoryWhenItsCompletionIsPolledAndNotBefore) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        pass(0, Duration{50'000'000});
        EXPECT_EQ(inline_cqes(), 1u);
        EXPECT_EQ(end.buffer[kLanding], kUntouched);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_bytes(end, kLanding, 16);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 16));
      });
}

TEST_F(InlineReceive, SeveralSegments) {
  run_receiving(
      [&](Endpoint& end) {
        const auto key = end.mr->lkey;
        ASSERT_EQ(receive(end, {{address(end, 100), 5, key},
                                {address(end, 200), 0, key},
                                {address(end, 300), 9, key},
                                {address(end, 400), 50, key}}),
                  0);
        meet(0);
        EXPECT_EQ(end.completion().byte_len, 30u);
        expect_bytes(end, 100, 5);
        EXPECT_EQ(end.buffer[200], kUntouched);
        expect_bytes(end, 300, 9, 6);
        expect_bytes(end, 400, 16, 15);
        EXPECT_EQ(inline_cqes(), 1u);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 30));
      });
}

TEST_F(InlineReceive, NothingToBring) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(receive(end, {}), 0);
        meet(0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.byte_len, 0u);
        EXPECT_EQ(inline_cqes(), 0u);
      },
      [&](Endpoint& end) {
        meet(1);
        auto wr = end.request(IBV_WR_SEND, 0, 0);
        wr.num_sge = 0;
        send(end, wr);
      });
}

TEST_F(InlineReceive, WithImmediateData) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.wc_flags, unsigned{IBV_WC_WITH_IMM});
        EXPECT_EQ(wc.imm_data, 0x44332211u);
        expect_bytes(end, kLanding, 20);
        EXPECT_EQ(inline_cqes(), 1u);
      },
      [&](Endpoint& end) {
        meet(1);
        auto wr = end.request(IBV_WR_SEND_WITH_IMM, 0, 20);
        wr.imm_data = 0x44332211;
        send(end, wr);
      });
}

// The device has no such key for the invalidation: the message fails, and its payload is not delivered.
TEST_F(InlineReceive, WithAnInvalidationThatIsRefused) {
  if (!invalidates()) GTEST_SKIP() << "nic.capabilities.invalidate";
  std::uint32_t rkey = 0;
  run_receiving(
      [&](Endpoint& end) {
        rkey = end.mr->rkey;
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_INV_REQ_ERR);
        EXPECT_EQ(end.buffer[kLanding], kUntouched);
        EXPECT_EQ(inline_cqes(), 0u);
      },
      [&](Endpoint& end) {
        meet(1);
        auto wr = end.request(IBV_WR_SEND_WITH_INV, 0, 21);
        wr.invalidate_rkey = rkey;
        ASSERT_EQ(end.post(wr), 0);
      });
}

// A WRITE with immediate consumes a receive, and has no payload for it.
TEST_F(InlineReceive, WritesGoWhereTheySay) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        EXPECT_EQ(end.completion().opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        expect_bytes(end, 512, 8);
        EXPECT_EQ(end.buffer[kLanding], kUntouched);
        EXPECT_EQ(inline_cqes(), 0u);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 8, 512));
      });
}

TEST_F(InlineReceive, AListTooShortIsTheDevicesError) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 15), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_LEN_ERR);
        EXPECT_EQ(end.buffer[kLanding], kUntouched);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 16), IBV_WC_REM_INV_REQ_ERR);
      });
}

// The device does not check the keys; the library finds that there is no region.
TEST_F(InlineReceive, AKeyOfNothing) {
  run_receiving(
      [&](Endpoint& end) {
        const std::uint64_t past = end.buffer.size() - 7;
        ASSERT_EQ(receive(end, {{address(end, 0), 64, end.mr->lkey ^ 0xff}}), 0);
        ASSERT_EQ(receive(end, {{address(end, std::uint32_t(past)), 64, end.mr->lkey}}), 0);
        ASSERT_EQ(receive(end, {{address(end, std::uint32_t(past)), 64, end.mr->lkey}}), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(end.completion().status, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(end.buffer.back(), 7);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const std::uint32_t length : {8u, 8u, 7u}) send(end, end.request(IBV_WR_SEND, 0, length));
      });
}

TEST_F(InlineReceive, ARegionWithAddressesOfItsOwn) {
  run_receiving(
      [&](Endpoint& end) {
        constexpr std::uint64_t kIova = 0x5000;
        ibv_mr* mr = ibv_reg_mr_iova(end.pd, end.buffer.data() + 8192, 4096, kIova, end.options.mr_access);
        ASSERT_NE(mr, nullptr);
        ASSERT_EQ(receive(end, {{kIova + 100, 64, mr->lkey}}), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_bytes(end, 8192 + 100, 12);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 12));
      });
}

TEST_F(InlineReceive, ByTheExtendedPoll) {
  run_receiving(
      [&](Endpoint& end) {
        ibv_qp_attr attributes;
        ibv_qp_init_attr initial;
        ASSERT_EQ(ibv_query_qp(end.qp, &attributes, IBV_QP_STATE, &initial), 0);
        ibv_cq_ex* cq = reinterpret_cast<ibv_cq_ex*>(end.cq);
        for (std::uint32_t i = 0; i < 2; ++i) ASSERT_EQ(end.receive(kLanding + 256 * i, 64, 7 + i), 0);
        meet(0);
        pass(0, Duration{50'000'000});
        ibv_poll_cq_attr poll{};
        ASSERT_EQ(ibv_start_poll(cq, &poll), 0);
        EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
        EXPECT_EQ(cq->wr_id, 7u);
        EXPECT_EQ(ibv_wc_read_byte_len(cq), 18u);
        expect_bytes(end, kLanding, 18);
        EXPECT_EQ(end.buffer[kLanding + 256], kUntouched);
        ASSERT_EQ(ibv_next_poll(cq), 0);
        expect_bytes(end, kLanding + 256, 19);
        ibv_end_poll(cq);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const std::uint32_t length : {18u, 19u}) send(end, end.request(IBV_WR_SEND, 0, length));
      });
}

// Destroying the queue pair discards unpolled completions and their payload.
TEST_F(InlineReceive, AQueuePairDestroyedBeforeThePoll) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        pass(0, Duration{50'000'000});
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        EXPECT_FALSE(completion_soon(end.cq, 5));
        EXPECT_EQ(end.buffer[kLanding], kUntouched);
        EXPECT_EQ(inline_cqes(), 1u);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 8));
      });
}

TEST_F(InlineReceive, ASolicitedOneRaisesItsEvent) {
  auto options = receiver();
  options.channel = true;
  run_receiving(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(kLanding, 64), 0);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
        meet(0);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 0);
        meet(0);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 1);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 8));
        meet(1);
        auto wr = end.request(IBV_WR_SEND, 0, 8);
        wr.send_flags = IBV_SEND_SOLICITED;
        send(end, wr);
      },
      options);
}

// A small message behind a message of many packets waits until the earlier payload has landed.
TEST_F(InlineReceive, InOrderBehindALongMessage) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 20'000, 1), 0);
        ASSERT_EQ(end.receive(kLanding + 20'480, 64, 2), 0);
        meet(0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 1, 2);
        expect_bytes(end, kLanding, 20'000);
        expect_bytes(end, kLanding + 20'480, 32);
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 20'000)), 0);
        send(end, end.request(IBV_WR_SEND, 0, 32));
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      });
}

TEST_F(InlineReceive, OffUnlessAsked) {
  run_receiving(
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(kLanding, 64), 0);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_bytes(end, kLanding, 8);
        EXPECT_EQ(inline_cqes(), 0u);
      },
      [&](Endpoint& end) {
        meet(1);
        send(end, end.request(IBV_WR_SEND, 0, 8));
      },
      {});
}

TEST_F(InlineReceive, AskedForByTheEnvironment) {
  setenv("RNICSIM_SCATTER_TO_CQE", "1", 1);
  run_receiving(
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(kLanding + 256 * i, 64), 0);
        meet(0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        EXPECT_EQ(inline_cqes(), 1u);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const auto length : {kMost, kMost + 1}) send(end, end.request(IBV_WR_SEND, 0, length));
      },
      {});
  unsetenv("RNICSIM_SCATTER_TO_CQE");
}

class LittleInlineReceive : public InlineReceive {
 protected:
  LittleInlineReceive() : InlineReceive({"nic.capabilities.max_inline_receive=12"}) {}
};

TEST_F(LittleInlineReceive, NoMoreThanTheDeviceCan) {
  run_receiving(
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(kLanding + 256 * i, 64), 0);
        meet(0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        EXPECT_EQ(inline_cqes(), 1u);
      },
      [&](Endpoint& end) {
        meet(1);
        for (const std::uint32_t length : {12u, 13u}) send(end, end.request(IBV_WR_SEND, 0, length));
      });
}

}  // namespace
}  // namespace rnicsim::testing
