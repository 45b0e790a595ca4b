// SPDX-License-Identifier: Apache-2.0
// Posting: effect of a work request in each state of a queue pair, and requests that are refused at once.
#include <array>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

constexpr std::uint32_t kBadKey = 0x00abcd00;

class Posting : public RcPair {
 protected:
  static int send_numbered(Endpoint& end, std::uint64_t wr_id) {
    auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    wr.wr_id = wr_id;
    return end.post(wr);
  }
  // A state in which posts are accepted and nothing is sent: SQD, connected to itself.
  static void bring_to_sqd(Endpoint& end) {
    end.connect(end.address());
    ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
  }
  // The device fails the QP and flushes the posted requests; then receives are posted.
  void fail_and_post_receives(Endpoint& end) {
    end.connect(end.address());
    auto wr = end.request(IBV_WR_SEND, 0, 64);
    wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
    pass(0, kSettled);
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
  }
  // `learn` makes the library learn of the error.
  void flush_late_receives(const std::function<void(Endpoint&)>& learn) {
    run_alone([&](Endpoint& end) {
      fail_and_post_receives(end);
      learn(end);
      pass(0, kSettled);
      std::array<ibv_wc, 8> wcs{};
      ASSERT_EQ(ibv_poll_cq(end.cq, 8, wcs.data()), 4);
      EXPECT_EQ(wcs[0].status, IBV_WC_LOC_PROT_ERR);
      for (std::uint64_t id = 1; id <= 3; ++id) {
        EXPECT_EQ(wcs[id].status, IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(wcs[id].wr_id, id);
      }
    });
  }
};

TEST_F(Posting, ByState) {
  run_alone([](Endpoint& end) {
    EXPECT_EQ(send_numbered(end, 1), EINVAL);
    EXPECT_EQ(end.receive(0, 64), EINVAL);
    end.to_init();
    EXPECT_EQ(send_numbered(end, 1), EINVAL);
    EXPECT_EQ(end.receive(0, 64, 1), 0);
    end.to_rtr(end.address());
    EXPECT_EQ(send_numbered(end, 1), EINVAL);
    EXPECT_EQ(end.receive(0, 64, 2), 0);
    end.to_rts();
    EXPECT_EQ(end.receive(0, 64, 3), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
    EXPECT_EQ(send_numbered(end, 4), 0);
    EXPECT_EQ(end.receive(0, 64, 5), 0);
    EXPECT_FALSE(completion_soon(end.cq));
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    // All outstanding requests complete, each queue in its order.
    std::vector<std::uint64_t> sends, receives;
    for (int i = 0; i < 5; ++i) {
      const auto wc = completion_soon(end.cq);
      ASSERT_TRUE(wc);
      EXPECT_EQ(wc->status, IBV_WC_WR_FLUSH_ERR);
      (wc->wr_id == 4 ? sends : receives).push_back(wc->wr_id);
    }
    EXPECT_EQ(sends, std::vector<std::uint64_t>{4});
    EXPECT_EQ(receives, (std::vector<std::uint64_t>{1, 2, 3, 5}));
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    EXPECT_EQ(send_numbered(end, 1), EINVAL);
    EXPECT_EQ(end.receive(0, 64), EINVAL);
  });
  EXPECT_TRUE(wire().empty());
}

TEST_F(Posting, ReceivesOfInitAreHeldUntilMessagesCome) {
  Exchange<EndpointAddress> addresses;
  const auto body = [&](std::size_t me) {
    Endpoint end;
    end.to_init();
    ASSERT_EQ(end.receive(0, 64, 42), 0);
    const auto remote = addresses.swap(me, end.address());
    end.to_rtr(remote);
    end.to_rts();
    meet(me);
    if (me == 0) {
      ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 10)), 0);
    }
    const auto wc = completion_soon(end.cq);
    ASSERT_TRUE(wc);
    EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
    if (me == 1) {
      EXPECT_EQ(wc->wr_id, 42u);
    }
    meet(me);
  };
  run([&] { body(0); }, [&] { body(1); });
}

