// SPDX-License-Identifier: Apache-2.0
// Time that shared receive queues and windows add to a message, to the picosecond, and cases in which they add nothing.
#include "tests/timing/steps.h"

namespace rnicsim::testing::shared_test {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kBytes = 6;

class Added : public Steps {
 protected:
  using Steps::Steps;

  static EndpointOptions own() { return {}; }
  static EndpointOptions shared() { return {.shared_wr = 31}; }

  // Time of the third message, one after another, when everything is cached.
  using Request = std::function<ibv_send_wr(Endpoint&)>;
  Duration settled(const Request& request, const Body& on_h1, const std::function<void()>& between, std::size_t count,
                   const EndpointOptions& h1) {
    std::vector<Duration> times;
    run_connected(
        [&](Endpoint& end) {
          for (std::size_t i = 0; i < count; ++i) {
            between();
            pass(0, 20_us);
            const auto start = now();
            ASSERT_EQ(end.post(request(end)), 0);
            ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
            settle(0);
            times.push_back(now() - start);
          }
          meet(0);
        },
        on_h1, {}, h1);
    return times.at(2);
  }
  static ibv_send_wr send(Endpoint& end) { return end.request(IBV_WR_SEND, 0, kBytes); }

  // All receives are posted at the start.
  Duration send_to_ready(const EndpointOptions& receiver) {
    return settled(
        send,
        [&](Endpoint& end) {
          for (int i = 0; i < 16; ++i) ASSERT_EQ(end.receive(64, 64), 0);
          meet(1);
          meet(1);
        },
        [&, first = true]() mutable {
          if (std::exchange(first, false)) meet(0);
        },
        3, receiver);
  }
  // Each receive is posted long after the previous one was used, when the device has already looked for more.
  Duration send_to_dry(const EndpointOptions& receiver) {
    constexpr std::size_t kMessages = 3;
    return settled(
        send,
        [&](Endpoint& end) {
          for (std::size_t i = 0; i < kMessages; ++i) {
            pass(1, 10_us);
            ASSERT_EQ(end.receive(64, 64), 0);
            meet(1);
            EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          }
          meet(1);
        },
        [&] { meet(0); }, kMessages, receiver);
  }
  // Time of a WRITE with the region's key or with a window's key.
  Duration write_by(bool window) {
    EndpointOptions binds;
    binds.mr_access |= IBV_ACCESS_MW_BIND;
    std::uint32_t key = 0;
    return settled(
        [&](Endpoint& end) {
          auto request = end.request(IBV_WR_RDMA_WRITE, 0, kBytes);
          request.wr.rdma.rkey = key;
          return request;
        },
        [&](Endpoint& end) {
          ibv_mw* mw = ibv_alloc_mw(end.pd, IBV_MW_TYPE_1);
          ibv_mw_bind bind{1, IBV_SEND_SIGNALED, {end.mr, end.address().buffer, 64, IBV_ACCESS_REMOTE_WRITE}};
          ASSERT_EQ(ibv_bind_mw(end.qp, mw, &bind), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          key = window ? mw->rkey : end.mr->rkey;
          meet(1);
          meet(1);
          EXPECT_EQ(ibv_dealloc_mw(mw), 0);
        },
        [&, first = true]() mutable {
          if (std::exchange(first, false)) meet(0);
        },
        3, binds);
  }

  Duration answered() const {
    const auto& cpu = config().host.cpu;
    const auto hop = [&](std::uint64_t rest) { return nic().tx.latency + wire(rest) + nic().rx.latency; };
    return cpu.post_wqe + cpu.ring_doorbell + config().host.mmio_write_latency + read(kBytes) + hop(8) + write(kBytes) +
           hop(4) + write(64) + cpu.detect + cpu.poll_cqe;
  }
  Duration written() const { return answered() + wire(16 + 8) - wire(8); }
};

// --- Receives.
TEST_F(Added, NothingByAQueuePairsOwnReceive) { EXPECT_EQ(send_to_ready(own()), answered()); }
TEST_F(Added, NothingByASharedOneThatWasReadAhead) { EXPECT_EQ(send_to_ready(shared()), answered()); }

// Reads of the doorbell record and of the entry.
TEST_F(Added, TwoReadsByAQueuePairsOwnReceiveThatWasNot) {
  EXPECT_EQ(send_to_dry(own()), answered() + read(8) + read(64));
}
// The entry has four segments and its link. The request of the next read of the record precedes the payload on the way
// to the host.
TEST_F(Added, TwoReadsByASharedOneThatWasNot) {
  const auto request = time(link().request_header.bytes, pcie());
  EXPECT_EQ(send_to_dry(shared()), answered() + read(8) + read(128) + request);
}

class SrqInSecondLevel : public Added {
 protected:
  SrqInSecondLevel() : Added({"nic.contexts.srqc.l0_entries=0"}) {}
};
TEST_F(SrqInSecondLevel, ALookupThere) {
  EXPECT_EQ(send_to_ready(shared()), answered() + nic().contexts.srqc.l1_latency);
}
class SrqInMemory : public Added {
 protected:
  SrqInMemory() : Added({"nic.contexts.srqc.l0_entries=0", "nic.contexts.srqc.l1_entries=0"}) {}
};
TEST_F(SrqInMemory, ARead) { EXPECT_EQ(send_to_ready(shared()), answered() + read(64)); }
TEST_F(SrqInMemory, NoneForAQueuePairsOwnReceive) { EXPECT_EQ(send_to_ready(own()), answered()); }

// --- Keys. In the first level of the cache all lookups are free.
TEST_F(Added, NothingByARegionsKey) { EXPECT_EQ(write_by(false), written()); }
TEST_F(Added, NothingByAWindows) { EXPECT_EQ(write_by(true), written()); }

// Lookups: the local region's context; the remote region's context when the access is checked and when it completes;
// the window's context, beside its region's in the second level, whose bank serves one lookup at a time.
class MptInSecondLevel : public Added {
 protected:
  MptInSecondLevel() : Added({"nic.contexts.mpt.l0_entries=0"}) {}
};
TEST_F(MptInSecondLevel, ARegionIsThreeLookups) {
  EXPECT_EQ(write_by(false), written() + 3 * nic().contexts.mpt.l1_latency);
}
TEST_F(MptInSecondLevel, AWindowIsOneMore) {
  const auto& mpt = nic().contexts.mpt;
  EXPECT_EQ(write_by(true), written() + 4 * mpt.l1_latency + mpt.bank_cycle);
}
class MptInMemory : public Added {
 protected:
  MptInMemory() : Added({"nic.contexts.mpt.l0_entries=0", "nic.contexts.mpt.l1_entries=0"}) {}
};
TEST_F(MptInMemory, ARegionIsARead) { EXPECT_EQ(write_by(false), written() + 2 * read(64)); }
TEST_F(MptInMemory, AWindowIsOneMore) { EXPECT_EQ(write_by(true), written() + 3 * read(64)); }

}  // namespace
}  // namespace rnicsim::testing::shared_test
