// SPDX-License-Identifier: Apache-2.0
// CPU cost of posting, and the time until the device gets the doorbell: the numbers of docs/timing.md, to the
// picosecond.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "model/abi/device.h"
#include "model/host/software_process.h"
#include "model/nic/nic.h"
#include "model/nic/queues/doorbell.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/system.h"
#include "tests/verbs/rc_pair.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::testing {
namespace {

using namespace rnicsim::literals;

// Odd and different values, so that each sum is unique.
constexpr Duration kWqe = 17_ns, kRing = 41_ns, kStore = 31_ns, kFree = 13_ns, kContended = 103_ns, kWaiting = 7_ns,
                   kTravel = 171_ns, kLine = 5'003_ps;
const std::vector<std::string> kCosts{"host.cpu.post_wqe=17ns",
                                      "host.cpu.ring_doorbell=41ns",
                                      "host.cpu.mmio_write=31ns",
                                      "host.cpu.doorbell_lock=13ns",
                                      "host.cpu.doorbell_lock_contended=103ns",
                                      "host.cpu.doorbell_lock_waiting=7ns",
                                      "host.mmio_write_latency=171ns",
                                      "host.mmio_line_interval=5.003ns"};

class HostCost : public RcPair {
 protected:
  struct Rung {
    Duration at;
    std::uint32_t qpn;
    std::uint32_t page;
  };

  explicit HostCost(const std::vector<std::string>& sets = kCosts) : RcPair(sets) {
    host(0).nic().blocks().doorbell.rung.subscribe([this](const nic::DoorbellRung& bell) {
      rung_.push_back({now(), bell.qpn.value, bell.page});
    });
  }

  static EndpointOptions options(std::uint32_t max_wr = 32) {
    EndpointOptions options;
    options.max_wr = max_wr;
    options.max_sge = 1;
    options.max_inline = 220;
    return options;
  }

  static ibv_qp* create_queue_pair(Endpoint& end) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = end.cq;
    attributes.cap = {64, 0, 1, 0, 220};
    attributes.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(end.pd, &attributes);
    EXPECT_NE(qp, nullptr);
    return qp;
  }
  // Queue pairs of one context that accept posts and send nothing. The first is the endpoint's own.
  std::vector<ibv_qp*> queue_pairs(Endpoint& end, std::size_t count) {
    std::vector<ibv_qp*> qps{end.qp};
    while (qps.size() < count) qps.push_back(create_queue_pair(end));
    for (ibv_qp* qp : qps) {
      end.qp = qp;
      end.connect(end.address());
      EXPECT_EQ(move(qp, IBV_QPS_SQD), 0);
    }
    end.qp = qps[0];
    return qps;
  }
  static void destroy_but_first(const std::vector<ibv_qp*>& qps) {
    for (std::size_t i = 1; i < qps.size(); ++i) EXPECT_EQ(ibv_destroy_qp(qps[i]), 0);
  }

  static int post(Endpoint& end, ibv_qp* qp, std::size_t list = 1, std::uint32_t inline_bytes = 0) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(end.buffer.data()), std::max(inline_bytes, 8u), end.mr->lkey};
    std::vector<ibv_send_wr> requests(list);
    for (std::size_t i = 0; i < list; ++i) {
      requests[i].sg_list = &sge;
      requests[i].num_sge = 1;
      requests[i].opcode = IBV_WR_RDMA_WRITE;
      requests[i].send_flags = inline_bytes != 0 ? IBV_SEND_INLINE : 0;
      requests[i].next = i + 1 < list ? &requests[i + 1] : nullptr;
    }
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, requests.data(), &bad);
  }

  // Time of the thread, with its charged CPU time.
  Duration clock() {
    settle(0);
    return now();
  }
  Duration cost_of(const std::function<void()>& work) {
    const Duration start = clock();
    work();
    return clock() - start;
  }
  // Doorbells that arrived after `start`.
  std::vector<Rung> rung_after(Duration start) {
    sleep_until(now() + Duration{10'000'000});
    std::vector<Rung> found;
    std::ranges::copy_if(rung_, std::back_inserter(found), [&](const Rung& bell) { return bell.at > start; });
    return found;
  }

  std::vector<Rung> rung_;
};

TEST_F(HostCost, AListAgainstSingles) {
  run_alone(
      [&](Endpoint& end) {
        const auto qps = queue_pairs(end, 1);
        Duration start = clock();
        EXPECT_EQ(cost_of([&] { EXPECT_EQ(post(end, qps[0], 16), 0); }), kWqe * 16 + kRing + kStore);
        auto bells = rung_after(start);
        ASSERT_EQ(bells.size(), 1u);
        EXPECT_EQ(bells[0].at, start + kWqe * 16 + kRing + kTravel);
        start = clock();
        EXPECT_EQ(cost_of([&] {
                    for (int i = 0; i < 16; ++i) EXPECT_EQ(post(end, qps[0]), 0);
                  }),
                  (kWqe + kRing + kStore) * 16);
        bells = rung_after(start);
        ASSERT_EQ(bells.size(), 16u);
        for (int i = 0; i < 16; ++i)
          EXPECT_EQ(bells[std::size_t(i)].at, start + (kWqe + kRing) * (i + 1) + kStore * i + kTravel);
      },
      options());
}