TEST_F(Posting, SqdFinishesWhatWasStartedAndStartsNothing) {
  constexpr std::uint32_t kLong = 1 << 20;  // 80 us on the wire: longer than the commands take
  EndpointOptions large;
  large.buffer_bytes = kLong;
  run_connected(
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, kLong)), 0);
        pass(0, Duration{2'000'000});
        ibv_qp_attr attributes{};
        attributes.qp_state = IBV_QPS_SQD;
        attributes.en_sqd_async_notify = 1;
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
        EXPECT_EQ(query(end.qp).sq_draining, 1);
        EXPECT_EQ(move(end.qp, IBV_QPS_RTS), EINVAL);
        ibv_async_event event;
        ASSERT_EQ(ibv_get_async_event(end.context, &event), 0);
        EXPECT_EQ(event.event_type, IBV_EVENT_SQ_DRAINED);
        EXPECT_EQ(event.element.qp, end.qp);
        ibv_ack_async_event(&event);
        EXPECT_EQ(query(end.qp).sq_draining, 0);
        expect_completions(end.cq, IBV_WC_SUCCESS, 0, 1);
        const auto frames = wire().size();
        ASSERT_EQ(send_numbered(end, 99), 0);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_EQ(wire().size(), frames);
        ASSERT_EQ(move(end.qp, IBV_QPS_RTS), 0);
        for (const std::uint64_t id : {0, 99}) {
          const auto wc = completion_soon(end.cq, 1000);
          ASSERT_TRUE(wc);
          EXPECT_EQ(wc->status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc->wr_id, id);
        }
      },
      [](Endpoint&) {}, large, large);
}

TEST_F(Posting, SendsOfAnErrorStateAreFlushedSignalledOrNot) {
  EndpointOptions options;
  options.signal_all = false;
  run_alone(
      [](Endpoint& end) {
        end.connect(end.address());
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(send_numbered(end, id), 0);
        expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 3);
      },
      options);
}

TEST_F(Posting, ReceivesOfAnErrorStateAreFlushed) {
  run_alone([](Endpoint& end) {
    end.to_init();
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    EXPECT_FALSE(completion_soon(end.cq, 10));
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 3);
  });
}

TEST_F(Posting, ReceivesAfterAnErrorCompletionAreFlushed) {
  run_alone([&](Endpoint& end) {
    end.connect(end.address());
    auto wr = end.request(IBV_WR_SEND, 0, 64);
    wr.sg_list->lkey = kBadKey;
    ASSERT_EQ(end.post(wr), 0);
    ASSERT_EQ(completion_soon(end.cq).value().status, IBV_WC_LOC_PROT_ERR);
    EXPECT_EQ(end.qp->state, IBV_QPS_RTS);  // no query since the error
    pass(0, kSettled);                      // the device has flushed the posted requests
    for (std::uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(end.receive(0, 64, id), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 3);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  });
}

TEST_F(Posting, ReceivesBeforeTheErrorCompletionIsPolledAreFlushed) {
  run_alone([&](Endpoint& end) {
    fail_and_post_receives(end);
    ASSERT_EQ(completion_soon(end.cq).value().status, IBV_WC_LOC_PROT_ERR);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 3);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  });
}

TEST_F(Posting, ReceivesBeforeAQueryFindsTheErrorAreFlushed) {
  flush_late_receives([](Endpoint& end) { EXPECT_EQ(end.state(), IBV_QPS_ERR); });
}

TEST_F(Posting, ReceivesBeforeAMoveToTheErrorStateItIsInAreFlushed) {
  flush_late_receives([](Endpoint& end) { EXPECT_EQ(move(end.qp, IBV_QPS_ERR), 0); });
}

TEST_F(Posting, AQueuePairWithoutASendQueueFlushesItsReceivesToo) {
  run_alone([](Endpoint& end) {
    ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = end.cq;
    attributes.cap = {0, 8, 0, 1, 0};
    attributes.qp_type = IBV_QPT_RC;
    end.qp = ibv_create_qp(end.pd, &attributes);
    ASSERT_NE(end.qp, nullptr);
    end.to_init();
    ASSERT_EQ(end.receive(0, 64, 1), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 1);
    ASSERT_EQ(end.receive(0, 64, 2), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 2, 1);
  });
}

