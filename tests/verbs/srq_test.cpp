// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: creation, posting and changes, their PD, and their events.
#include <gmock/gmock.h>

#include "model/nic/capability_params.h"
#include "model/nic/personality/commands.h"
#include "tests/verbs/shared_receive.h"

namespace rnicsim::testing {
namespace {

using ::testing::ElementsAre;

ibv_srq* create(ibv_pd* pd, std::uint32_t max_wr, std::uint32_t max_sge) {
  ibv_srq_init_attr wanted{};
  wanted.attr = {max_wr, max_sge, 0};
  errno = 0;
  return ibv_create_srq(pd, &wanted);
}

TEST_F(SharedReceive, TheDeviceTellsItsLimits) {
  run_alone([&](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    EXPECT_GT(device.max_srq, 0);
    EXPECT_EQ(device.max_srq_wr, 32767);
    EXPECT_GE(device.max_srq_sge, 1);
    EXPECT_TRUE(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
    ibv_srq_init_attr most{};
    most.attr = {unsigned(device.max_srq_wr), unsigned(device.max_srq_sge), 0};
    auto* srq = ibv_create_srq(end.pd, &most);
    ASSERT_NE(srq, nullptr);
    EXPECT_EQ(int(most.attr.max_wr), device.max_srq_wr);
    EXPECT_EQ(int(most.attr.max_sge), device.max_srq_sge);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    EXPECT_EQ(create(end.pd, unsigned(device.max_srq_wr) + 1, 1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create(end.pd, 1, unsigned(device.max_srq_sge) + 1), nullptr);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(create(end.pd, 0, 1), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST_F(SharedReceive, IsMadeWithWhatWasAskedAtLeast) {
  run_alone([&](Endpoint& end) {
    for (const std::uint32_t asked : {1u, 2u, 3u, 7u, 8u, 100u}) {
      ibv_srq_init_attr wanted{};
      int owner = 0;
      wanted.srq_context = &owner;
      wanted.attr = {asked, 3, 77};
      auto* srq = ibv_create_srq(end.pd, &wanted);
      ASSERT_NE(srq, nullptr);
      EXPECT_GE(wanted.attr.max_wr, asked);
      EXPECT_GE(wanted.attr.max_sge, 3u);
      EXPECT_EQ(srq->srq_context, &owner);
      EXPECT_EQ(srq->pd, end.pd);
      EXPECT_EQ(srq->context, end.context);
      const auto attributes = query(srq);
      EXPECT_EQ(attributes.max_wr, wanted.attr.max_wr);
      EXPECT_EQ(attributes.max_sge, wanted.attr.max_sge);
      EXPECT_EQ(attributes.srq_limit, 0u) << "creation sets none";
      EXPECT_EQ(ibv_destroy_srq(srq), 0);
    }
  });
}

TEST_F(SharedReceive, ExtendedCreation) {
  run_alone([&](Endpoint& end) {
    const auto made = [&](std::uint32_t mask, int type, ibv_pd* pd) {
      ibv_srq_init_attr_ex wanted{};
      wanted.attr = {4, 1, 0};
      wanted.comp_mask = mask;
      wanted.srq_type = ibv_srq_type(type);
      wanted.pd = pd;
      errno = 0;
      auto* srq = ibv_create_srq_ex(end.context, &wanted);
      std::uint32_t number = 0;
      if (srq == nullptr) return errno;
      EXPECT_EQ(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
      EXPECT_EQ(ibv_destroy_srq(srq), 0);
      return 0;
    };
    const std::uint32_t both = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    EXPECT_EQ(made(both, IBV_SRQT_BASIC, end.pd), 0);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_BASIC, end.pd), 0);
    EXPECT_EQ(made(IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, nullptr), EINVAL);
    const bool has_xrc = capabilities().features().xrc;
    EXPECT_EQ(made(both, IBV_SRQT_XRC, end.pd), has_xrc ? EINVAL : EOPNOTSUPP) << "it needs more";
    EXPECT_EQ(made(both, IBV_SRQT_TM, end.pd), EOPNOTSUPP);
    EXPECT_EQ(made(both, 3, end.pd), EINVAL);  // the last value that the enum can hold
    EXPECT_EQ(made(both | 1u << 20, IBV_SRQT_BASIC, end.pd), EINVAL);
  });
}

TEST_F(SharedReceive, AQueuePairOfIt) {
  run_alone(
      [&](Endpoint& end) {
        ibv_qp_attr attributes;
        ibv_qp_init_attr initial;
        ASSERT_EQ(ibv_query_qp(end.qp, &attributes, IBV_QP_STATE, &initial), 0);
        EXPECT_EQ(initial.srq, end.srq);
        EXPECT_EQ(end.qp->srq, end.srq);
        end.to_init();
        ibv_recv_wr wr{};
        ibv_recv_wr* bad = nullptr;
        EXPECT_EQ(ibv_post_recv(end.qp, &wr, &bad), EINVAL);
        EXPECT_EQ(bad, &wr);
        EXPECT_EQ(ibv_destroy_srq(end.srq), EBUSY);
        EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);

        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.srq = end.srq;
        wanted.cap = {4, ~0u, 1, ~0u, 0};  // the requested receive queue size is ignored
        wanted.qp_type = IBV_QPT_RC;
        auto* qp = ibv_create_qp(end.pd, &wanted);
        ASSERT_NE(qp, nullptr);
        EXPECT_EQ(wanted.cap.max_recv_wr, 0u);
        EXPECT_EQ(wanted.cap.max_recv_sge, 0u);
        EXPECT_EQ(ibv_destroy_qp(qp), 0);

        wanted.cap = {4, 0, 1, 0, 0};
        wanted.qp_type = IBV_QPT_UC;
        EXPECT_EQ(ibv_create_qp(end.pd, &wanted), nullptr);

        wanted.qp_type = IBV_QPT_RC;
        const auto handle = end.srq->handle;
        end.srq->handle = 12345;
        EXPECT_EQ(ibv_create_qp(end.pd, &wanted), nullptr);
        ibv_srq_attr limits;
        EXPECT_EQ(ibv_query_srq(end.srq, &limits), ENOENT);
        EXPECT_EQ(arm(end.srq, 1), ENOENT);
        EXPECT_EQ(ibv_destroy_srq(end.srq), ENOENT);
        end.srq->handle = handle;

        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY) << "the queue itself uses it";
        EXPECT_EQ(ibv_destroy_srq(end.srq), 0);
        end.srq = nullptr;
      },
      shared());
}

TEST_F(SharedReceive, PostingUntilItIsFull) {
  run_alone(
      [&](Endpoint& end) {
        const auto capacity = query(end.srq).max_wr;
        EXPECT_EQ(capacity, 15u);
        post_receives(end, 0, capacity - 1);
        std::vector<ibv_recv_wr> list(3);
        for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
        ibv_recv_wr* bad = nullptr;
        EXPECT_EQ(ibv_post_srq_recv(end.srq, list.data(), &bad), ENOMEM);
        EXPECT_EQ(bad, &list[1]);
        EXPECT_EQ(ibv_post_srq_recv(end.srq, &list[2], &bad), ENOMEM);
        EXPECT_EQ(bad, &list[2]);
      },
      shared());
}

TEST_F(SharedReceive, PostingNonsense) {
  run_alone(
      [&](Endpoint& end) {
        const auto most = query(end.srq).max_sge;
        std::vector<ibv_sge> sges(most + 1);
        ibv_recv_wr fine{}, wrong{};
        fine.next = &wrong;
        fine.sg_list = wrong.sg_list = sges.data();
        fine.num_sge = int(most);
        ibv_recv_wr* bad = nullptr;
        for (const int count : {int(most) + 1, -1}) {
          wrong.num_sge = count;
          EXPECT_EQ(ibv_post_srq_recv(end.srq, &fine, &bad), EINVAL);
          EXPECT_EQ(bad, &wrong);
        }
        sges[0].length = 0x80000000u;
        wrong.num_sge = 1;
        EXPECT_EQ(ibv_post_srq_recv(end.srq, &wrong, &bad), EINVAL);
        ibv_recv_wr loop{};
        loop.next = &loop;
        EXPECT_EQ(ibv_post_srq_recv(end.srq, &loop, &bad), ENOMEM);
        EXPECT_EQ(bad, &loop);
      },
      shared());
}

// The keys of a receive are checked against the SRQ's PD, not the QP's.
TEST_F(SharedReceive, TheProtectionDomainIsTheQueuesOwn) {
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint end;
        end.connect(addresses.swap(0, end.address()));
        meet(0);
        send_messages(end, 1);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_REM_OP_ERR);
        meet(0);
      },
      [&] {
        Endpoint end;
        auto* pd = ibv_alloc_pd(end.context);
        auto* mr = ibv_reg_mr(pd, end.buffer.data(), end.buffer.size(), IBV_ACCESS_LOCAL_WRITE);
        auto* srq = create(pd, 4, 1);
        ASSERT_NE(srq, nullptr);
        auto* own = end.qp;
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = end.cq;
        wanted.srq = srq;
        wanted.cap = {4, 0, 1, 0, 0};
        wanted.qp_type = IBV_QPT_RC;
        end.qp = ibv_create_qp(end.pd, &wanted);
        ASSERT_NE(end.qp, nullptr);
        end.connect(addresses.swap(1, end.address()));
        std::uint64_t id = 0;
        for (auto* region : {mr, end.mr}) {
          ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, region->lkey};
          ibv_recv_wr wr{};
          wr.wr_id = id++;
          wr.sg_list = &sge;
          wr.num_sge = 1;
          ibv_recv_wr* bad = nullptr;
          ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
        }
        meet(1);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        const auto wc = end.completion();
        EXPECT_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
        EXPECT_EQ(wc.wr_id, 1u);
        meet(1);
        EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = own;
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
      });
}

TEST_F(SharedReceive, TheLimitIsTheLeastThatIsEnough) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        for (int i = 0; i < 4; ++i) {
          send_messages(end, i == 0 ? 2 : 1);
          meet(0);
          meet(0);
        }
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        post_receives(end, 0, 5);
        ASSERT_EQ(arm(end.srq, 3), 0);
        EXPECT_EQ(query(end.srq).srq_limit, 3u);
        meet(1);
        meet(1);
        EXPECT_THAT(events_soon(end, 1), ElementsAre()) << "three are left";
        EXPECT_EQ(query(end.srq).srq_limit, 3u);
        meet(1);
        meet(1);
        EXPECT_THAT(events_soon(end, 1), ElementsAre(IBV_EVENT_SRQ_LIMIT_REACHED)) << "two are left";
        EXPECT_EQ(query(end.srq).srq_limit, 0u) << "disarmed";
        meet(1);
        meet(1);
        EXPECT_THAT(events_soon(end, 1), ElementsAre());
        post_receives(end, 5, 2);
        ASSERT_EQ(arm(end.srq, 3), 0);
        EXPECT_THAT(events_soon(end, 1), ElementsAre()) << "three are there";
        meet(1);
        meet(1);
        ibv_async_event event;
        pass(1, Duration{50'000'000});
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
        EXPECT_EQ(event.element.srq, end.srq);
        ibv_ack_async_event(&event);
        meet(1);
      },
      {}, shared());
}

