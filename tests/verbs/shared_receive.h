// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of shared receive queues.
#pragma once

#include <cerrno>
#include <cstdint>
#include <vector>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {

inline constexpr std::uint32_t kSlot = 64;  // bytes of the buffer for each receive

class SharedReceive : public RcPair {
 protected:
  using RcPair::RcPair;
  void SetUp() override {
    if (!shares_receives()) GTEST_SKIP() << "nic.capabilities.srq";
  }

  static EndpointOptions shared(std::uint32_t receives = 15) { return {.shared_wr = receives}; }

  static void post_receives(Endpoint& end, std::uint64_t first, std::uint64_t count) {
    for (auto id = first; id < first + count; ++id)
      ASSERT_EQ(end.receive(std::uint32_t(id % 256) * kSlot, kSlot, id), 0) << id;
  }
  static void send_messages(Endpoint& end, std::uint64_t count, std::uint32_t length = 8) {
    for (std::uint64_t i = 0; i < count && !HasFatalFailure(); ++i) send(end, length);
  }
  static ibv_srq_attr query(ibv_srq* srq) {
    ibv_srq_attr attributes{};
    EXPECT_EQ(ibv_query_srq(srq, &attributes), 0);
    return attributes;
  }
  static int modify(ibv_srq* srq, std::uint32_t max_wr, std::uint32_t limit, int mask) {
    ibv_srq_attr attributes{.max_wr = max_wr, .max_sge = 0, .srq_limit = limit};
    return ibv_modify_srq(srq, &attributes, mask);
  }
  static int arm(ibv_srq* srq, std::uint32_t limit) { return modify(srq, 0, limit, IBV_SRQ_LIMIT); }
  // Number of receives that can still be posted.
  static int room(Endpoint& end) {
    int count = 0;
    while (end.receive(0, kSlot, 9000 + std::uint64_t(count)) == 0) ++count;
    EXPECT_EQ(errno, ENOMEM);
    return count;
  }
  std::vector<ibv_event_type> events_soon(Endpoint& end, std::size_t me) {
    pass(me, Duration{50'000'000});
    return take_async_events(end.context);
  }
};

}  // namespace rnicsim::testing
