// SPDX-License-Identifier: Apache-2.0
// A queue pair that is reset while its packets are in flight, and used again: no old packet or timer affects the new
// use.
#include <gmock/gmock.h>

#include <array>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_reuse_test {
namespace {

using ::testing::IsEmpty;

constexpr Duration kMicrosecond{1'000'000};
constexpr std::uint32_t kLong = 1 << 20;  // 84 us on the wire

class Reuse : public RcWire {
 protected:
  explicit Reuse(const std::vector<std::string>& faults = {}) : RcWire(faults) {
    options_.buffer_bytes = 2 * kLong;
    options_.timeout = 8;
    options_.psn = 100;
  }

  // RESET to RTS with other PSNs.
  void begin_anew(std::size_t me, Endpoint& end, std::uint32_t psn) {
    end.options.psn = psn;
    addresses_[me] = end.address();
    meet(me);
    end.connect(addresses_[1 - me]);
    meet(me);
  }
  // A message of each kind in both directions at once, and then no further completion.
  void expect_works(std::size_t me, Endpoint& end) {
    std::fill_n(end.buffer.begin(), 8192, 0);
    end.buffer[0] = std::uint8_t(me + 1);
    ASSERT_EQ(end.receive(100, 8, 77), 0);
    meet(me);
    ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
    ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8, 200)), 0);
    ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 300, 8, 0)), 0);
    ASSERT_EQ(end.post(end.fetch_add(400, 1, 600)), 0);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
    meet(me);
    const auto other = std::uint8_t(2 - me);
    EXPECT_EQ(end.buffer[100], other);
    EXPECT_EQ(end.buffer[200], other);
    EXPECT_EQ(end.buffer[300], other);
    EXPECT_EQ(end.buffer[600], 1);
    pass(me, 5000 * kMicrosecond);
    EXPECT_FALSE(completion_soon(end.cq, 10));
    EXPECT_EQ(end.state(), IBV_QPS_RTS);
    EXPECT_THAT(take_async_events(end.context), IsEmpty());
  }
  // Memory and CQ do not change from now on.
  void expect_silence(std::size_t me, Endpoint& end) {
    const auto before = end.buffer;
    pass(me, 3000 * kMicrosecond);
    EXPECT_EQ(end.buffer, before);
    EXPECT_FALSE(completion_soon(end.cq, 10));
  }

  EndpointOptions options_;

 private:
  std::array<EndpointAddress, 2> addresses_;
};

TEST_F(Reuse, TheResponderIsResetAmidAWrite) {
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        std::ranges::fill(end.buffer, 0x11);
        meet(0);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, kLong, kLong)), 0);
        meet(0);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        expect_silence(0, end);
        begin_anew(0, end, 0x900000);
        expect_works(0, end);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        for (int i = 0; i < 3; ++i) ASSERT_EQ(end.receive(0, 8), 0);
        meet(1);
        while (end.buffer[kLong + kLong / 2] == 0) pass(1, kMicrosecond);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        EXPECT_EQ(end.buffer[2 * kLong - 1], 0) << "too late for this test";
        const auto before = end.buffer;
        meet(1);
        expect_silence(1, end);
        EXPECT_EQ(end.buffer, before);
        begin_anew(1, end, 0xf00000);
        expect_works(1, end);
      },
      options_, options_);
}

TEST_F(Reuse, TheRequesterIsResetAmidAReadAndAWrite) {
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, kLong, kLong)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, kLong, kLong)), 0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        while (end.buffer[kLong + kLong / 2] == 0) pass(0, kMicrosecond);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        EXPECT_EQ(end.buffer[2 * kLong - 1], 0) << "too late for this test";
        expect_silence(0, end);
        meet(0);
        begin_anew(0, end, 1);
        expect_works(0, end);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        std::ranges::fill(end.buffer, 0x11);
        ASSERT_EQ(end.receive(0, 8), 0);
        meet(1);
        meet(1);
        EXPECT_EQ(end.state(), IBV_QPS_RTS);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        EXPECT_FALSE(completion_soon(end.cq, 10));
        begin_anew(1, end, 2);
        expect_works(1, end);
      },
      options_, options_);
}

// Timers from before the reset: of an unanswered request, and of an RNR NAK.
TEST_F(Reuse, NoTimerOfBeforeRunsOut) {
  options_.min_rnr_timer = 14;  // 1.28 ms
  run_connected(
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
        pass(0, 100 * kMicrosecond);
        meet(0);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        const auto frames = requests().size();
        expect_silence(0, end);
        EXPECT_EQ(requests().size(), frames);
        begin_anew(0, end, 0x400000);
        expect_works(0, end);
      },
      [&](Endpoint& end) {
        never_wait(end.context->async_fd);
        meet(1);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        begin_anew(1, end, 0x500000);
        expect_works(1, end);
      },
      options_, options_);
}

