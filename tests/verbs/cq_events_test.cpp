// SPDX-License-Identifier: Apache-2.0
// Completion queues and their channels, and the order in which objects may be destroyed.
#include <poll.h>

#include <memory>

#include "model/abi/device.h"
#include "model/nic/nic.h"
#include "model/nic/pcie/dma.h"
#include "sim/adapter.h"
#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

class CqEvents : public RcPair {
 protected:
  // The body's function sends one message from h1 per call, and returns when h0 has the completion.
  void run_receiving(std::function<void(Endpoint&, std::function<void(bool solicited)>)> body) {
    EndpointOptions receiver;
    receiver.channel = true;
    run_connected(
        [&](Endpoint& end) {
          never_wait(end.channel->fd);
          for (int i = 0; i < 16; ++i) ASSERT_EQ(end.receive(0, 64), 0);
          body(end, [&](bool solicited) {
            order_ = solicited ? Order::solicited : Order::plain;
            meet(0);
            meet(0);
            pass(0, kSettled);
          });
          order_ = Order::end;
          meet(0);
        },
        [&](Endpoint& end) {
          for (;;) {
            meet(1);
            if (order_ == Order::end) return;
            auto wr = end.request(IBV_WR_SEND, 0, 8);
            if (order_ == Order::solicited) wr.send_flags = IBV_SEND_SOLICITED;
            ASSERT_EQ(end.post(wr), 0);
            EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
            meet(1);
          }
        },
        receiver);
  }
  static void drain(ibv_cq* cq) {
    ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 1) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  // Error completions without a peer: `count` flushed receives.
  static void flush_receives(Endpoint& end, int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(end.receive(0, 64, std::uint64_t(i)), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
  }

 private:
  enum class Order { plain, solicited, end } order_ = Order::plain;
};

TEST_F(CqEvents, AChannelServesItsOwnContextOnly) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [](Endpoint& end) {
        Endpoint other;
        errno = 0;
        EXPECT_EQ(ibv_create_cq(other.context, 4, nullptr, end.channel, 0), nullptr);
        EXPECT_EQ(errno, EINVAL);
      },
      options);
}

TEST_F(CqEvents, NeverWithoutArming) {
  run_receiving([](Endpoint& end, auto send) {
    send(false);
    send(true);
    EXPECT_EQ(take_cq_events(end.channel), 0);
  });
}

TEST_F(CqEvents, ArmingIsForOne) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    send(false);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 1);
    drain(end.cq);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

TEST_F(CqEvents, ArmingTwiceIsForOneToo) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    send(false);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

// The arm doorbell contains the consumer index: CQEs behind it raise the event at once.
TEST_F(CqEvents, ArmingTellsOfCompletionsThatWereNotPolled) {
  run_receiving([&](Endpoint& end, auto send) {
    send(false);
    send(false);
    ibv_wc wc;
    ASSERT_EQ(ibv_poll_cq(end.cq, 1, &wc), 1);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 1);
    drain(end.cq);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 0) << "all were polled";
  });
}

// One unread event stands for all of them.
TEST_F(CqEvents, OneEventIsEnoughForCompletionsThatWereNotPolled) {
  run_receiving([&](Endpoint& end, auto send) {
    for (int i = 0; i < 4; ++i) send(false);
    ibv_wc wc;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
      pass(0, kSettled);
      ASSERT_EQ(ibv_poll_cq(end.cq, 1, &wc), 1);
    }
    EXPECT_EQ(take_cq_events(end.channel), 1);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 1) << "the last one lies there still";
  });
}

TEST_F(CqEvents, ArmingForSolicitedOnesTellsOfThoseThatWereNotPolled) {
  run_receiving([&](Endpoint& end, auto send) {
    send(false);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 1) << "any completion will do now";
    drain(end.cq);
    send(true);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

TEST_F(CqEvents, SolicitedOnly) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 0);
    send(true);
    EXPECT_EQ(take_cq_events(end.channel), 1);
    send(true);
    EXPECT_EQ(take_cq_events(end.channel), 0);
  });
}

TEST_F(CqEvents, AnErrorIsAlwaysSolicited) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        end.to_init();
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
        flush_receives(end, 1);
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), 1);
      },
      options);
}

