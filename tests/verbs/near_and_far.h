// SPDX-License-Identifier: Apache-2.0
// Fixture for tests of keys: host `near` works on the memory of host `far`. One thread controls both endpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "tests/verbs/rc_pair.h"

namespace rnicsim::testing {

class NearAndFar : public RcPair {
 protected:
  using RcPair::RcPair;

  // Short timeout and one retry: errors are reported soon.
  void run_both(const std::function<void()>& action, EndpointOptions options = {}) {
    options.timeout = 8;
    options.retry_count = 1;
    const auto body = [&](std::size_t me) {
      return [this, me, &action](Endpoint& end) {
        (me == 0 ? near_ : far_) = &end;
        meet(me);
        if (me == 0) action();
        meet(me);
      };
    };
    run_connected(body(0), body(1), options, options, {100'000'000'000'000});
  }
  Endpoint& near() { return *near_; }
  Endpoint& far() { return *far_; }

  // After an error: reconnects both ends.
  void reconnect() {
    const std::pair<Endpoint*, EndpointAddress> ends[] = {{near_, far().address()}, {far_, near().address()}};
    for (const auto& [end, remote] : ends) ASSERT_EQ(move(end->qp, IBV_QPS_RESET), 0);
    for (const auto& [end, remote] : ends) {
      ibv_wc wc;
      while (ibv_poll_cq(end->cq, 1, &wc) > 0) {}
      end->connect(remote);
    }
  }

  static ibv_wc_status status_of(ibv_cq* cq) {
    const auto wc = completion_soon(cq, 10'000);
    EXPECT_TRUE(wc);
    return wc ? wc->status : IBV_WC_GENERAL_ERR;
  }
  // `near` executes the operation.
  ibv_wc_status access(ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address, std::uint32_t length = 8) {
    auto wr = near().request(opcode, 0, length);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
      wr.wr.atomic = {address, 1, 0, rkey};
    else
      wr.wr.rdma = {address, rkey};
    EXPECT_EQ(near().post(wr), 0);
    return status_of(near().cq);
  }

 private:
  Endpoint* near_ = nullptr;
  Endpoint* far_ = nullptr;
};

}  // namespace rnicsim::testing
