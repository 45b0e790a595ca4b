// SPDX-License-Identifier: Apache-2.0
// RC without errors: data arrives, with the completions that the API promises.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>

#include "model/host/kernel_agent.h"
#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class Rc : public RcPair {};

TEST_F(Rc, SendArrivesInOrder) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        for (std::uint32_t i = 0; i < 3; ++i) {
          auto wr = end.request(IBV_WR_SEND, 100 * i, 3000);
          wr.wr_id = 70 + i;
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint32_t i = 0; i < 3; ++i) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.opcode, IBV_WC_SEND);
          EXPECT_EQ(wc.wr_id, 70 + i);
          EXPECT_EQ(wc.qp_num, end.qp->qp_num);
        }
      },
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(end.receive(4000 * i, 4000, i), 0);
        meet(1);
        for (std::uint32_t i = 0; i < 3; ++i) {
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.opcode, IBV_WC_RECV);
          EXPECT_EQ(wc.wr_id, i);
          EXPECT_EQ(wc.byte_len, 3000u);
          EXPECT_TRUE(filled(end, 4000 * i, 3000, 100 * i));
        }
      });
}

TEST_F(Rc, ImmediateData) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        auto send = end.request(IBV_WR_SEND_WITH_IMM, 0, 16);
        send.imm_data = 0x11223344;
        ASSERT_EQ(end.post(send), 0);
        auto write = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 5000, 8192);
        write.imm_data = 0x55667788;
        ASSERT_EQ(end.post(write), 0);
        EXPECT_EQ(end.completion().opcode, IBV_WC_SEND);
        EXPECT_EQ(end.completion().opcode, IBV_WC_RDMA_WRITE);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 64, 1), 0);
        ASSERT_EQ(end.receive(64, 64, 2), 0);
        meet(1);
        auto wc = end.completion();
        EXPECT_EQ(wc.opcode, IBV_WC_RECV);
        EXPECT_NE(wc.wc_flags & IBV_WC_WITH_IMM, 0u);
        EXPECT_EQ(wc.imm_data, 0x11223344u);
        wc = end.completion();
        EXPECT_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_EQ(wc.wr_id, 2u);
        EXPECT_EQ(wc.imm_data, 0x55667788u);
        EXPECT_EQ(wc.byte_len, 5000u);
        EXPECT_TRUE(filled(end, 8192, 5000));
      });
}

TEST_F(Rc, WriteAndRead) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 10'000, 20'000)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 40'000, 10'000, 20'000)), 0);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
        EXPECT_EQ(wc.byte_len, 10'000u);
        EXPECT_TRUE(filled(end, 40'000, 10'000));
      },
      [&](Endpoint&) {});
}

TEST_F(Rc, EmptyMessages) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 0)), 0);
        auto write = end.request(IBV_WR_RDMA_WRITE, 0, 0);
        write.wr.rdma = {0xdead, 0xbeef};
        ASSERT_EQ(end.post(write), 0);
        auto read = write;
        read.opcode = IBV_WR_RDMA_READ;
        ASSERT_EQ(end.post(read), 0);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 64), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, 0u);
      });
}

TEST_F(Rc, InlineIsCopiedAtPost) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        auto write = end.request(IBV_WR_RDMA_WRITE, 0, 48);
        write.send_flags = IBV_SEND_INLINE;
        write.sg_list->lkey = 0xbad;
        ASSERT_EQ(end.post(write), 0);
        std::ranges::fill(end.buffer, 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_TRUE(filled(end, 0, 48));
      });
}

TEST_F(Rc, GatherAndScatter) {
  run_connected(
      [&](Endpoint& end) {
        fill(end);
        meet(0);
        const auto base = reinterpret_cast<std::uint64_t>(end.buffer.data());
        ibv_sge pieces[] = {{base, 700, end.mr->lkey}, {base + 700, 0, end.mr->lkey}, {base + 700, 1301, end.mr->lkey}};
        auto wr = end.request(IBV_WR_SEND, 0, 0);
        wr.sg_list = pieces;
        wr.num_sge = 3;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        const auto base = reinterpret_cast<std::uint64_t>(end.buffer.data());
        ibv_sge pieces[] = {{base, 1, end.mr->lkey}, {base + 1, 1500, end.mr->lkey}, {base + 1501, 4000, end.mr->lkey}};
        ibv_recv_wr wr{};
        wr.sg_list = pieces;
        wr.num_sge = 3;
        ibv_recv_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_recv(end.qp, &wr, &bad), 0);
        meet(1);
        EXPECT_EQ(end.completion().byte_len, 2001u);
        EXPECT_TRUE(filled(end, 0, 2001));
      });
}

TEST_F(Rc, UnsignalledWorkIsFreedByALaterCompletion) {
  EndpointOptions options;
  options.signal_all = false;
  options.max_wr = 8;
  run_connected(
      [&](Endpoint& end) {
        for (int round = 0; round < 20; ++round) {
          for (std::uint32_t i = 0; i < 8; ++i) {
            auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
            wr.wr_id = i;
            wr.send_flags = i == 7 ? IBV_SEND_SIGNALED : 0;
            ASSERT_EQ(end.post(wr), 0);
          }
          const auto wc = end.completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, 7u);
        }
        ibv_wc wc;
        EXPECT_EQ(ibv_poll_cq(end.cq, 1, &wc), 0);
      },
      [](Endpoint&) {}, options, options);
}

TEST_F(Rc, EventsWakeTheReceiver) {
  EndpointOptions options;
  options.channel = true;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        for (int i = 0; i < 3; ++i) {
          ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 100)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);
        }
      },
      [&](Endpoint& end) {
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.receive(0, 100), 0);
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        meet(1);
        for (int i = 0; i < 3; ++i) {
          ibv_cq* cq = nullptr;
          void* owner = nullptr;
          ASSERT_EQ(ibv_get_cq_event(end.channel, &cq, &owner), 0);
          EXPECT_EQ(cq, end.cq);
          EXPECT_EQ(owner, &end);
          ibv_ack_cq_events(cq, 1);
          ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(1);
        }
      },
      options, options);
}

TEST_F(Rc, BothWaysAtOnce) {
  const auto body = [&](std::size_t me, Endpoint& end) {
    fill(end);
    std::ranges::fill(end.buffer.begin() + 32'768, end.buffer.end(), 0);
    meet(me);
    for (int i = 0; i < 16; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 16'000, 32'768)), 0);
    for (int i = 0; i < 16; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    meet(me);
    EXPECT_TRUE(filled(end, 32'768, 16'000));
  };
  run_connected([&](Endpoint& end) { body(0, end); }, [&](Endpoint& end) { body(1, end); });
}

TEST_F(Rc, NothingIsLeftBehind) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(host(i).iommu().counters().faults, 0u);
    EXPECT_EQ(host(i).agent().counters().commands_refused, 0u);
    EXPECT_EQ(host(i).root_complex().counters().device_errors, 0u);
  }
}

}  // namespace
}  // namespace rnicsim::testing
