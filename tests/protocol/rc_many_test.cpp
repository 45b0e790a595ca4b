// SPDX-License-Identifier: Apache-2.0
// Several connections side by side, and the same run twice.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <set>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_many_test {
namespace {

constexpr Duration kMicrosecond{1'000'000};

// One connection SENDs and loses a fifth of its packets; the other two WRITE and READ.
class Beside : public RcWire {
 protected:
  explicit Beside(const std::vector<std::string>& faults = {"drop=0.2,opcode=SEND"}) : RcWire(faults) {}
};

TEST_F(Beside, WhoIsLuckyHearsNothingOfTheOthersLosses) {
  constexpr std::array kOperations{IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
  constexpr std::uint32_t kMessages = 30, kBytes = 3000;
  EndpointOptions options;
  options.timeout = 5;
  options.max_wr = kMessages;
  std::array<std::array<EndpointAddress, kOperations.size()>, 2> addresses;
  std::set<std::uint32_t> lucky;  // QPNs of h1 without losses
  const auto body = [&](std::size_t me) {
    std::vector<std::unique_ptr<Endpoint>> ends;
    for (std::size_t i = 0; i < kOperations.size(); ++i) {
      ends.push_back(std::make_unique<Endpoint>(options));
      addresses[me][i] = ends[i]->address();
      if (me == 1 && kOperations[i] != IBV_WR_SEND) lucky.insert(ends[i]->qp->qp_num);
    }
    meet(me);
    for (std::size_t i = 0; i < kOperations.size(); ++i) ends[i]->connect(addresses[1 - me][i]);
    for (std::uint32_t id = 0; me == 1 && id < kMessages; ++id) ASSERT_EQ(ends[0]->receive(0, kBytes, id), 0);
    meet(me);
    if (me == 0) {
      for (std::uint32_t id = 0; id < kMessages; ++id)
        for (std::size_t i = 0; i < kOperations.size(); ++i) {
          auto wr = ends[i]->request(kOperations[i], 0, kBytes, 8192);
          wr.wr_id = id;
          ASSERT_EQ(ends[i]->post(wr), 0);
        }
      for (auto& end : ends)
        for (std::uint32_t id = 0; id < kMessages; ++id) {
          const auto wc = end->completion();
          ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc.wr_id, id);
        }
    } else {
      for (std::uint32_t id = 0; id < kMessages; ++id) {
        const auto wc = ends[0]->completion();
        ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc.wr_id, id);
      }
    }
    meet(me);
  };
  run([&] { body(0); }, [&] { body(1); });
  std::map<std::uint32_t, std::vector<std::uint32_t>> numbers;
  std::size_t again = 0;
  for (const auto& packet : requests()) numbers[packet.headers.bth.destination.value].push_back(packet.psn());
  for (const auto& [qpn, sequence] : numbers) {
    const std::set once(sequence.begin(), sequence.end());
    const bool is_lucky = lucky.contains(qpn);
    if (is_lucky) {
      EXPECT_EQ(sequence.size(), once.size());
      EXPECT_TRUE(std::ranges::is_sorted(sequence));
    } else {
      EXPECT_EQ(once.size(), kMessages * 3);
      again = sequence.size() - once.size();
    }
  }
  EXPECT_EQ(numbers.size(), 3u);
  EXPECT_GT(again, 0u);
}

// An error of one QP does not affect the other.
class Neighbour : public Beside {
 protected:
  Neighbour() : Beside(std::vector<std::string>{}) {}
};
TEST_F(Neighbour, GoesOnWhenOneFails) {
  std::array<std::array<EndpointAddress, 2>, 2> addresses;
  const auto body = [&](std::size_t me) {
    Endpoint failing, good;
    addresses[me] = {failing.address(), good.address()};
    meet(me);
    failing.connect(addresses[1 - me][0]);
    good.connect(addresses[1 - me][1]);
    meet(me);
    if (me == 0) {
      for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(good.post(good.request(IBV_WR_RDMA_WRITE, 0, 5000)), 0);
        auto wr = failing.request(IBV_WR_RDMA_WRITE, 0, 64);
        if (i == 3) wr.wr.rdma.rkey ^= 0xff;
        ASSERT_EQ(failing.post(wr), 0);
      }
      for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(good.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(failing.completion().status, i < 3    ? IBV_WC_SUCCESS
                                               : i == 3 ? IBV_WC_REM_ACCESS_ERR
                                                        : IBV_WC_WR_FLUSH_ERR);
      }
    }
    meet(me);
    EXPECT_EQ(failing.state(), IBV_QPS_ERR);
    EXPECT_EQ(good.state(), IBV_QPS_RTS);
  };
  run([&] { body(0); }, [&] { body(1); });
}

// --- The same run twice, each in its own process: a process has one SystemC kernel.
class StormyRun : public RcWire {
 public:
  explicit StormyRun(std::uint64_t seed)
      : RcWire({"drop=0.03", "corrupt=0.02", "duplicate=0.02,by=5us", "delay=0.03,by=3us", "reorder=0.03,by=3"}, seed) {
  }

  // Returns every frame with its time.
  std::string record() {
    EndpointOptions options;
    options.timeout = 5;
    run_connected(
        [&](Endpoint& end) {
          meet(0);
          for (std::uint32_t i = 0; i < 24; ++i) {
            constexpr std::array kKinds{IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
            ASSERT_EQ(end.post(i % 4 == 3 ? end.fetch_add(0, 1) : end.request(kKinds[i % 4], 0, 2500, 8192)), 0);
          }
          for (int i = 0; i < 24; ++i) ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);
        },
        [&](Endpoint& end) {
          for (int i = 0; i < 6; ++i) ASSERT_EQ(end.receive(0, 2500), 0);
          meet(1);
          for (int i = 0; i < 6; ++i) ASSERT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(1);
        },
        options, options);
    std::string bytes;
    for (const auto& frame : wire()) {
      bytes += std::to_string(frame.at.ps) + " h" + std::to_string(frame.from) + ' ';
      bytes.append(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
    }
    return bytes;
  }

 private:
  void TestBody() override {}
};

// Both runs are started before either is read, so that both begin with the same heap: packets contain buffer addresses.
class RunApart {
 public:
  explicit RunApart(std::uint64_t seed) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    std::fflush(nullptr);
    child_ = ::fork();
    if (child_ == 0) write_and_exit(seed, ends[1]);
    ::close(ends[1]);
    read_end_ = ends[0];
  }
  std::string wire() {
    std::string bytes;
    char buffer[4096];
    for (ssize_t got; (got = ::read(read_end_, buffer, sizeof buffer)) > 0;) bytes.append(buffer, std::size_t(got));
    ::close(read_end_);
    int status = 0;
    ::waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
    return bytes;
  }

 private:
  [[noreturn]] static void write_and_exit(std::uint64_t seed, int end) {
    const auto bytes = StormyRun(seed).record();
    for (std::size_t at = 0; at < bytes.size();) {
      const auto written = ::write(end, bytes.data() + at, bytes.size() - at);
      if (written <= 0) ::_exit(2);
      at += static_cast<std::size_t>(written);
    }
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }

  pid_t child_;
  int read_end_;
};

TEST(Determinism, OneSeedOneWire) {
  RunApart seven(7), seven_again(7), eight(8);
  const auto first = seven.wire();
  EXPECT_GT(first.size(), 10'000u);
  EXPECT_TRUE(seven_again.wire() == first);
  EXPECT_FALSE(eight.wire() == first);
}

}  // namespace
}  // namespace rnicsim::testing::rc_many_test
