// SPDX-License-Identifier: Apache-2.0
// Flows of raw packets: their queues, checksums and segments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "model/nic/nic.h"
#include "model/nic/queues/completion.h"
#include "sim/adapter.h"
#include "sim/bench/results/results.h"
#include "tests/unit/bench/bench_run.h"

namespace rnicsim::sim::bench::run_test {
namespace {

class BenchRaw : public BenchRun {};

constexpr const char* kFrames = "from = \"h0\"\nto = \"h1\"\ntransport = \"raw\"\nop = \"send\"\n";

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

// At a pace that all receivers can keep, nothing is lost, and each queue gets its share.
TEST_F(BenchRaw, RawPacketsAreSpreadOverTheQueues) {
  run(kFrames + std::string("size = \"200 B\"\nrx_queues = 3\nqps = 2\nwindow = 4\nflows = 512\npace = 4000000\n"),
      "warmup = \"20 us\"\nduration = \"500 us\"");
  EXPECT_NEAR(double(flow().operations), 2000, 20);
  ASSERT_EQ(flow().received.size(), 3u);
  EXPECT_NEAR(double(sum_of(flow().received)), double(flow().operations), 10);
  for (const auto frames : flow().received) EXPECT_NEAR(double(frames), 2000.0 / 3, 150);
  EXPECT_NEAR(double(flow().bytes), 200 * double(flow().operations), 2000);
  EXPECT_EQ(grown(1, "nic.raw.no_flow"), 0u);
  EXPECT_EQ(grown(1, "nic.engine.out_of_buffer"), 0u);
}

// Frames of one flow take one queue; so do frames of many flows that differ only in fields outside the hash.
TEST_F(BenchRaw, RawPacketsOfOneFlowGoOneWay) {
  for (const char* keys : {"flows = 1\n", "rss_fields = [\"dst_ipv4\", \"dst_port_udp\"]\n"}) {
    run(kFrames + std::string("size = \"60 B\"\nrx_queues = 4\nwindow = 4\n") + keys, "operations = 200");
    EXPECT_EQ(std::ranges::count_if(flow().received, [](auto frames) { return frames != 0; }), 1) << keys;
    EXPECT_GE(sum_of(flow().received), 190u);
    restart();
  }
  run(kFrames + std::string("size = \"60 B\"\nrx_queues = 4\nwindow = 4\nrss_fields = [\"src_port_udp\"]\n"),
      "operations = 400");
  EXPECT_EQ(std::ranges::count(flow().received, 0u), 0);
}

// Frames that a core cannot keep up with are lost. The run still ends, and the counts agree with the NIC's.
TEST_F(BenchRaw, RawPacketsThatFindNoReceiveAreLost) {
  run("from = \"h1..h2\"\nto = \"h0\"\ntransport = \"raw\"\nop = \"send\"\nsize = \"60 B\"\nthreads = 2\nqps = 4\n"
      "window = 64\nbatch = 16\nsignal_every = 16\nrecv_depth = 32\n",
      "warmup = \"100 us\"\nduration = \"200 us\"", "topology = \"star\"\nset = { host.cpu.post_recv = \"500 ns\" }");
  EXPECT_GT(flow().operations, 2 * sum_of(flow().received));
  const auto frames = frames_result({prepared_->workload, prepared_->plan, *runner_, *system_, nullptr}, 0);
  EXPECT_GT(frames.no_receive, 10u);
  EXPECT_EQ(frames.no_receive, grown(0, "nic.engine.out_of_buffer"));
  EXPECT_EQ(frames.received, sum_of(flow().received));
  EXPECT_NEAR(double(frames.received), double(grown(0, "nic.completion.cqes")), 40);
}

// Checksums by the CPU, by the device, and of each segment.
TEST_F(BenchRaw, ChecksumsOfRawPackets) {
  for (const char* keys :
       {"", "checksums = true\n", "checksums = true\ninline = true\n", "checksums = true\ntso_mss = 30\n"}) {
    prepare_run(kFrames + std::string("size = \"100 B\"\nwindow = 4\n") + keys);
    int right = 0, wrong = 0;
    system_->adapter(1).nic().blocks().completion.written.subscribe(
        [&](const nic::CqeWritten& written) { ++(written.cqe.checksums_right ? right : wrong); });
    EXPECT_EQ(runner_->execute(), "");
    EXPECT_GE(right, 90) << keys;
    EXPECT_EQ(wrong, 0) << keys;
    restart();
  }
}

// A message of 4042 bytes is four frames with 1000 data bytes each.
TEST_F(BenchRaw, SegmentedRawPackets) {
  run(kFrames + std::string("size = \"4042 B\"\nwindow = 2\nchecksums = true\ntso_mss = 1000\nrx_queues = 2\n"
                            "page = \"2 MiB\"\n"),
      "operations = 100");
  EXPECT_NEAR(double(grown(0, "nic.port.tx_frames")), 400, 8);
  EXPECT_NEAR(double(grown(0, "nic.port.tx_bytes")), 400 * 1042, 8 * 1042);
  EXPECT_NEAR(double(sum_of(flow().received)), 400, 12);
}

// Two raw flows to one host, each with its own port, beside a flow of datagrams.
TEST_F(BenchRaw, RawPacketsBesideOthers) {
  const std::string frames = kFrames + std::string("size = \"60 B\"\nwindow = 2\nuars = \"per_thread\"\n");
  run(frames + "rx_queues = 2\n[[flow]]\n" + frames + "threads = 2\n[[flow]]\n" + kOneByOne +
          "op = \"send\"\nsize = \"64 B\"\ntransport = \"ud\"\n",
      "duration = \"200 us\"");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(flow(i).operations, 50u);
    EXPECT_NEAR(double(sum_of(flow(i).received)), double(flow(i).operations), 6) << i;
  }
  EXPECT_GT(flow(2).operations, 50u);
  EXPECT_TRUE(flow(2).received.empty());
  EXPECT_EQ(grown(1, "nic.raw.no_flow"), 0u);
}

}  // namespace
}  // namespace rnicsim::sim::bench::run_test