TEST_F(SharedReceive, WhatIsPostedInTimeKeepsTheLimitAway) {
  constexpr std::uint64_t kMessages = 60;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          meet(0);
          send_messages(end, 1);
        }
        meet(0);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        post_receives(end, 0, 4);
        ASSERT_EQ(arm(end.srq, 4), 0);
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          post_receives(end, 4 + i, 1);
          meet(1);
          ASSERT_EQ(end.completion().wr_id, i);
        }
        meet(1);
        EXPECT_THAT(events_soon(end, 1), ElementsAre());
      },
      {}, shared());
}

TEST_F(SharedReceive, ALimitAboveWhatIsThereFiresAtOnce) {
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        EXPECT_THAT(events_soon(end, 0), ElementsAre());
        post_receives(end, 0, 2);
        ASSERT_EQ(arm(end.srq, 2), 0);
        EXPECT_THAT(events_soon(end, 0), ElementsAre());
        ASSERT_EQ(arm(end.srq, 3), 0);
        EXPECT_THAT(events_soon(end, 0), ElementsAre(IBV_EVENT_SRQ_LIMIT_REACHED));
        ASSERT_EQ(arm(end.srq, 0), 0);
        EXPECT_THAT(events_soon(end, 0), ElementsAre());
      },
      shared());
}

