// SPDX-License-Identifier: Apache-2.0
// The requester's two timers, to the microsecond, and their retry counters.
#include <gmock/gmock.h>

#include <array>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_timers_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

constexpr Duration kMicrosecond{1'000'000};
constexpr Duration kLong{100'000'000'000'000};

// Longest time from the start or the expiry of a timer until the packet has left: the WQE is present, the payload is
// fetched again.
constexpr Duration kToTheWire = 3 * kMicrosecond;

// Timer codes of an RNR NAK (IBTA), in units of 10 us.
constexpr std::array<std::int64_t, 32> kRnrTable{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                                 48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                                 2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
constexpr Duration rnr_wait(std::uint8_t code) { return 10 * kRnrTable[code] * kMicrosecond; }
constexpr Duration ack_wait(std::uint8_t code) { return Duration{4'096'000} * (std::int64_t{1} << code); }

int set_rnr_timer(Endpoint& end, std::uint8_t code) {
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = code;
  return ibv_modify_qp(end.qp, &attributes, IBV_QP_MIN_RNR_TIMER);
}

class RnrTimer : public RcWire {
 protected:
  std::vector<WirePacket> naks() const {
    auto packets = taken();
    std::erase_if(packets, [](const auto& packet) { return !packet.is_nak(roce::Aeth::kRnrNak); });
    return packets;
  }
};

// One retry per message: each success resets the counter. An RNR NAK does not count as a timeout; no timeout is
// allowed.
TEST_F(RnrTimer, WaitsAsTheTableSaysForEveryCode) {
  EndpointOptions requester, responder;
  requester.rnr_retry = 1;
  requester.retry_count = 0;
  requester.timeout = 4;  // 66 us: less than most of the waits, during which the ACK timer stands still
  responder.min_rnr_timer = 30;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint8_t code = 0; code < 32; ++code) {
          meet(0);
          ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
          pass(0, rnr_wait(code));
          ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS) << int(code);
        }
      },
      [&](Endpoint& end) {
        for (std::uint8_t code = 0; code < 32; ++code) {
          ASSERT_EQ(set_rnr_timer(end, code), 0);
          meet(1);
          pass(1, 5 * kMicrosecond);
          ASSERT_EQ(end.receive(0, 64), 0);
          pass(1, rnr_wait(code));
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
      },
      requester, responder, kLong);
  const auto refused = naks();
  const auto sends = requests();
  ASSERT_EQ(refused.size(), 32u);
  ASSERT_EQ(sends.size(), 64u);
  for (std::uint8_t code = 0; code < 32; ++code) {
    SCOPED_TRACE(int(code));
    EXPECT_EQ(refused[code].headers.aeth->syndrome, roce::Aeth::kRnrNak | code);
    EXPECT_EQ(refused[code].psn(), sends[2 * code].psn());
    EXPECT_EQ(sends[2 * code + 1].psn(), sends[2 * code].psn());
    const auto waited = sends[2 * code + 1].at - refused[code].at;
    EXPECT_GE(waited, rnr_wait(code));
    EXPECT_LE(waited, rnr_wait(code) + kToTheWire);
  }
}

class RnrRetries : public RnrTimer, public ::testing::WithParamInterface<std::uint8_t> {};

TEST_P(RnrRetries, AreCountedExactly) {
  EndpointOptions requester;
  requester.rnr_retry = GetParam();
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RNR_RETRY_EXC_ERR);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        EXPECT_FALSE(completion_soon(end.cq, 10));
      },
      requester);
  EXPECT_EQ(requests().size(), GetParam() + 1u);
  EXPECT_EQ(naks().size(), GetParam() + 1u);
}
INSTANTIATE_TEST_SUITE_P(UpTo, RnrRetries, ::testing::Values(0, 1, 3, 6));