TEST_F(CqEvents, ArmingForAnyIsNotTakenBack) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

TEST_F(CqEvents, ArmingForSolicitedGrowsToAny) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    send(false);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

int moderate(ibv_cq* cq, std::uint16_t count, std::uint16_t period) {
  ibv_modify_cq_attr attributes{.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {count, period}};
  return ibv_modify_cq(cq, &attributes);
}

TEST_F(CqEvents, ModeratedByCount) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(moderate(end.cq, 3, 4095), 0);
    for (int round = 0; round < 2; ++round) {
      ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
      send(false);
      send(false);
      EXPECT_EQ(take_cq_events(end.channel), 0);
      send(false);
      EXPECT_EQ(take_cq_events(end.channel), 1);
      drain(end.cq);
    }
  });
}

TEST_F(CqEvents, ModeratedByTime) {
  run_receiving([&](Endpoint& end, auto send) {
    ASSERT_EQ(moderate(end.cq, 3, 200), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    const auto begin = now();
    send(false);
    pass(0, begin + Duration{195'000'000} - now());
    EXPECT_EQ(take_cq_events(end.channel), 0);
    pass(0, kSettled);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

TEST_F(CqEvents, ModeratedSolicitedOnes) {
  run_receiving([](Endpoint& end, auto send) {
    ASSERT_EQ(moderate(end.cq, 2, 4095), 0);
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
    for (const bool solicited : {false, true, false, false}) send(solicited);
    EXPECT_EQ(take_cq_events(end.channel), 0);
    send(true);
    EXPECT_EQ(take_cq_events(end.channel), 1);
  });
}

TEST_F(CqEvents, ModerationHasLimits) {
  run_alone([](Endpoint& end) {
    ibv_device_attr_ex device{};
    ASSERT_EQ(ibv_query_device_ex(end.context, nullptr, &device), 0);
    const auto [count, period] = device.cq_mod_caps;
    EXPECT_EQ(count, 65535);
    EXPECT_EQ(period, 4095);
    EXPECT_EQ(moderate(end.cq, count, period), 0);
    EXPECT_EQ(moderate(end.cq, count, std::uint16_t(period + 1)), EINVAL);
    EXPECT_EQ(moderate(end.cq, 0, 0), 0);
    ibv_modify_cq_attr attributes{};
    EXPECT_EQ(ibv_modify_cq(end.cq, &attributes), EINVAL);
    attributes.attr_mask = IBV_CQ_ATTR_MODERATE | 1u << 5;
    EXPECT_EQ(ibv_modify_cq(end.cq, &attributes), EINVAL);
    const auto good = std::exchange(end.cq->handle, 0x7fffff);
    EXPECT_EQ(moderate(end.cq, 1, 1), ENOENT);
    end.cq->handle = good;
  });
}

TEST_F(CqEvents, TheDescriptorCanBePolled) {
  run_receiving([](Endpoint& end, auto send) {
    pollfd entry{end.channel->fd, POLLIN, 0};
    ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    EXPECT_EQ(poll(&entry, 1, 0), 0);
    send(false);
    EXPECT_EQ(poll(&entry, 1, 0), 1);
    EXPECT_EQ(entry.revents, POLLIN);
    EXPECT_EQ(take_cq_events(end.channel), 1);
    EXPECT_EQ(poll(&entry, 1, 0), 0);
  });
}

// Each completion vector has its own interrupt; vector 0 is for commands, vector 1 for asynchronous events.
TEST_F(CqEvents, AVectorForEachInterrupt) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        const auto interrupts = std::make_shared<std::vector<std::uint64_t>>();
        host(0).nic().blocks().dma_unit.issued.subscribe([interrupts](const nic::DmaIssued& access) {
          const auto vector = (access.address - abi::kMsiWindow) / 16;
          const bool is_interrupt = access.write && access.pasid == kKernelPasid && vector < abi::kMsixVectors;
          if (is_interrupt && vector != 0) interrupts->push_back(vector);
        });
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
        std::vector<std::uint64_t> expected;
        for (int vector = 0; vector < end.context->num_comp_vectors; ++vector) {
          end.cq = ibv_create_cq(end.context, 8, nullptr, end.channel, vector);
          ASSERT_NE(end.cq, nullptr);
          ibv_qp_init_attr attributes{};
          attributes.send_cq = attributes.recv_cq = end.cq;
          attributes.cap = {1, 4, 1, 1, 0};
          attributes.qp_type = IBV_QPT_RC;
          end.qp = ibv_create_qp(end.pd, &attributes);
          ASSERT_NE(end.qp, nullptr);
          ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
          end.to_init();
          flush_receives(end, 1);
          pass(0, kSettled);
          expected.push_back(2 + std::uint64_t(vector));
          EXPECT_EQ(*interrupts, expected);
          EXPECT_EQ(take_cq_events(end.channel), 1);
          ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
          ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
        }
        end.qp = nullptr;
        end.cq = nullptr;
      },
      options);
}

// Without O_NONBLOCK ibv_get_cq_event() waits for the event.
TEST_F(CqEvents, ALookWaits) {
  Duration asked{}, flushed{};
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        end.to_init();
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        bool seen = false;
        run_threads(2, [&](std::size_t me) {
          if (me == 1) {
            settle(0);
            sleep_until(now() + Duration{100'000'000});
            flushed = now();
            return flush_receives(end, 1);
          }
          asked = now();
          ibv_cq* cq = nullptr;
          void* owner = nullptr;
          ASSERT_EQ(ibv_get_cq_event(end.channel, &cq, &owner), 0);
          settle(0);
          EXPECT_GT(now(), flushed);
          EXPECT_EQ(cq, end.cq);
          ibv_ack_cq_events(cq, 1);
          seen = true;
        });
        EXPECT_TRUE(seen);
        EXPECT_GT(flushed, asked);
      },
      options);
}

