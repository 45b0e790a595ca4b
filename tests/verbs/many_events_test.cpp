// Events that nobody reads: a list without bound, though what a descriptor holds is bounded.
#include <gmock/gmock.h>

#include <utility>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::SizeIs;

constexpr int kEvents = 9000;  // a pipe of Linux holds 8192 records at most

class ManyEvents : public RcPair {};

TEST_F(ManyEvents, OfQueuePairs) {
  run_alone([&](Endpoint& end) {
    never_wait(end.context->async_fd);
    end.connect(end.address());
    const auto drain = [](ibv_qp* qp) {
      ibv_qp_attr wanted{};
      wanted.qp_state = IBV_QPS_SQD;
      wanted.en_sqd_async_notify = 1;
      ASSERT_EQ(ibv_modify_qp(qp, &wanted, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
      ASSERT_EQ(move(qp, IBV_QPS_RTS), 0);
    };
    ibv_qp* other = std::exchange(end.qp, end.create_qp());
    end.connect(end.address());
    std::swap(other, end.qp);
    for (int i = 0; i < kEvents; ++i) drain(i % 3 != 2 ? end.qp : other);
    EXPECT_EQ(ibv_destroy_qp(other), 0);  // nobody hears of it any more
    for (int i = 0; i < 5; ++i) drain(end.qp);
    pass(0, kSettled);
    const std::size_t left = kEvents - kEvents / 3 + 5;
    EXPECT_THAT(take_async_events(end.context), AllOf(SizeIs(left), Each(IBV_EVENT_SQ_DRAINED)));
    drain(end.qp);
    pass(0, kSettled);
    EXPECT_THAT(take_async_events(end.context), SizeIs(1));
  });
}

TEST_F(ManyEvents, OfCompletions) {
  EndpointOptions options;
  options.channel = true;
  run_alone(
      [&](Endpoint& end) {
        never_wait(end.channel->fd);
        end.to_init();
        ASSERT_EQ(move(end.qp, IBV_QPS_ERR), 0);
        for (int i = 0; i < kEvents; ++i) {
          ASSERT_EQ(ibv_req_notify_cq(end.cq, 0), 0);
          ASSERT_EQ(end.receive(0, 64, std::uint64_t(i)), 0);
          expect_completions(end.cq, IBV_WC_WR_FLUSH_ERR, std::uint64_t(i), 1);
        }
        pass(0, kSettled);
        EXPECT_EQ(take_cq_events(end.channel), kEvents);
      },
      options);
}

}  // namespace
}  // namespace rnicsim::testing
