// SPDX-License-Identifier: Apache-2.0
// Each stage of the waterfall takes the time of docs/timing.md, to the picosecond; in every case the stages of a work
// request add up to its latency.
#include "sim/waterfall/waterfall.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/timing/steps.h"

namespace rnicsim::testing::waterfall_test {
namespace {

using namespace rnicsim::literals;
using sim::Journey;
using sim::Stage;
using Expected = std::map<Stage, Duration>;

constexpr std::uint32_t kBytes = 6, kPadded = 8;

class Stages : public Steps {
 protected:
  explicit Stages(const std::vector<std::string>& faults = {}) : Steps({}, faults) {
    waterfall.finished.subscribe(
        [this](const Journey& journey) { (journey.one_way ? one_way : journeys).push_back(journey); });
  }

  // Stages that all single requests have: from the CPU to the device, through both pipelines and back.
  Expected common(std::uint64_t request, std::uint64_t answer) const {
    const auto& cpu = config().host.cpu;
    return {{Stage::post, cpu.post_wqe + cpu.ring_doorbell},
            {Stage::doorbell, config().host.mmio_write_latency},
            {Stage::tx, nic().tx.latency},
            {Stage::wire, wire(request)},
            {Stage::rx, nic().rx.latency},
            {Stage::answer_tx, nic().tx.latency},
            {Stage::answer_wire, wire(answer)},
            {Stage::answer_rx, nic().rx.latency},
            {Stage::poll, cpu.detect + cpu.poll_cqe}};
  }
  static void expect_stages(const Journey& journey, const Expected& expected) {
    Duration sum;
    for (std::size_t i = 0; i < sim::kStages; ++i) {
      const auto found = expected.find(Stage(i));
      EXPECT_EQ(journey.time_in(Stage(i)), found != expected.end() ? found->second : Duration{}) << to_string(Stage(i));
      sum += journey.time_in(Stage(i));
    }
    EXPECT_EQ(sum, journey.latency());
  }