TEST_F(CqEvents, WithoutAChannelArmingIsNothing) {
  run_alone([](Endpoint& end) {
    EXPECT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
    EXPECT_EQ(ibv_req_notify_cq(end.cq, 1), 0);
  });
}

TEST_F(CqEvents, ManyQueuesOneChannel) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        std::vector<ibv_cq*> cqs;
        std::vector<ibv_qp*> qps;
        for (std::uintptr_t i = 0; i < 5; ++i) {
          cqs.push_back(ibv_create_cq(end.context, 8, reinterpret_cast<void*>(i), end.channel, 0));
          ASSERT_NE(cqs[i], nullptr);
          ibv_qp_init_attr attributes{};
          attributes.send_cq = attributes.recv_cq = cqs[i];
          attributes.cap = {1, 4, 1, 1, 0};
          attributes.qp_type = IBV_QPT_RC;
          qps.push_back(ibv_create_qp(end.pd, &attributes));
          ASSERT_NE(qps[i], nullptr);
          ASSERT_EQ(ibv_req_notify_cq(cqs[i], 0), 0);
        }
        std::swap(end.qp, qps[3]);
        end.to_init();
        flush_receives(end, 2);
        std::swap(end.qp, qps[3]);
        std::swap(end.qp, qps[1]);
        end.to_init();
        flush_receives(end, 1);
        std::swap(end.qp, qps[1]);
        pass(0, kSettled);
        std::vector<std::uintptr_t> owners;
        ibv_cq* cq = nullptr;
        void* owner = nullptr;
        while (ibv_get_cq_event(end.channel, &cq, &owner) == 0) {
          owners.push_back(reinterpret_cast<std::uintptr_t>(owner));
          EXPECT_EQ(cq, cqs.at(owners.back()));
          ibv_ack_cq_events(cq, 1);
        }
        EXPECT_EQ(owners, (std::vector<std::uintptr_t>{3, 1}));
        for (ibv_qp* qp : qps) EXPECT_EQ(ibv_destroy_qp(qp), 0);
        for (ibv_cq* each : cqs) EXPECT_EQ(ibv_destroy_cq(each), 0);
      },
      options);
}

// An unread event is discarded with its CQ, even if the next CQ gets the same number.
TEST_F(CqEvents, AnUnreadEventGoesWithItsQueue) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        end.to_init();
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        flush_receives(end, 1);
        pass(0, kSettled);
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
        end.qp = nullptr;
        end.cq = ibv_create_cq(end.context, 8, nullptr, end.channel, 0);
        EXPECT_EQ(take_cq_events(end.channel), 0);
      },
      options);
}