TEST_F(RnrTimer, SevenRetriesAreForEver) {
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        pass(0, 5000 * kMicrosecond);
        meet(0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [&](Endpoint& end) {
        meet(1);
        ASSERT_EQ(end.receive(0, 64), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      });
  EXPECT_GT(requests().size(), 300u);
}

// Packets behind a message without receive are dropped silently, and are retransmitted behind it.
TEST_F(RnrTimer, WhatFollowsComesAgainInOrder) {
  run_connected(
      [&](Endpoint& end) {
        end.buffer[0] = 1;
        end.buffer[1000] = 2;
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 3000)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 1000, 8, 9000)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 2000, 8, 9000)), 0);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(end.buffer[2000], 2);
        meet(0);
      },
      [&](Endpoint& end) {
        pass(1, 5 * kMicrosecond);
        EXPECT_EQ(end.buffer[9000], 0);
        ASSERT_EQ(end.receive(0, 3000), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(end.buffer[0], 1);
        meet(1);
      });
  EXPECT_EQ(naks().size(), 1u);
  const auto numbers = psns(requests());
  ASSERT_EQ(numbers.size(), 10u);
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.begin() + 5, numbers.begin() + 5));
}

class AckTimer : public RcWire {
 protected:
  AckTimer() : AckTimer(std::vector<std::string>{"drop,host=h1"}) {}  // all answers are lost
  explicit AckTimer(const std::vector<std::string>& faults) : RcWire(faults) {}

  // Distances, in ps, between the transmissions of one message.
  static std::vector<std::int64_t> distances(const std::vector<WirePacket>& tries) {
    std::vector<std::int64_t> between;
    for (std::size_t i = 1; i < tries.size(); ++i) between.push_back((tries[i].at - tries[i - 1].at).ps);
    return between;
  }
};

struct Try {
  std::uint8_t timeout;
  std::uint8_t retries;
  ibv_wr_opcode operation;
  std::uint32_t bytes;
};
class AckTimeouts : public AckTimer, public ::testing::WithParamInterface<Try> {};