TEST_F(SharedReceive, ModifyChangesAllOrNothing) {
  run_alone(
      [&](Endpoint& end) {
        post_receives(end, 0, 10);
        const auto device_most = 32767u;
        const int both = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
        EXPECT_EQ(modify(end.srq, 0, 0, 0), 0);
        EXPECT_EQ(modify(end.srq, 20, 5, 1 << 7), EINVAL);
        EXPECT_EQ(arm(end.srq, 16), EINVAL) << "more than the queue holds";
        EXPECT_EQ(modify(end.srq, 0, 0, IBV_SRQ_MAX_WR), EINVAL);
        EXPECT_EQ(modify(end.srq, device_most + 1, 0, IBV_SRQ_MAX_WR), EINVAL);
        EXPECT_EQ(modify(end.srq, 9, 0, IBV_SRQ_MAX_WR), EINVAL) << "ten are posted";
        EXPECT_EQ(modify(end.srq, 40, 41, both), EINVAL);
        EXPECT_EQ(query(end.srq).max_wr, 15u);
        EXPECT_EQ(query(end.srq).srq_limit, 0u);

        ASSERT_EQ(arm(end.srq, 10), 0);
        EXPECT_EQ(modify(end.srq, 40, 41, both), EINVAL);
        EXPECT_EQ(query(end.srq).srq_limit, 10u);
        EXPECT_EQ(modify(end.srq, 10, 10, both), 0) << "smaller, and still enough";
        EXPECT_EQ(query(end.srq).max_wr, 10u);
        EXPECT_EQ(end.receive(0, kSlot, 0), ENOMEM);
        EXPECT_EQ(modify(end.srq, 40, 7, both), 0);
        EXPECT_GE(query(end.srq).max_wr, 40u);
        EXPECT_EQ(query(end.srq).srq_limit, 7u);
        EXPECT_EQ(modify(end.srq, device_most, 0, IBV_SRQ_MAX_WR), 0);
        EXPECT_EQ(query(end.srq).max_wr, device_most);
      },
      shared());
}