// Unread events: the list is unbounded, although the descriptor holds a bounded number.
TEST_F(CqEvents, ManyUnreadOnes) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        end.to_init();
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        for (int i = 0; i < kManyEvents; ++i) {
          ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
          ASSERT_EQ(end.receive(0, 64, std::uint64_t(i)), 0);
          expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, std::uint64_t(i), 1);
        }
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), kManyEvents);
      },
      options);
}

TEST_F(CqEvents, DestructionWaitsForAcknowledgements) {
  EndpointOptions options;
  options.channel = true;
  ibv_cq* unacknowledged = nullptr;
  Duration acknowledged{}, destroyed{};
  run(
      [&] {
        Endpoint end(options);
        end.to_init();
        ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
        flush_receives(end, 1);
        void* owner = nullptr;
        ASSERT_EQ(ibv_get_cq_event(end.channel, &unacknowledged, &owner), 0);
        EXPECT_EQ(ibv_destroy_cq(end.cq), EBUSY);  // its QP must be destroyed first
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        meet(0);
        EXPECT_EQ(ibv_destroy_cq(end.cq), 0);
        destroyed = now();
        end.cq = nullptr;
      },
      [&] {
        meet(1);
        pass(1, Duration{300'000'000});
        EXPECT_EQ(destroyed, Duration{});
        acknowledged = now();
        ibv_ack_cq_events(unacknowledged, 1);
      });
  EXPECT_GE(destroyed, acknowledged);
  EXPECT_LT(destroyed, acknowledged + Duration{20'000'000});
}

TEST_F(CqEvents, Sizes) {
  run_alone([](Endpoint& end) {
    ibv_device_attr device;
    ASSERT_EQ(ibv_query_device(end.context, &device), 0);
    const auto refused = [&](int entries, int vector) {
      errno = 0;
      EXPECT_EQ(ibv_create_cq(end.context, entries, nullptr, nullptr, vector), nullptr) << entries << ", " << vector;
      EXPECT_EQ(errno, EINVAL);
    };
    refused(0, 0);
    refused(-1, 0);
    refused(device.max_cqe + 1, 0);
    refused(16, end.context->num_comp_vectors);
    refused(16, -1);
    for (const int entries : {1, 2, 3, 100, 4096}) {
      ibv_cq* cq = ibv_create_cq(end.context, entries, nullptr, nullptr, end.context->num_comp_vectors - 1);
      ASSERT_NE(cq, nullptr);
      EXPECT_GE(cq->cqe, entries);
      EXPECT_EQ(ibv_destroy_cq(cq), 0);
    }
  });
}

TEST_F(CqEvents, WhatIsInUseStays) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [](Endpoint& end) {
        EXPECT_EQ(ibv_destroy_comp_channel(end.channel), EBUSY);
        EXPECT_EQ(ibv_destroy_cq(end.cq), EBUSY);
        EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        EXPECT_EQ(ibv_dealloc_pd(end.pd), EBUSY);  // in use by a region
        ASSERT_EQ(ibv_destroy_cq(end.cq), 0);
        end.cq = nullptr;
      },
      options);
}

TEST_F(CqEvents, ObjectsAreFoundByTheirHandles) {
  run_alone([](Endpoint& end) {
    const auto spoilt = [](std::uint32_t& handle, auto destroy) {
      const auto good = std::exchange(handle, 0x7fffff);
      EXPECT_EQ(destroy(), ENOENT);
      handle = good;
    };
    spoilt(end.qp->handle, [&] { return ibv_destroy_qp(end.qp); });
    spoilt(end.cq->handle, [&] { return ibv_destroy_cq(end.cq); });
    spoilt(end.mr->handle, [&] { return ibv_dereg_mr(end.mr); });
    spoilt(end.pd->handle, [&] { return ibv_dealloc_pd(end.pd); });
    const auto good = std::exchange(end.cq->handle, 0x7fffff);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = end.cq;
    attributes.cap = {1, 1, 1, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    EXPECT_EQ(ibv_create_qp(end.pd, &attributes), nullptr);
    end.cq->handle = good;
  });
}

}  // namespace
}  // namespace rnicsim::testing
