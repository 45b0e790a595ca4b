// SPDX-License-Identifier: Apache-2.0
// Several threads in one process: each has its own CPU, and they share objects as verbs allow.
#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "model/host/root_complex.h"
#include "model/host/software_process.h"
#include "model/nic/capability_params.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"
#include "verbs/ibverbs/queue_lock.h"

namespace rnicsim::testing {
namespace {

constexpr std::size_t kThreads = 4;

class Threads : public RcPair {
 protected:
  // Polls once; completions must be successful and unique.
  static void poll(Endpoint& end, std::set<std::uint64_t>& completed) {
    std::array<ibv_wc, 3> wc;
    const int count = ibv_poll_cq(end.cq, int(wc.size()), wc.data());
    ASSERT_GE(count, 0);
    for (int n = 0; n < count; ++n) {
      EXPECT_EQ(wc[std::size_t(n)].status, IBV_WC_SUCCESS);
      EXPECT_TRUE(completed.insert(wc[std::size_t(n)].wr_id).second);
    }
  }
};

TEST_F(Threads, EachHasItsOwnCpu) {
  run_alone([&](Endpoint&) {
    auto& port = process(0).port();
    port.settle();
    const Duration start = now();
    const Duration read = system().config().host.cpu.clock_read;
    run_threads(kThreads, [&](std::size_t i) {
      EXPECT_EQ(process_port(), &port);
      for (std::size_t n = 0; n < 10 * (i + 1); ++n) port.charge(abi::CpuCost::clock_read, 1);
      port.settle();
      EXPECT_EQ(now(), start + read * std::int64_t(10 * (i + 1)));
    });
    EXPECT_EQ(now(), start + read * std::int64_t(10 * kThreads));
  });
}

TEST_F(Threads, TheProcessEndsWithItsLastThread) {
  Duration ended;
  run_alone([&](Endpoint&) {
    process(0).spawn("outer", [&] {
      process(0).spawn("inner", [&] {
        sleep_until(now() + Duration{50'000'000});
        EXPECT_FALSE(process(0).finished());
        Endpoint late;  // the process still exists, although the thread that started this one has ended
        settle(0);
        ended = now();
      });
    });
  });
  EXPECT_GE(ended, (Duration{50'000'000}));
  EXPECT_TRUE(process(0).finished());
}

TEST_F(Threads, AWriteOfTheDeviceWakesAll) {
  std::array<Duration, kThreads> woken{};
  Duration shown;
  run_connected(
      [&](Endpoint& end) {
        host(0).root_complex().dma_written.subscribe([&](const host::DmaWrite&) { shown = now(); });
        settle(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 8)), 0);
        run_threads(kThreads, [&](std::size_t i) {
          auto& port = process(0).port();
          const auto detect = system().config().host.cpu.detect;
          while (now() - shown > detect) port.wait_visible();
          port.settle();
          woken[i] = now();
        });
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, {}, {});
  for (const Duration at : woken) EXPECT_EQ(at, woken[0]);
}

// Writes arrive as a thread stops waiting for them, and at all other times.
TEST_F(Threads, AThreadsClockNeverGoesBack) {
  bool ended = false;
  run_connected(
      [&](Endpoint&) {
        auto& port = process(0).port();
        std::minstd_rand random(1);
        for (int i = 0; i < 20'000; ++i) {
          port.charge(abi::CpuCost::poll_cq, 1 + random() % 60);
          const auto before = port.thread_time();
          port.wait_visible();
          ASSERT_GE(port.thread_time(), before);
        }
        ended = true;
      },
      [&](Endpoint& end) {
        std::minstd_rand random(2);
        while (!ended) {
          ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 8)), 0);
          ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
          process(1).port().charge(abi::CpuCost::poll_cq, random() % 200);
        }
      });
}

TEST_F(Threads, EachDrivesAQueuePair) {
  constexpr std::uint64_t kMessages = 50;
  Exchange<std::vector<EndpointAddress>> addresses;
  const auto body = [&](std::size_t me) {
    std::vector<std::unique_ptr<Endpoint>> ends;
    std::vector<EndpointAddress> mine;
    for (std::size_t i = 0; i < kThreads; ++i) {
      ends.push_back(std::make_unique<Endpoint>());
      mine.push_back(ends.back()->address());
    }
    const auto remote = addresses.swap(me, mine);
    for (std::size_t i = 0; i < kThreads; ++i) ends[i]->connect(remote[i]);
    meet(me);
    if (me == 0) {
      std::array<Duration, kThreads> done{};
      const Duration start = now();
      run_threads(kThreads, [&](std::size_t i) {
        for (std::uint64_t n = 0; n < kMessages; ++n) {
          auto wr = ends[i]->request(IBV_WR_RDMA_WRITE, 0, 64, std::uint32_t(64 * i));
          wr.wr_id = n;
          ASSERT_EQ(ends[i]->post(wr), 0);
          const auto wc = ends[i]->completion();
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, n);
        }
        settle(0);
        done[i] = now() - start;
      });
      // The threads run at the same time, not one after the other.
      EXPECT_LT(std::ranges::max_element(done)->ps, 2 * std::ranges::min_element(done)->ps);
    }
    meet(me);
  };
  run([&] { body(0); }, [&] { body(1); });
}