TEST_F(HostCost, OnlySharedPagesAreLocked) {
  run_alone(
      [&](Endpoint& end) {
        const auto qps = queue_pairs(end, 5);
        for (std::size_t i = 0; i < 5; ++i)
          EXPECT_EQ(cost_of([&] { EXPECT_EQ(post(end, qps[i]), 0); }), kWqe + kRing + (i < 4 ? 0_ns : kFree) + kStore)
              << i;
        destroy_but_first(qps);
      },
      options());
}

class OnePageForAll : public HostCost {
 protected:
  OnePageForAll() { ::setenv("RNICSIM_TOTAL_UUARS", "1", 1); }
  ~OnePageForAll() override { ::unsetenv("RNICSIM_TOTAL_UUARS"); }

  // Each thread posts once on its own queue pair, and starts `stagger` after the previous one. `stores`: expected times
  // of the doorbell stores, from the first thread's start.
  void check(Endpoint& end, const std::vector<ibv_qp*>& qps, Duration stagger, const std::vector<Duration>& stores) {
    const Duration start = clock();
    std::vector<Duration> done(stores.size());
    run_threads(stores.size(), [&](std::size_t i) {
      sleep_until(now() + stagger * std::int64_t(i));
      EXPECT_EQ(post(end, qps[i]), 0);
      done[i] = clock();
    });
    const auto bells = rung_after(start);
    ASSERT_EQ(bells.size(), stores.size());
    std::ranges::sort(done);
    for (std::size_t i = 0; i < stores.size(); ++i) {
      EXPECT_EQ(bells[i].at, start + stores[i] + kTravel) << i;
      EXPECT_EQ(done[i], start + stores[i] + kStore) << i;
    }
  }
};

TEST_F(OnePageForAll, WhoFindsTheLockTakenWaitsAndPaysMore) {
  run_alone(
      [&](Endpoint& end) {
        const auto qps = queue_pairs(end, 4);
        const Duration first = kWqe + kRing + kFree;
        const Duration next = kStore + kContended;
        // Each thread also waits for the cache line on which the threads before it spin.
        check(end, qps, 0_ns, {first, first + next, first + next * 2 + kWaiting, first + next * 3 + kWaiting * 3});
        // The lock is free for a thread that comes as the holder leaves, and taken one picosecond earlier.
        const Duration held = kFree + kStore;
        check(end, qps, held, {first, first + held});
        check(end, qps, held - 1_ps, {first, first + next});
        destroy_but_first(qps);
      },
      options());
}

class PagesOfQueuePairs : public HostCost {};

TEST_F(PagesOfQueuePairs, FourOfTheirOwnTwelveShared) {
  run_alone(
      [&](Endpoint& end) {
        auto qps = queue_pairs(end, 20);
        const auto page_of = [](ibv_qp* qp) { return verbs::Qp::of(qp).page; };
        std::map<verbs::DoorbellPage*, std::size_t> first_user;
        for (std::size_t i = 0; i < 20; ++i) {
          const std::size_t expected = i < 16 ? i : i - 12;
          EXPECT_EQ(first_user.emplace(page_of(qps[i]), i).first->second, expected) << i;
          EXPECT_EQ(page_of(qps[i])->shared, i >= 4) << i;
        }
        // Doorbells arrive at these pages.
        const Duration start = clock();
        for (ibv_qp* qp : qps) EXPECT_EQ(post(end, qp), 0);
        const auto bells = rung_after(start);
        ASSERT_EQ(bells.size(), 20u);
        for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(bells[i].page, page_of(qps[i])->uar.page());
        // A released page goes to the next QP that needs a page.
        for (const std::size_t freed : {2, 9}) {
          auto* page = page_of(qps[freed]);
          EXPECT_EQ(ibv_destroy_qp(qps[freed]), 0);
          qps[freed] = create_queue_pair(end);
          EXPECT_EQ(page_of(qps[freed]), page) << freed;
        }
        destroy_but_first(qps);
      },
      options());
}

TEST_F(PagesOfQueuePairs, WithoutFurtherPagesAllShare) {
  run_alone(
      [&](Endpoint& end) {
        auto& port = process(0).port();
        std::vector<std::uint32_t> taken;
        for (std::uint32_t page = 0; port.alloc_uar(page) == 0;) taken.push_back(page);
        EXPECT_EQ(taken.size() + 2, abi::kUarPages);  // without the kernel's page and the context's first page
        auto qps = queue_pairs(end, 3);
        for (ibv_qp* qp : qps) {
          EXPECT_EQ(verbs::Qp::of(qp).page, verbs::Qp::of(qps[0]).page);
          EXPECT_EQ(cost_of([&] { EXPECT_EQ(post(end, qp), 0); }), kWqe + kRing + kFree + kStore);
        }
        for (const std::uint32_t page : taken) EXPECT_EQ(port.free_uar(page), 0);
        // Pages are available again.
        qps.push_back(create_queue_pair(end));
        EXPECT_NE(verbs::Qp::of(qps.back()).page, verbs::Qp::of(qps[0]).page);
        EXPECT_FALSE(verbs::Qp::of(qps.back()).page->shared);
        destroy_but_first(qps);
      },
      options());
}