// A packet that the cable held back arrives when both ends have been reset and connected again.
struct Ghost {
  const char* fault;
  ibv_wr_opcode operation;
  std::uint32_t psn_of_h0;  // new PSNs, on either side of the old PSN 100
  std::uint32_t psn_of_h1;
};
void PrintTo(const Ghost& ghost, std::ostream* out) { *out << ghost.fault << " at " << ghost.psn_of_h0; }

class Ghosts : public Reuse, public ::testing::WithParamInterface<Ghost> {
 protected:
  Ghosts() : Reuse({GetParam().fault}) {}
};

TEST_P(Ghosts, DoNothing) {
  const auto& [fault, operation, psn_of_h0, psn_of_h1] = GetParam();
  bool come = false;
  const auto body = [&, operation = operation](std::size_t me, Endpoint& end) {
    never_wait(end.context->async_fd);
    std::ranges::fill(end.buffer, std::uint8_t(me + 1));
    if (me == 1) {
      ASSERT_EQ(end.receive(4096, 4096), 0);
    }
    meet(me);
    if (me == 0) {
      ASSERT_EQ(end.post(operation == IBV_WR_ATOMIC_FETCH_AND_ADD ? end.fetch_add(kLong, 1, kLong)
                                                                  : end.request(operation, kLong, 3000, kLong)),
                0);
      pass(0, 50 * kMicrosecond);
    }
    meet(me);
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(end.cq, 1, &wc), 0);
    begin_anew(me, end, me == 0 ? psn_of_h0 : psn_of_h1);
    ASSERT_EQ(end.receive(8192, 4096), 0);
    const auto count = taken().size();
    expect_silence(me, end);
    come |= taken().size() > count;
    ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
    meet(me);
    begin_anew(me, end, me == 0 ? psn_of_h0 : psn_of_h1);
    expect_works(me, end);
  };
  run_connected([&](Endpoint& end) { body(0, end); }, [&](Endpoint& end) { body(1, end); }, options_, options_);
  EXPECT_TRUE(come) << "nothing came late: this tests nothing";
}
INSTANTIATE_TEST_SUITE_P(
    Of, Ghosts,
    ::testing::Values(Ghost{"delay,opcode=SEND_LAST,nth=1,by=1ms", IBV_WR_SEND, 0x800000, 7},
                      Ghost{"delay,opcode=SEND_FIRST,nth=1,by=1ms", IBV_WR_SEND, 50, 7},
                      Ghost{"delay,opcode=SEND_FIRST,nth=1,by=1ms", IBV_WR_SEND, 5000, 7},
                      Ghost{"delay,opcode=WRITE_MIDDLE,nth=1,by=1ms", IBV_WR_RDMA_WRITE, 50, 7},
                      Ghost{"delay,opcode=WRITE_FIRST,nth=1,by=1ms", IBV_WR_RDMA_WRITE, 5000, 7},
                      Ghost{"delay,opcode=READ_REQUEST,nth=1,by=1ms", IBV_WR_RDMA_READ, 5000, 7},
                      Ghost{"delay,opcode=READ_RESPONSE_MIDDLE,nth=1,by=1ms", IBV_WR_RDMA_READ, 50, 7},
                      Ghost{"delay,opcode=READ_RESPONSE_FIRST,nth=1,by=1ms", IBV_WR_RDMA_READ, 5000, 7},
                      Ghost{"delay,opcode=ACKNOWLEDGE,nth=1,by=1ms", IBV_WR_RDMA_WRITE, 50, 7},
                      Ghost{"delay,opcode=ACKNOWLEDGE,nth=1,by=1ms", IBV_WR_SEND, 5000, 7},
                      Ghost{"delay,opcode=FETCH_ADD,nth=1,by=1ms", IBV_WR_ATOMIC_FETCH_AND_ADD, 50, 7},
                      Ghost{"delay,opcode=ATOMIC_ACKNOWLEDGE,nth=1,by=1ms", IBV_WR_ATOMIC_FETCH_AND_ADD, 50, 7}));

// The QP is destroyed: the late packet finds another QP with the same QPN, or none.
class GhostOfTheDestroyed : public Reuse {
 protected:
  GhostOfTheDestroyed() : Reuse({"delay,opcode=WRITE_ONLY,nth=1,by=1ms"}) {}
};
TEST_F(GhostOfTheDestroyed, DoesNothing) {
  run_connected(
      [&](Endpoint& end) {
        std::ranges::fill(end.buffer, 1);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 64)), 0);
        pass(0, 20 * kMicrosecond);
        ASSERT_EQ(move(end.qp, IBV_QPS_RESET), 0);
        meet(0);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        meet(1);
        ASSERT_EQ(ibv_destroy_qp(end.qp), 0);
        end.qp = nullptr;
        Endpoint another;
        another.to_init();
        expect_silence(1, end);
        meet(1);
      },
      options_, options_);
  EXPECT_EQ(taken().size(), 1u);
  EXPECT_TRUE(answers().empty());
}

}  // namespace
}  // namespace rnicsim::testing::rc_reuse_test
