// SPDX-License-Identifier: Apache-2.0
// UC and UD, and messages to the own device: the sums of docs/timing.md, to the picosecond.
#include "tests/timing/steps.h"

namespace rnicsim::testing {
namespace {

using namespace rnicsim::literals;

constexpr std::uint32_t kGrh = 40, kDeth = 8;

class Sums : public Steps {
 protected:
  using Steps::Steps;

  static EndpointOptions of(ibv_qp_type type) {
    EndpointOptions options;
    options.type = type;
    return options;
  }
  // Times of the same request, one at a time; the first finds no translation on the device. `completed`: until the send
  // completes here; `received`: until the receive completes at the peer.
  struct Times {
    std::vector<Duration> completed, received;
  };
  Times measure(ibv_qp_type type, std::uint32_t bytes, unsigned flags = 0) {
    Times times;
    std::vector<Duration> started;
    run_connected(
        [&](Endpoint& end) {
          meet(0);
          for (int i = 0; i < 3; ++i) {
            pass(0, 20_us);
            auto request = end.request(IBV_WR_SEND, 0, bytes);
            request.send_flags = flags;
            started.push_back(now());
            ASSERT_EQ(end.post(request), 0);
            ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
            settle(0);
            times.completed.push_back(now() - started.back());
          }
        },
        [&](Endpoint& end) {
          for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(end.receive(8192, 8192), 0);
          meet(1);
          for (int i = 0; i < 3; ++i) {
            ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
            settle(1);
            times.received.push_back(now());
          }
        },
        of(type), of(type));
    for (std::size_t i = 0; i < times.received.size(); ++i) times.received[i] = times.received[i] - started[i];
    return times;
  }
  Duration posted() const {
    const auto& cpu = config().host.cpu;
    return cpu.post_wqe + cpu.ring_doorbell + config().host.mmio_write_latency;
  }
  Duration polled() const { return config().host.cpu.detect + config().host.cpu.poll_cqe; }
  Duration hop(std::uint64_t rest) const { return nic().tx.latency + wire(rest) + nic().rx.latency; }
  static std::uint64_t pad(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }
};

// The send completes when the last bit has left the port, not earlier: no round trip, whatever happens to the packet.
TEST_F(Sums, ACompletionOfUcIsTheLastBitsLeaving) {
  const auto times = measure(IBV_QPT_UC, 6);
  EXPECT_EQ(times.completed[2], posted() + read(6) + nic().tx.latency + leaving(pad(6)) + write(64) + polled());
  EXPECT_EQ(times.received[2], posted() + read(6) + hop(pad(6)) + write(6) + polled());
}
// The port is busy from the first packet on, apart from the time by which the unit is slower than the port.
TEST_F(Sums, OfSeveralPacketsIsTheLastOnesLeaving) {
  const auto times = measure(IBV_QPT_UC, 3000);
  const auto& units = nic().units;
  const auto first = std::max(units.send + units.line * (1024 / 64 - 1), leaving(1024));
  EXPECT_EQ(times.completed[2], posted() + read(1024) + nic().tx.latency + first + leaving(1024) +
                                    leaving(3000 - 2048) + write(64) + polled());
}

// Eight more bytes on the wire, and forty more bytes into memory.
TEST_F(Sums, OfDatagrams) {
  const auto times = measure(IBV_QPT_UD, 6);
  EXPECT_EQ(times.completed[2], posted() + read(6) + nic().tx.latency + leaving(kDeth + pad(6)) + write(64) + polled());
  EXPECT_EQ(times.received[2], posted() + read(6) + hop(kDeth + pad(6)) + write(kGrh + 6) + polled());
}
TEST_F(Sums, OfDatagramsOfTheMtu) {
  const auto times = measure(IBV_QPT_UD, 4096);
  EXPECT_EQ(times.received[2], posted() + read(4096) + hop(kDeth + 4096) + write(kGrh + 4096) + polled());
}
TEST_F(Sums, OfInlineDatagrams) {
  const auto times = measure(IBV_QPT_UD, 6, IBV_SEND_INLINE);
  EXPECT_EQ(times.completed[2], posted() + nic().tx.latency + leaving(kDeth + pad(6)) + write(64) + polled());
  EXPECT_EQ(times.received[2], posted() + hop(kDeth + pad(6)) + write(kGrh + 6) + polled());
}
// RC waits for the acknowledgement.
TEST_F(Sums, OfRcForComparison) {
  const auto times = measure(IBV_QPT_RC, 6);
  EXPECT_EQ(times.completed[2], posted() + read(6) + hop(pad(6)) + write(6) + hop(4) + write(64) + polled());
  EXPECT_EQ(times.received[2], posted() + read(6) + hop(pad(6)) + write(6) + polled());
}

// To the own device: the loopback's rate and latency replace port and cable, and only the frame's bytes count.
class ToItself : public Sums, public ::testing::WithParamInterface<const char*> {
 protected:
  ToItself() : Sums({GetParam()}) {}
};

TEST_P(ToItself, TakesTheLoopback) {
  constexpr std::uint32_t kBytes = 1000, kBeside = 58, kReth = 16, kAeth = 4;
  std::vector<Duration> times;
  run_alone([&](Endpoint& end) {
    end.connect(end.address());
    for (int i = 0; i < 3; ++i) {
      pass(0, 20_us);
      const auto start = now();
      ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, kBytes, 8192)), 0);
      ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
      settle(0);
      times.push_back(now() - start);
    }
  });
  const auto& way = nic().loopback;
  const auto hop = [&](std::uint64_t bytes) {
    return nic().tx.latency + time(bytes, way.rate.bits_per_second) + way.latency + nic().rx.latency;
  };
  EXPECT_EQ(times[2], posted() + read(kBytes) + hop(kBeside + kReth + kBytes) + write(kBytes) + hop(kBeside + kAeth) +
                          write(64) + polled());
}
INSTANTIATE_TEST_SUITE_P(With, ToItself,
                         ::testing::Values("nic.loopback.latency=50ns", "nic.loopback.latency=1us",
                                           "nic.loopback.rate=10Gb/s", "nic.port.rate=10Gb/s", "link.latency=1us"),
                         [](const auto& info) { return "v" + std::to_string(info.index); });

}  // namespace
}  // namespace rnicsim::testing