TEST_F(PagesOfQueuePairs, FromTheEnvironment) {
  const auto limits = [](const char* total, const char* dedicated) {
    ::setenv("RNICSIM_TOTAL_UUARS", total, 1);
    ::setenv("RNICSIM_NUM_LOW_LAT_UUARS", dedicated, 1);
    const auto read = verbs::DoorbellPages::limits_from_environment();
    ::unsetenv("RNICSIM_TOTAL_UUARS");
    ::unsetenv("RNICSIM_NUM_LOW_LAT_UUARS");
    return std::pair(read.total, read.dedicated);
  };
  EXPECT_EQ(limits("32", "8"), (std::pair(32u, 8u)));
  EXPECT_EQ(limits("4", "4"), (std::pair(4u, 3u)));
  EXPECT_EQ(limits("0", "0"), (std::pair(1u, 0u)));
  EXPECT_EQ(limits("99999", "0"), (std::pair(512u, 0u)));
  EXPECT_EQ(limits("many", "-1"), (std::pair(16u, 4u)));
}

class Lines : public HostCost {
 protected:
  Lines()
      : HostCost({"host.cpu.post_wqe=0ns", "host.cpu.ring_doorbell=0ns", "host.cpu.mmio_write=0ns",
                  "host.mmio_write_latency=171ns"}) {}
};

TEST_F(Lines, NoMoreThanTheWayCarries) {
  constexpr std::int64_t kWqes = 1000, kLines = 4;
  run_alone(
      [&](Endpoint& end) {
        const auto& params = system().config().host;
        const Duration line = params.mmio_line_interval;
        EXPECT_LE(1e12 / double(line.ps), 175e6);
        const auto qps = queue_pairs(end, 1);
        const Duration start = clock();
        for (int i = 0; i < kWqes; ++i) ASSERT_EQ(post(end, qps[0], 1, 200), 0);
        // The CPU is ahead by its write buffers.
        EXPECT_EQ(clock() - start, line * (kWqes * kLines - params.mmio_write_buffers));
        const auto bells = rung_after(start);
        ASSERT_EQ(bells.size(), std::size_t(kWqes));
        for (std::int64_t i = 0; i < kWqes; ++i)
          ASSERT_EQ(bells[std::size_t(i)].at, start + kTravel + line * (kLines * i)) << i;
      },
      options(kWqes));
}

TEST_F(Lines, ThreadsShareTheWay) {
  constexpr int kEach = 50, kThreads = 4, kLines = 4;
  run_alone(
      [&](Endpoint& end) {
        const Duration line = system().config().host.mmio_line_interval;
        const auto qps = queue_pairs(end, kThreads);
        const Duration start = clock();
        run_threads(kThreads, [&](std::size_t i) {
          for (int n = 0; n < kEach; ++n) EXPECT_EQ(post(end, qps[i], 1, 200), 0);
        });
        const auto bells = rung_after(start);
        ASSERT_EQ(bells.size(), std::size_t(kEach * kThreads));
        for (std::int64_t i = 0; i < kEach * kThreads; ++i)
          ASSERT_EQ(bells[std::size_t(i)].at, start + kTravel + line * (kLines * i)) << i;
        // The threads alternate, except for the lead of the first.
        for (const ibv_qp* qp : qps) {
          const auto half = std::ranges::count_if(std::span(bells).first(bells.size() / 2),
                                                  [&](const Rung& bell) { return bell.qpn == qp->qp_num; });
          EXPECT_NEAR(double(half), kEach / 2.0, 3.0);
        }
        destroy_but_first(qps);
      },
      options(kEach));
}

class PollCost : public RcPair {
 protected:
  PollCost() : RcPair({"host.cpu.poll_cq=19ns", "host.cpu.poll_cqe=37ns", "host.cpu.inline_receive=11ns"}) {}

  // Time of a poll that finds a completion.
  Duration of_a_poll(ibv_cq* cq) {
    pass(0, 30_us);
    const Duration start = now();
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 1);
    settle(0);
    return now() - start;
  }
};

TEST_F(PollCost, TheCopyOfAnInlineReceive) {
  EndpointOptions options;
  options.inline_receive = 32;
  run_connected(
      [&](Endpoint& end) {
        for (const auto cost : {19_ns + 37_ns + 11_ns, 19_ns + 37_ns}) {
          ASSERT_EQ(end.receive(0, 64), 0);
          meet(0);
          EXPECT_EQ(of_a_poll(end.cq), cost);
        }
      },
      [&](Endpoint& end) {
        for (const std::uint32_t length : {32u, 33u}) {
          meet(1);
          ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, length)), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
      },
      options);
}

}  // namespace
}  // namespace rnicsim::testing