// A lock passes to the next thread when the holder's charged CPU time has passed, plus the time to detect a change of
// memory.
TEST_F(Threads, ALockPassesOnInTime) {
  run_alone([&](Endpoint&) {
    auto& port = process(0).port();
    const auto& cpu = system().config().host.cpu;
    port.settle();
    verbs::QueueLock lock;
    std::vector<Duration> held;  // times at which a thread got the lock
    const Duration hold = cpu.clock_read * 7;
    const Duration start = now();
    run_threads(kThreads, [&](std::size_t) {
      for (int round = 0; round < 2; ++round) {
        const verbs::QueueGuard guard(lock, port);
        port.settle();
        held.push_back(now() - start);
        for (int n = 0; n < 7; ++n) port.charge(abi::CpuCost::clock_read, 1);
      }
    });
    ASSERT_EQ(held.size(), 2 * kThreads);
    for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i], (hold + cpu.detect) * std::int64_t(i)) << i;
  });
}

TEST_F(Threads, AllDriveOneQueuePair) {
  constexpr std::uint64_t kMessages = 50;
  run_connected(
      [&](Endpoint& end) {
        std::set<std::uint64_t> completed;
        std::array<std::uint64_t, kThreads> posted{};
        run_threads(kThreads, [&](std::size_t i) {
          while (completed.size() < kThreads * kMessages) {
            if (posted[i] < kMessages) {
              ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, end.mr->lkey};
              auto wr = end.request(IBV_WR_RDMA_WRITE, 0, 64);
              wr.sg_list = &sge;
              wr.wr_id = i * kMessages + posted[i];
              const int error = end.post(wr);
              ASSERT_TRUE(error == 0 || error == ENOMEM) << error;
              if (error == 0) ++posted[i];
            }
            ASSERT_NO_FATAL_FAILURE(poll(end, completed));
          }
        });
        EXPECT_EQ(completed.size(), kThreads * kMessages);
        EXPECT_EQ(*completed.rbegin(), kThreads * kMessages - 1);
      },
      [](Endpoint&) {});
}

struct Kind {
  const char* name;
  ibv_qp_type type;
  std::uint32_t shared_wr;
};

// Threads of one end send on one queue pair; threads of the other end post receives and poll.
class ThreadsOf : public Threads, public ::testing::WithParamInterface<Kind> {
 protected:
  static constexpr std::uint64_t kMessages = 50;  // messages per thread
  static constexpr std::uint32_t kSlot = 128;

  // Polls until all threads together have seen all messages, each once.
  void drain(Endpoint& end, std::set<std::uint64_t>& completed) {
    while (completed.size() < kThreads * kMessages) ASSERT_NO_FATAL_FAILURE(poll(end, completed));
  }
  void send_all(Endpoint& end, std::size_t thread) {
    for (std::uint64_t n = 0; n < kMessages;) {
      ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), 64, end.mr->lkey};
      auto wr = end.request(IBV_WR_SEND, 0, 64);
      wr.sg_list = &sge;
      wr.wr_id = thread * kMessages + n;
      const int error = end.post(wr);
      ASSERT_TRUE(error == 0 || error == ENOMEM) << error;
      if (error == 0) ++n;
    }
  }
  static void post_all(Endpoint& end, std::size_t thread) {
    for (auto id = thread * kMessages; id < (thread + 1) * kMessages; ++id) {
      ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data() + id * kSlot), kSlot, end.mr->lkey};
      ibv_recv_wr wr{.wr_id = id, .next = nullptr, .sg_list = &sge, .num_sge = 1};
      ibv_recv_wr* bad = nullptr;
      const bool is_shared = end.srq != nullptr;
      ASSERT_EQ(is_shared ? ibv_post_srq_recv(end.srq, &wr, &bad) : ibv_post_recv(end.qp, &wr, &bad), 0);
    }
  }
};

TEST_P(ThreadsOf, BothEndsShareAQueuePair) {
  const auto& [name, type, shared_wr] = GetParam();
  if (type == IBV_QPT_UC && !capabilities().uc) GTEST_SKIP() << "nic.capabilities.uc";
  if (type == IBV_QPT_UD && !capabilities().ud) GTEST_SKIP() << "nic.capabilities.ud";
  if (shared_wr != 0 && !shares_receives()) GTEST_SKIP() << "nic.capabilities.srq";
  EndpointOptions options{.type = type, .cq_entries = 512, .max_wr = kThreads * kMessages};
  auto receiver = options;
  receiver.shared_wr = shared_wr;
  std::set<std::uint64_t> sent, received;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        run_threads(kThreads + 1, [&](std::size_t i) { i == kThreads ? drain(end, sent) : send_all(end, i); });
      },
      [&](Endpoint& end) {
        run_threads(
            kThreads, [&](std::size_t i) { post_all(end, i); }, 1);
        meet(1);
        run_threads(
            kThreads, [&](std::size_t) { drain(end, received); }, 1);
      },
      options, receiver);
  EXPECT_EQ(sent.size(), kThreads * kMessages);
  EXPECT_EQ(received, sent);
}

INSTANTIATE_TEST_SUITE_P(All, ThreadsOf,
                         ::testing::Values(Kind{"rc", IBV_QPT_RC, 0}, Kind{"uc", IBV_QPT_UC, 0},
                                           Kind{"ud", IBV_QPT_UD, 0}, Kind{"srq", IBV_QPT_RC, 255}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rnicsim::testing