TEST_F(Posting, AnErrorIsUnknownToThePeerUntilItSends) {
  EndpointOptions impatient;
  impatient.timeout = 1;
  impatient.retry_count = 1;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        meet(0);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_FALSE(completion_soon(end.cq));
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        EXPECT_EQ(completion_soon(end.cq).value().status, IBV_WC_RETRY_EXC_ERR);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(1);
      },
      {}, impatient);
}

// Two QPs with one CQ, and unpolled completions of both.
class SharedCq : public Posting {
 protected:
  void run_shared(std::function<void(Endpoint&, ibv_qp*&)> action) {
    run_alone([&](Endpoint& end) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = attributes.recv_cq = end.cq;
      attributes.cap = {8, 8, 1, 1, 0};
      attributes.qp_type = IBV_QPT_RC;
      ibv_qp* first = end.qp;
      ibv_qp* second = ibv_create_qp(end.pd, &attributes);
      ASSERT_NE(second, nullptr);
      for (ibv_qp* qp : {first, second}) {
        end.qp = qp;
        end.to_init();
      }
      for (std::uint64_t i = 0; i < 3; ++i) {  // wr_id 1, 2, 3 of the first QP; 11, 12, 13 of the second
        end.qp = first;
        ASSERT_EQ(end.receive(0, 64, 1 + i), 0);
        end.qp = second;
        ASSERT_EQ(end.receive(0, 64, 11 + i), 0);
      }
      end.qp = first;
      ASSERT_EQ(move(second, IBV_QPS_ERR), 0);
      ASSERT_EQ(move(first, IBV_QPS_ERR), 0);
      pass(0, Duration{50'000'000});
      action(end, second);
      if (second) {
        EXPECT_EQ(ibv_destroy_qp(second), 0);
      }
    });
  }
};

TEST_F(SharedCq, ResetDiscardsTheCompletionsOfThatQueuePairOnly) {
  run_shared([](Endpoint& end, ibv_qp*&) {
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 11, 1);
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 12, 2);
    EXPECT_FALSE(completion_soon(end.cq, 10));
    // The QP is used again, and its completions have room.
    end.to_init();
    ASSERT_EQ(end.receive(0, 64, 21), 0);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 21, 1);
  });
}

TEST_F(SharedCq, DestructionDiscardsTheCompletionsOfThatQueuePairOnly) {
  run_shared([](Endpoint& end, ibv_qp*& second) {
    ASSERT_EQ(ibv_destroy_qp(second), 0);
    second = nullptr;
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 1, 3);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  });
}

TEST_F(Posting, TheSendQueueIsFullExactlyAtItsCapacity) {
  run_alone([](Endpoint& end) {
    bring_to_sqd(end);
    const std::size_t capacity = query(end.qp).cap.max_send_wr;
    std::vector<ibv_send_wr> list(capacity + 3, end.request(IBV_WR_RDMA_WRITE, 0, 64));
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i].wr_id = i;
      list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    errno = 0;
    EXPECT_EQ(ibv_post_send(end.qp, list.data(), &bad), ENOMEM);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(bad, &list[capacity]);
    EXPECT_EQ(send_numbered(end, 1), ENOMEM);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, capacity);
    EXPECT_EQ(send_numbered(end, 500), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 500, 1);
  });
}

TEST_F(Posting, TheReceiveQueueIsFullExactlyAtItsCapacity) {
  run_alone([](Endpoint& end) {
    end.to_init();
    const auto capacity = query(end.qp).cap.max_recv_wr;
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, end.mr->lkey};
    std::vector<ibv_recv_wr> list(capacity + 1);
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = {.wr_id = i, .next = i + 1 < list.size() ? &list[i + 1] : nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(end.qp, list.data(), &bad), ENOMEM);
    EXPECT_EQ(bad, &list[capacity]);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, 0, capacity);
  });
}