  // The same work request three times; the first finds no translation on the device. Each latency equals the software's
  // measurement.
  void repeat(
      const std::function<ibv_send_wr(Endpoint&)>& request, const Body& on_h1 = [](Endpoint&) {},
      const EndpointOptions& h1 = {}, const EndpointOptions& h0 = {}) {
    std::vector<Duration> measured;
    run_connected(
        [&](Endpoint& end) {
          for (int i = 0; i < 3; ++i) {
            pass(0, 10_us);
            const auto start = now();
            ASSERT_EQ(end.post(request(end)), 0);
            ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
            settle(0);
            measured.push_back(now() - start);
          }
        },
        on_h1, h0, h1);
    ASSERT_EQ(journeys.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(journeys[i].latency(), measured[i]);
    EXPECT_EQ(waterfall.summary().irregular, 0u);
    EXPECT_EQ(waterfall.summary().unfinished, 0u);
  }

  sim::Waterfall waterfall{system()};
  std::vector<Journey> journeys, one_way;
};

TEST_F(Stages, Write) {
  repeat([](Endpoint& end) { return end.request(IBV_WR_RDMA_WRITE, 0, kBytes); });
  auto expected = common(16 + kPadded, 4);
  expected[Stage::dma] = read(kBytes);
  expected[Stage::placement] = write(kBytes);
  expected[Stage::cqe] = write(64);
  expect_stages(journeys[2], expected);
  ASSERT_EQ(one_way.size(), 3u);
  for (const auto stage : {Stage::answer_tx, Stage::answer_wire, Stage::answer_rx, Stage::cqe}) expected.erase(stage);
  expected[Stage::poll] = config().host.cpu.detect;
  expect_stages(one_way[2], expected);
}

TEST_F(Stages, InlineWrite) {
  repeat([](Endpoint& end) {
    auto request = end.request(IBV_WR_RDMA_WRITE, 0, kBytes);
    request.send_flags = IBV_SEND_INLINE;
    return request;
  });
  auto expected = common(16 + kPadded, 4);
  expected[Stage::placement] = write(kBytes);
  expected[Stage::cqe] = write(64);
  expect_stages(journeys[2], expected);
}

TEST_F(Stages, Send) {
  repeat([](Endpoint& end) { return end.request(IBV_WR_SEND, 0, kBytes); },
         [&](Endpoint& end) {
           for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(end.receive(64 * i, 64), 0);
           for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
         });
  auto expected = common(kPadded, 4);
  expected[Stage::dma] = read(kBytes);
  expected[Stage::placement] = write(kBytes);
  expected[Stage::cqe] = write(64);
  expect_stages(journeys[2], expected);
  ASSERT_EQ(one_way.size(), 3u);
  for (const auto stage : {Stage::answer_tx, Stage::answer_wire, Stage::answer_rx}) expected.erase(stage);
  expected[Stage::cqe] = cqe_behind_payload();
  expected[Stage::poll] = poll_behind_payload();
  expect_stages(one_way[2], expected);
}

// The send completes when the last bit has left; the way to the peer is as for any SEND.
class UnreliableStages : public Stages, public ::testing::WithParamInterface<ibv_qp_type> {};

TEST_P(UnreliableStages, Send) {
  EndpointOptions options;
  options.type = GetParam();
  const bool datagram = GetParam() == IBV_QPT_UD;
  const std::uint64_t deth = datagram ? 8 : 0, grh = datagram ? 40 : 0;
  repeat([](Endpoint& end) { return end.request(IBV_WR_SEND, 0, kBytes); },
         [&](Endpoint& end) {
           for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(end.receive(64 * i, 64), 0);
           for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
         },
         options, options);
  auto expected = common(deth + kPadded, 4);
  expected[Stage::dma] = read(kBytes);
  for (const auto stage : {Stage::answer_tx, Stage::answer_wire, Stage::answer_rx}) expected.erase(stage);
  auto local = expected;
  local.erase(Stage::rx);
  local[Stage::wire] = leaving(deth + kPadded);
  local[Stage::cqe] = write(64);
  expect_stages(journeys[2], local);
  ASSERT_EQ(one_way.size(), 3u);
  expected[Stage::placement] = write(grh + kBytes);
  expected[Stage::cqe] = cqe_behind_payload();
  expected[Stage::poll] = poll_behind_payload();
  expect_stages(one_way[2], expected);
}
INSTANTIATE_TEST_SUITE_P(Of, UnreliableStages, ::testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& info) { return info.param == IBV_QPT_UC ? "uc" : "ud"; });

TEST_F(Stages, SendInTheCqe) {
  EndpointOptions receiver;
  receiver.inline_receive = kBytes;
  repeat([](Endpoint& end) { return end.request(IBV_WR_SEND, 0, kBytes); },
         [&](Endpoint& end) {
           for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(end.receive(64 * i, 64), 0);
           for (int i = 0; i < 3; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
         },
         receiver);
  auto expected = common(kPadded, 4);
  expected[Stage::dma] = read(kBytes);
  expected[Stage::cqe] = write(64);
  expect_stages(journeys[2], expected);
  ASSERT_EQ(one_way.size(), 3u);
  for (const auto stage : {Stage::answer_tx, Stage::answer_wire, Stage::answer_rx}) expected.erase(stage);
  expected[Stage::poll] += config().host.cpu.inline_receive;
  expect_stages(one_way[2], expected);
}

TEST_F(Stages, Read) {
  repeat([](Endpoint& end) { return end.request(IBV_WR_RDMA_READ, 0, kBytes); });
  auto expected = common(16, 4 + kPadded);
  expected[Stage::placement] = read(kBytes);
  expected[Stage::scatter] = write(kBytes);
  expected[Stage::cqe] = cqe_behind_payload();
  expected[Stage::poll] = poll_behind_payload();
  expect_stages(journeys[2], expected);
  EXPECT_TRUE(one_way.empty());
}

TEST_F(Stages, FetchAndAdd) {
  repeat([](Endpoint& end) { return end.fetch_add(0, 1); });
  auto expected = common(28, 4 + 8);
  expected[Stage::placement] = read(8) + nic().atomics.service;  // the answer is sent when the write is issued
  expected[Stage::scatter] = write(8);
  expected[Stage::cqe] = cqe_behind_payload();
  expected[Stage::poll] = poll_behind_payload();
  expect_stages(journeys[2], expected);
}

TEST_F(Stages, AListIsFetched) {
  run_connected(
      [&](Endpoint& end) {
        for (int round = 0; round < 2; ++round) {
          auto second = end.request(IBV_WR_RDMA_WRITE, 0, kBytes);
          auto first = second;
          first.next = &second;
          ASSERT_EQ(end.post(first), 0);
          for (int i = 0; i < 2; ++i) ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
        }
      },
      [](Endpoint&) {});
  ASSERT_EQ(journeys.size(), 4u);
  const auto& cpu = config().host.cpu;
  EXPECT_EQ(journeys[2].time_in(Stage::post), 2 * cpu.post_wqe + cpu.ring_doorbell);
  EXPECT_EQ(journeys[3].time_in(Stage::post), cpu.post_wqe + cpu.ring_doorbell);
  for (const auto i : {2u, 3u}) EXPECT_EQ(journeys[i].time_in(Stage::fetch), read(128));
  EXPECT_EQ(journeys[2].time_in(Stage::unit), Duration{});
  EXPECT_EQ(journeys[3].time_in(Stage::unit), nic().units.write);
}

TEST_F(Stages, SeveralPackets) {
  repeat([](Endpoint& end) { return end.request(IBV_WR_RDMA_WRITE, 0, 3000); });
  const auto lines = nic().units.line * (1024 / 64 - 1);
  EXPECT_EQ(journeys[2].time_in(Stage::packets), nic().units.write + nic().units.next_packet + 2 * lines);
  EXPECT_EQ(journeys[2].time_in(Stage::wire), wire((3000 - 2048 + 3) / 4 * 4));
  EXPECT_EQ(journeys[2].time_in(Stage::retry), Duration{});
}

// Both hosts send each other a seeded sequence of all operations.
class Mixed : public Stages {
 protected:
  explicit Mixed(const std::vector<std::string>& faults = {}) : Stages(faults) {}

  static constexpr std::uint64_t kMessages = 400, kWindow = 16, kReceives = 4;

  static bool is_send(std::uint64_t number) { return number % 3 == 0; }

  void converse(Endpoint& end, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    constexpr ibv_wr_opcode kOthers[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                         IBV_WR_RDMA_WRITE};
    std::uint64_t posted = 0, retired = 0, received = 0, offered = 0;
    const auto expected = (kMessages + 2) / 3;
    while (retired < kMessages || received < expected) {
      for (; offered < expected && offered < received + kReceives; ++offered) ASSERT_EQ(end.receive(40'000, 4096), 0);
      for (; posted < kMessages && posted < retired + kWindow; ++posted) {
        const auto opcode = is_send(posted) ? IBV_WR_SEND : kOthers[random() % 4];
        const auto length = static_cast<std::uint32_t>(random() % 4 == 0 ? random() % 4000 : random() % 65);
        auto request =
            opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? end.fetch_add(0, 1) : end.request(opcode, 64, length, 64);
        request.wr_id = posted;
        const bool last = posted + 1 == kMessages || posted % 8 == 7;
        request.send_flags = last || random() % 2 == 0 ? IBV_SEND_SIGNALED : 0;
        if (opcode == IBV_WR_RDMA_WRITE && length <= 64 && random() % 2 == 0) request.send_flags |= IBV_SEND_INLINE;
        ibv_send_wr* bad = nullptr;
        ASSERT_EQ(ibv_post_send(end.qp, &request, &bad), 0);
      }
      ibv_wc completions[4];
      const int count = ibv_poll_cq(end.cq, 1 + int(random() % 4), completions);
      for (int i = 0; i < count; ++i) {
        ASSERT_EQ(completions[i].status, IBV_WC_SUCCESS);
        if (completions[i].opcode == IBV_WC_RECV)
          ++received;
        else
          retired = completions[i].wr_id + 1;
      }
    }
  }

  void check() {
    EndpointOptions options;
    options.signal_all = false;
    options.timeout = 8;  // about a millisecond
    run_connected([&](Endpoint& end) { converse(end, 1); }, [&](Endpoint& end) { converse(end, 2); }, options, options,
                  Duration{100'000'000'000'000});
    EXPECT_EQ(journeys.size(), 2 * kMessages);
    std::set<std::uint64_t> numbers;
    std::map<nic::SendOpcode, Duration> totals;
    for (const auto* all : {&journeys, &one_way}) {
      for (const auto& journey : *all) {
        Duration sum;
        for (std::size_t i = 0; i < sim::kStages; ++i) {
          EXPECT_GE(journey.time_in(Stage(i)), Duration{}) << to_string(Stage(i));
          sum += journey.time_in(Stage(i));
        }
        EXPECT_EQ(sum, journey.latency());
        if (journey.one_way) continue;
        numbers.insert(journey.number);
        totals[journey.opcode] += sum;
        const bool answered =
            journey.time_in(Stage::wire) > Duration{} && journey.time_in(Stage::answer_wire) > Duration{};
        EXPECT_TRUE(answered) << journey.number;
      }
    }
    EXPECT_EQ(numbers.size(), 2 * kMessages);
    const auto summary = waterfall.summary();
    EXPECT_EQ(summary.irregular, 0u);
    EXPECT_EQ(summary.unfinished, 0u);
    EXPECT_EQ(summary.failed, 0u);
    for (const auto& operation : summary.operations) {
      Duration sum;
      for (const auto& stage : operation.stages) sum += stage.sum;
      EXPECT_EQ(sum, operation.latency.sum);
      if (!operation.one_way) {
        EXPECT_EQ(sum, totals[operation.opcode]);
      }
    }
  }
};

TEST_F(Mixed, AddsUp) { check(); }

class Lossy : public Mixed {
 protected:
  explicit Lossy(const std::vector<std::string>& faults = {"drop=0.02"}) : Mixed(faults) {}
};
TEST_F(Lossy, AddsUp) {
  check();
  const auto retried = [](const Journey& journey) { return journey.time_in(Stage::retry) > Duration{}; };
  EXPECT_GT(std::ranges::count_if(journeys, retried), 10);
}

class Disorderly : public Lossy {
 protected:
  Disorderly() : Lossy({"drop=0.01", "duplicate=0.02", "delay=0.02,by=20us", "reorder=0.02,by=2", "corrupt=0.01"}) {}
};
TEST_F(Disorderly, AddsUp) { check(); }

}  // namespace
}  // namespace rnicsim::testing::waterfall_test