TEST_P(AckTimeouts, LieTheTimeoutApartAndAreCountedExactly) {
  const auto& [timeout, retries, operation, bytes] = GetParam();
  EndpointOptions requester;
  requester.timeout = timeout;
  requester.retry_count = retries;
  Duration failed{};
  run_connected(
      [&](Endpoint& end) {
        auto wr = end.request(operation, 0, bytes, 1024);
        if (operation == IBV_WR_ATOMIC_FETCH_AND_ADD) wr = end.fetch_add(0, 1, 1024);
        ASSERT_EQ(end.post(wr), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
        failed = now();
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&](Endpoint& end) {
        if (operation == IBV_WR_SEND) {
          ASSERT_EQ(end.receive(0, 1024), 0);
        }
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
      },
      requester, {}, kLong);
  const auto tries = requests();
  ASSERT_EQ(tries.size(), retries + 1u);
  const auto least = ack_wait(timeout).ps;
  EXPECT_THAT(distances(tries), Each(AllOf(Ge(least), Le(least + kToTheWire.ps))));
  EXPECT_GE(failed - tries.back().at, ack_wait(timeout) - kToTheWire);
  EXPECT_LE(failed - tries.back().at, ack_wait(timeout) + kToTheWire);
}
INSTANTIATE_TEST_SUITE_P(Of, AckTimeouts,
                         ::testing::Values(Try{1, 7, IBV_WR_RDMA_WRITE, 64}, Try{2, 0, IBV_WR_RDMA_WRITE, 64},
                                           Try{3, 1, IBV_WR_SEND, 1000}, Try{4, 3, IBV_WR_RDMA_READ, 3000},
                                           Try{5, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8}, Try{8, 6, IBV_WR_SEND, 64},
                                           Try{14, 2, IBV_WR_RDMA_WRITE, 0}, Try{15, 2, IBV_WR_RDMA_READ, 8}));

// An answer shortly before the timeout is in time; shortly after it the request has been retransmitted.
TEST_F(AckTimer, BothSidesOfTheGate) {
  EndpointOptions requester;
  requester.timeout = 6;  // 262 us
  std::array<std::size_t, 3> tries{};
  run_connected(
      [&](Endpoint& end) {
        Duration apart{};
        for (std::size_t round = 0; round < 3; ++round) {
          const auto before = requests().size();
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
          settle(0);
          await_requests(0, before + (round == 0 ? 2 : 1));
          const auto mine = requests();
          if (round == 0) apart = mine[1].at - mine[0].at;
          // processing the answer needs contexts, too
          if (round == 1) pass_until(0, mine.back().at + apart - 6 * kMicrosecond);
          if (round == 2) pass_until(0, mine.back().at + apart + kMicrosecond);
          forge(0, answer_headers(roce::Opcode::acknowledge, end.qp->qp_num, mine.back().psn()));
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          pass(0, 1000 * kMicrosecond);
          tries[round] = requests().size() - before;
        }
      },
      [](Endpoint&) {}, requester);
  EXPECT_THAT(tries, ::testing::ElementsAre(2u, 1u, 2u));
}

// Other packets fill the port when the request is first sent, and not when it is retransmitted.
class BusyPort : public AckTimer {
 protected:
  BusyPort() : AckTimer(std::vector<std::string>{"drop,host=h1,nth=1-3,opcode=ATOMIC_ACKNOWLEDGE"}) {}
};
TEST_F(BusyPort, TheTimeBeginsWhenTheRequestLeaves) {
  EndpointOptions options;
  options.timeout = 3;
  std::array<std::array<EndpointAddress, 2>, 2> addresses;
  const auto body = [&](std::size_t me) {
    Endpoint quiet(options), loud;
    addresses[me] = {quiet.address(), loud.address()};
    meet(me);
    quiet.connect(addresses[1 - me][0]);
    loud.connect(addresses[1 - me][1]);
    meet(me);
    if (me == 0) {
      ASSERT_EQ(loud.post(loud.request(IBV_WR_RDMA_WRITE, 0, 65'536)), 0);
      pass(0, 5 * kMicrosecond);
      ASSERT_EQ(quiet.post(quiet.fetch_add(0, 1)), 0);
      EXPECT_EQ(quiet.completion().status, IBV_WC_SUCCESS);
      EXPECT_EQ(loud.completion().status, IBV_WC_SUCCESS);
    }
    meet(me);
  };
  run([&] { body(0); }, [&] { body(1); });
  auto tries = requests();
  std::erase_if(tries, [](const auto& packet) { return packet.opcode() != roce::Opcode::fetch_add; });
  ASSERT_EQ(tries.size(), 4u);
  EXPECT_THAT(distances(tries), Each(AllOf(Ge(ack_wait(3).ps), Le((ack_wait(3) + kToTheWire).ps))));
}

class LostOnce : public AckTimer {
 protected:
  LostOnce() : AckTimer({"drop,opcode=WRITE_ONLY,nth=1"}) {}
};

TEST_F(LostOnce, TimeoutZeroIsNever) {
  EndpointOptions requester;
  requester.timeout = 0;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        pass(0, 60'000'000 * kMicrosecond);
        EXPECT_EQ(requests().size(), 1u);
        EXPECT_FALSE(completion_soon(end.cq, 10));
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_WR_FLUSH_ERR);
      },
      [](Endpoint&) {}, requester, {}, kLong);
}

// Retry parameters changed while the send queue drains: new values apply to requests in flight, too.
class NewRetries : public AckTimer {
 protected:
  explicit NewRetries(const std::vector<std::string>& faults = {"drop,opcode=WRITE_ONLY"}) : AckTimer(faults) {}

  // h0's WRITE has been lost, and h0's send queue drains.
  void run_draining(const EndpointOptions& requester, Body then) {
    run_connected(
        [&](Endpoint& end) {
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
          pass(0, 20 * kMicrosecond);
          ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
          then(end);
        },
        [](Endpoint&) {}, requester, {}, kLong);
  }
  static int set(Endpoint& end, int mask, std::uint8_t value) {
    ibv_qp_attr attributes{};
    attributes.timeout = attributes.retry_cnt = value;
    return ibv_modify_qp(end.qp, &attributes, mask);
  }
};

TEST_F(NewRetries, AreAllThatAreLeft) {
  EndpointOptions requester;
  requester.timeout = 5;
  run_draining(requester, [&](Endpoint& end) {
    ASSERT_EQ(set(end, IBV_QP_RETRY_CNT, 2), 0);
    EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
  });
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(NewRetries, WithoutATimeoutAreNone) {
  EndpointOptions requester;
  requester.timeout = 5;
  run_draining(requester, [&](Endpoint& end) {
    ASSERT_EQ(set(end, IBV_QP_TIMEOUT, 0), 0);
    pass(0, 60'000'000 * kMicrosecond);
    EXPECT_EQ(requests().size(), 1u);
    EXPECT_EQ(end.state(), IBV_QPS_SQD);
  });
}

class Retimed : public LostOnce, public ::testing::WithParamInterface<std::uint8_t> {};
TEST_P(Retimed, WhileAnAnswerIsWaitedFor) {
  EndpointOptions requester;
  requester.timeout = GetParam();
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        pass(0, 20 * kMicrosecond);
        ASSERT_EQ(move(end.qp, IBV_QPS_SQD), 0);
        ibv_qp_attr attributes{};
        attributes.timeout = 5;
        const auto set = now();
        ASSERT_EQ(ibv_modify_qp(end.qp, &attributes, IBV_QP_TIMEOUT), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_LE(now() - set, 2 * ack_wait(5));
      },
      [](Endpoint&) {}, requester, {}, kLong);
  EXPECT_EQ(requests().size(), 2u);
}
INSTANTIATE_TEST_SUITE_P(From, Retimed, ::testing::Values(0, 31));

// The peer is in RESET, INIT or ERR: it does not answer, and packets do not change it.
class SilentPeer : public AckTimer, public ::testing::WithParamInterface<ibv_qp_state> {
 protected:
  SilentPeer() : AckTimer(std::vector<std::string>{}) {}
};

TEST_P(SilentPeer, EndsInRetriesExceeded) {
  EndpointOptions requester;
  requester.timeout = 3;
  requester.retry_count = 4;
  Exchange<EndpointAddress> addresses;
  run(
      [&] {
        Endpoint end(requester);
        end.connect(addresses.swap(0, end.address()));
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
        EXPECT_EQ(end.state(), IBV_QPS_ERR);
        meet(0);
      },
      [&] {
        Endpoint end;
        never_wait(end.context->async_fd);
        addresses.swap(1, end.address());
        if (GetParam() == IBV_QPS_INIT) {
          end.to_init();
          ASSERT_EQ(end.receive(0, 64), 0);
        }
        if (GetParam() == IBV_QPS_ERR) {
          ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        }
        meet(1);
        meet(1);
        EXPECT_EQ(end.state(), GetParam());
        EXPECT_FALSE(completion_soon(end.cq, 10));
        EXPECT_THAT(take_async_events(end.context), ::testing::IsEmpty());
      });
  EXPECT_EQ(requests().size(), 5u);
  EXPECT_TRUE(answers().empty());
}
INSTANTIATE_TEST_SUITE_P(InState, SilentPeer, ::testing::Values(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_ERR));

// The first transmission of each message is lost, and one retry is allowed: progress must reset the counter.
class LostEachOnce : public AckTimer {
 protected:
  LostEachOnce() : AckTimer({"drop,opcode=WRITE_ONLY,nth=1+3+5+7"}) {}
};
TEST_F(LostEachOnce, ProgressGivesTheRetriesBack) {
  EndpointOptions requester;
  requester.timeout = 3;
  requester.retry_count = 1;
  run_connected(
      [&](Endpoint& end) {
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
          ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
      },
      [](Endpoint&) {}, requester);
  EXPECT_EQ(requests().size(), 8u);
}

// The same within one message: each NAK acknowledges the packets before the gap.
class LostWithin : public AckTimer {
 protected:
  LostWithin() : AckTimer({"drop,host=h0,psn=3,count=1", "drop,host=h0,psn=6,count=1", "drop,host=h0,psn=9,count=1"}) {}
};
TEST_F(LostWithin, ProgressWithinAMessageCountsToo) {
  EndpointOptions requester;
  requester.psn = 0;
  requester.retry_count = 1;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 12 * 1024)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, requester);
}

// Without progress the retries are exhausted, by the timer or by NAKs.
class LostTwice : public AckTimer, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  LostTwice() : AckTimer({"drop,host=h0,psn=0,count=2"}) {}
};
TEST_P(LostTwice, WithoutProgressTheyRunOut) {
  EndpointOptions requester;
  requester.psn = 0;
  requester.timeout = 8;
  requester.retry_count = 1;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, GetParam())), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_RETRY_EXC_ERR);
      },
      [](Endpoint&) {}, requester);
}
INSTANTIATE_TEST_SUITE_P(OfBytes, LostTwice, ::testing::Values(1024, 6 * 1024));

}  // namespace
}  // namespace rnicsim::testing::rc_timers_test