TEST_F(Posting, AListLinkedToItselfEnds) {
  run_alone([](Endpoint& end) {
    bring_to_sqd(end);
    auto send = end.request(IBV_WR_RDMA_WRITE, 0, 64);
    send.next = &send;
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(ibv_post_send(end.qp, &send, &bad_send), ENOMEM);
    EXPECT_EQ(bad_send, &send);
    ibv_recv_wr receive{};
    receive.next = &receive;
    ibv_recv_wr* bad_receive = nullptr;
    EXPECT_EQ(ibv_post_recv(end.qp, &receive, &bad_receive), ENOMEM);
    EXPECT_EQ(bad_receive, &receive);
  });
}

TEST_F(Posting, ABadRequestInAListKeepsWhatCameBefore) {
  run_alone([](Endpoint& end) {
    bring_to_sqd(end);
    const auto cap = query(end.qp).cap;
    std::vector<ibv_sge> many(std::max(cap.max_send_sge, cap.max_recv_sge) + 1);
    std::vector<std::uint8_t> large(cap.max_inline_data + 1);
    ibv_sge whole{reinterpret_cast<std::uint64_t>(large.data()), cap.max_inline_data + 1, 0};
    ibv_sge halves[2] = {whole, whole};
    halves[0].length = 1;
    halves[1].length = cap.max_inline_data;
    ibv_sge huge{0, 0x80000000, 0};
    const auto spoilt = [&](const std::function<void(ibv_send_wr&)>& spoil, const char* what) {
      SCOPED_TRACE(what);
      std::array<ibv_send_wr, 3> list;
      list.fill(end.request(IBV_WR_RDMA_WRITE, 0, 16));
      list[0].next = &list[1];
      list[1].next = &list[2];
      spoil(list[1]);
      ibv_send_wr* bad = nullptr;
      EXPECT_EQ(ibv_post_send(end.qp, list.data(), &bad), EINVAL);
      EXPECT_EQ(bad, &list[1]);
    };
    spoilt([&](auto& wr) { wr.sg_list = many.data(), wr.num_sge = int(cap.max_send_sge) + 1; }, "too many segments");
    spoilt([&](auto& wr) { wr.num_sge = -1; }, "fewer than no segments");
    spoilt([&](auto& wr) { wr.sg_list = &huge; }, "a segment of 2 GiB");
    spoilt([&](auto& wr) { wr.opcode = ibv_wr_opcode(77); }, "unknown opcode");
    spoilt([&](auto& wr) { wr.sg_list = &whole, wr.send_flags = IBV_SEND_INLINE; }, "too much inline");
    spoilt([&](auto& wr) { wr.sg_list = halves, wr.num_sge = 2, wr.send_flags = IBV_SEND_INLINE; }, "in two pieces");
    spoilt([&](auto& wr) { wr.opcode = IBV_WR_RDMA_READ, wr.send_flags = IBV_SEND_INLINE; }, "inline read");
    ibv_recv_wr receives[2] = {
        {.wr_id = 1, .next = &receives[1], .sg_list = nullptr, .num_sge = 0},
        {.wr_id = 2, .next = nullptr, .sg_list = many.data(), .num_sge = int(cap.max_recv_sge) + 1}};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(end.qp, receives, &bad), EINVAL);
    EXPECT_EQ(bad, &receives[1]);
    ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
    int flushed = 0;
    while (completion_soon(end.cq)) ++flushed;
    EXPECT_EQ(flushed, 8);  // the first of each list
  });
}

TEST_F(Posting, InlineAtItsExactLimit) {
  EndpointOptions options;
  options.max_inline = 100;
  run_connected(
      [&](Endpoint& end) {
        const auto most = query(end.qp).cap.max_inline_data;
        EXPECT_GE(most, 100u);
        end.buffer[most - 1] = 0x5a;
        auto wr = end.request(IBV_WR_RDMA_WRITE, 0, most);
        wr.send_flags = IBV_SEND_INLINE;
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(completion_soon(end.cq).value().status, IBV_WC_SUCCESS);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_EQ(end.buffer[query(end.qp).cap.max_inline_data - 1], 0x5a);
      },
      options, options);
}

}  // namespace
}  // namespace rnicsim::testing