TEST_F(SharedReceive, GrowsUnderTraffic) {
  constexpr std::uint64_t kMessages = 400;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        std::uint64_t posted = 0, done = 0;
        while (done < kMessages) {
          while (posted < kMessages && posted - done < 16) {
            ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
            ++posted;
          }
          ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
          ++done;
        }
      },
      [&](Endpoint& end) {
        std::uint64_t posted = 3, expected = 0;
        std::uint32_t size = 3;
        post_receives(end, 0, posted);
        meet(1);
        while (expected < kMessages) {
          const auto wc = end.completion();
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          ASSERT_EQ(wc.wr_id, expected++);
          if (expected % 40 == 0 && size < 1000) {
            size = 2 * size + 1;
            ASSERT_EQ(modify(end.srq, size, 0, IBV_SRQ_MAX_WR), 0);
            EXPECT_EQ(query(end.srq).max_wr, size);
          }
          while (end.receive(0, kSlot, posted) == 0) ++posted;
        }
      },
      {}, {.cq_entries = 512, .shared_wr = 3});
}

TEST_F(SharedReceive, ItsOwnEventsBlockItsEnd) {
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        auto* srq = create(end.pd, 4, 1);
        ASSERT_EQ(arm(srq, 1), 0);
        pass(0, Duration{50'000'000});
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        Duration destroyed{};
        run_threads(2, [&](std::size_t thread) {
          if (thread == 0) {
            EXPECT_EQ(ibv_destroy_srq(srq), 0);
            destroyed = now();
            return;
          }
          sleep_until(now() + Duration{300'000'000});
          EXPECT_EQ(destroyed, Duration{});
          ibv_ack_async_event(&event);
        });
        EXPECT_NE(destroyed, Duration{});

        srq = create(end.pd, 4, 1);
        ASSERT_EQ(arm(srq, 1), 0);
        pass(0, Duration{50'000'000});
        EXPECT_EQ(ibv_destroy_srq(srq), 0);
        EXPECT_THAT(take_async_events(end.context), ElementsAre()) << "an unread one goes with it";
      },
      shared());
}

}  // namespace
}  // namespace rnicsim::testing
