// SPDX-License-Identifier: Apache-2.0
// A lost packet is retransmitted from exactly its place, a duplicate is executed once, at all boundaries of sizes and
// PSNs.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "tests/protocol/rc_wire.h"

namespace rnicsim::testing::rc_recovery_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr Duration kMicrosecond{1'000'000};
constexpr std::uint8_t kOverwritten = 0xee;

std::uint64_t word(const Endpoint& end, std::size_t offset) {
  std::uint64_t value;
  std::memcpy(&value, end.buffer.data() + offset, sizeof value);
  return value;
}
void set_word(Endpoint& end, std::size_t offset, std::uint64_t value) {
  std::memcpy(end.buffer.data() + offset, &value, sizeof value);
}

// Drops one of a row of eight request packets, for every operation.
struct Row {
  ibv_wr_opcode operation;
  std::uint32_t lost;
};
void PrintTo(const Row& row, std::ostream* out) { *out << "operation " << row.operation << " loses " << row.lost; }

class LostRequest : public RcWire, public ::testing::WithParamInterface<Row> {
 protected:
  static constexpr std::uint32_t kPackets = 8;
  static constexpr std::uint32_t kPsn = 0xfffffc;  // wraps within the row
  static std::uint32_t psn(std::uint32_t n) { return (kPsn + n) & 0xffffff; }

  LostRequest() : RcWire({"drop,host=h0,count=1,psn=" + std::to_string(psn(GetParam().lost))}) {}
};

TEST_P(LostRequest, ComesAgainFromThereAfterOneNak) {
  const auto [operation, lost] = GetParam();
  const bool streams = operation == IBV_WR_SEND || operation == IBV_WR_RDMA_WRITE;
  EndpointOptions options;
  options.psn = kPsn;
  options.timeout = 8;
  run_connected(
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < (streams ? 1 : kPackets); ++i) {
          auto wr = end.request(operation, 64 * i, streams ? kPackets * 1024 : 64, 20'000);
          if (operation == IBV_WR_ATOMIC_FETCH_AND_ADD) wr = end.fetch_add(64 * i, 1, 20'000);
          ASSERT_EQ(end.post(wr), 0);
        }
        for (std::uint32_t i = 0; i < (streams ? 1 : kPackets); ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        for (std::uint32_t i = 0; i < kPackets && operation == IBV_WR_ATOMIC_FETCH_AND_ADD; ++i)
          EXPECT_EQ(word(end, 64 * i), i);
        meet(0);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, kPackets * 1024), 0);
        meet(1);
      },
      options, options);
  const auto numbers = psns(requests());
  // Expected packets: those that left before the NAK arrived, then all from the gap on, once. No NAK reports the loss
  // of the last packet: the timer finds it, and retransmits the whole message.
  const bool untold = lost + 1 == kPackets;
  std::vector<std::uint32_t> expected;
  for (std::uint32_t i = 0; i < kPackets; ++i) expected.push_back(psn(i));
  for (std::uint32_t i = untold && streams ? 0 : lost; i < kPackets; ++i) expected.push_back(psn(i));
  EXPECT_THAT(numbers, ElementsAreArray(expected));
  auto naks = answers();
  std::erase_if(naks, [](const auto& packet) { return !packet.is_nak(roce::Aeth::kNak); });
  if (untold) {
    EXPECT_THAT(naks, ::testing::IsEmpty());
  } else {
    ASSERT_EQ(naks.size(), 1u);
    EXPECT_EQ(naks[0].headers.aeth->syndrome, roce::Aeth::kSequenceError);
    EXPECT_EQ(naks[0].psn(), psn(lost));
    EXPECT_EQ(naks[0].headers.aeth->msn, streams ? 0 : lost);
  }
}
INSTANTIATE_TEST_SUITE_P(OfEight, LostRequest,
                         ::testing::Values(Row{IBV_WR_SEND, 0}, Row{IBV_WR_SEND, 3}, Row{IBV_WR_SEND, 4},
                                           Row{IBV_WR_SEND, 7}, Row{IBV_WR_RDMA_WRITE, 0}, Row{IBV_WR_RDMA_WRITE, 5},
                                           Row{IBV_WR_RDMA_WRITE, 7}, Row{IBV_WR_RDMA_READ, 0},
                                           Row{IBV_WR_RDMA_READ, 4}, Row{IBV_WR_RDMA_READ, 7},
                                           Row{IBV_WR_ATOMIC_FETCH_AND_ADD, 0}, Row{IBV_WR_ATOMIC_FETCH_AND_ADD, 3},
                                           Row{IBV_WR_ATOMIC_FETCH_AND_ADD, 7}));

// Two gaps cause two NAKs.
class TwoGaps : public RcWire {
 protected:
  TwoGaps() : RcWire({"drop,host=h0,count=1,psn=2", "drop,host=h0,nth=13"}) {}
};
TEST_F(TwoGaps, AreTwoNaks) {
  EndpointOptions options;
  options.psn = 0;
  run_connected(
      [&](Endpoint& end) {
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 10 * 1024)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
      },
      [](Endpoint&) {}, options, options);
  // The thirteenth packet sent is the third retransmission.
  EXPECT_THAT(psns(requests()), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(psns(answers()), ElementsAre(2, 4, 9));
}

// A READ requests the missing part of its response again, and not the received part.
class LostResponse : public RcWire, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  static constexpr std::uint32_t kPsn = 0xfffffe;
  static std::uint32_t psn(std::uint32_t n) { return (kPsn + n) & 0xffffff; }
  LostResponse() : RcWire({"drop,host=h1,count=1,psn=" + std::to_string(psn(GetParam()))}) {}
};
TEST_P(LostResponse, IsAskedForFromThere) {
  constexpr std::uint32_t kBytes = 5 * 1024 - 100;
  EndpointOptions options;
  options.psn = kPsn;
  options.timeout = 8;
  EndpointAddress remote;
  run_connected(
      [&](Endpoint& end) {
        remote.buffer = end.request(IBV_WR_RDMA_READ, 0, 0, 8192).wr.rdma.remote_addr;
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, kBytes, 8192)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        for (std::uint32_t i = 0; i < kBytes; ++i) ASSERT_EQ(end.buffer[i], std::uint8_t(8192 + i + i / 256));
      },
      [&](Endpoint& end) {
        for (std::uint32_t i = 0; i < kBytes; ++i) end.buffer[8192 + i] = std::uint8_t(8192 + i + i / 256);
        meet(1);
      },
      options, options);
  const auto asked = requests();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[0].psn(), psn(0));
  EXPECT_EQ(asked[1].psn(), psn(GetParam()));
  EXPECT_EQ(asked[1].headers.reth->address, remote.buffer + GetParam() * 1024);
  EXPECT_EQ(asked[1].headers.reth->length, kBytes - GetParam() * 1024);
}
INSTANTIATE_TEST_SUITE_P(Packet, LostResponse, ::testing::Range(0u, 5u));

// The answer is lost, the memory changes, and the request is retransmitted.
class LostAnswer : public RcWire {
 protected:
  LostAnswer() : RcWire({"drop,host=h1,nth=1"}) {
    options_.timeout = 8;  // 1.05 ms
  }
  static void wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) sleep_until(now() + Duration{1'000'000});
    ASSERT_TRUE(condition());
  }
  void expect_asked_twice() {
    const auto asked = requests();
    ASSERT_EQ(asked.size(), 2u);
    EXPECT_EQ(asked[0].headers, asked[1].headers);
    const auto said = answers();
    ASSERT_EQ(said.size(), 2u);
    EXPECT_EQ(said[0].headers, said[1].headers);
  }

  EndpointOptions options_;
};

TEST_F(LostAnswer, OfASendThatIsNotDoneTwice) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 500)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_asked_twice();
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, 0, 8)), 0);
      },
      [&](Endpoint& end) {
        ASSERT_EQ(end.receive(0, 500, 1), 0);
        ASSERT_EQ(end.receive(1000, 500, 2), 0);
        meet(1);
        EXPECT_EQ(end.completion().wr_id, 1u);
        std::ranges::fill(end.buffer, kOverwritten);
        meet(1);
        EXPECT_EQ(std::ranges::count(end.buffer, kOverwritten), std::ssize(end.buffer));
        const auto next = end.completion();
        EXPECT_EQ(next.wr_id, 2u);
        EXPECT_EQ(next.byte_len, 8u);
      },
      options_, options_);
}

TEST_F(LostAnswer, OfAWriteThatIsNotDoneTwice) {
  run_connected(
      [&](Endpoint& end) {
        std::ranges::fill(end.buffer, 1);
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, 0, 500)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_asked_twice();
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        wait_for([&] { return end.buffer[499] == 1; });
        std::ranges::fill(end.buffer, kOverwritten);
        meet(1);
        EXPECT_EQ(std::ranges::count(end.buffer, kOverwritten), std::ssize(end.buffer));
      },
      options_, options_);
}

TEST_F(LostAnswer, OfAWriteWithImmediateThatTellsOnce) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 500)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        expect_asked_twice();
        meet(0);
      },
      [&](Endpoint& end) {
        for (int i = 0; i < 2; ++i) ASSERT_EQ(end.receive(0, 500), 0);
        meet(1);
        EXPECT_EQ(end.completion().opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        meet(1);
        EXPECT_FALSE(completion_soon(end.cq));
      },
      options_, options_);
}

TEST_F(LostAnswer, OfAReadThatIsDoneAnew) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, 0, 8, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(word(end, 0), 2u);
        expect_asked_twice();
      },
      [&](Endpoint& end) {
        set_word(end, 64, 1);
        meet(1);
        wait_for([&] { return !answers().empty(); });
        set_word(end, 64, 2);
      },
      options_, options_);
}

class LostAtomicAnswer : public LostAnswer, public ::testing::WithParamInterface<bool> {};

TEST_P(LostAtomicAnswer, IsGivenAgainAndNothingIsDoneTwice) {
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        ASSERT_EQ(end.post(GetParam() ? end.fetch_add(0, 5, 64) : end.compare_swap(0, 100, 105, 64)), 0);
        EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        EXPECT_EQ(word(end, 0), 100u);
        expect_asked_twice();
        meet(0);
      },
      [&](Endpoint& end) {
        set_word(end, 64, 100);
        meet(1);
        wait_for([&] { return word(end, 64) == 105; });
        set_word(end, 64, 1000);
        meet(1);
        EXPECT_EQ(word(end, 64), 1000u);
      },
      options_, options_);
}
INSTANTIATE_TEST_SUITE_P(OfFetchAdd, LostAtomicAnswer, ::testing::Bool());

// The responder keeps as many results as there may be outstanding atomics: here all answers are lost.
class LostAtomicAnswers : public LostAnswer {};
TEST_F(LostAtomicAnswers, AllOfThemAreKept) {
  options_.max_rd_atomic = 16;
  run_connected(
      [&](Endpoint& end) {
        meet(0);
        for (std::uint32_t i = 0; i < 16; ++i) ASSERT_EQ(end.post(end.fetch_add(8 * i, 1, 1024)), 0);
        for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
        for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(word(end, 8 * i), i);
        meet(0);
      },
      [&](Endpoint& end) {
        meet(1);
        meet(1);
        EXPECT_EQ(word(end, 1024), 16u);
      },
      options_, options_);
}

// Every operation at every path MTU, with sizes on both sides of the boundaries, across the PSN wrap.
using Traffic = std::tuple<ibv_wr_opcode, ibv_mtu>;
class Sizes : public RcWire, public ::testing::WithParamInterface<Traffic> {
 protected:
  static constexpr std::uint32_t kTarget = 32'768;
  static bool takes_receive(ibv_wr_opcode operation) {
    return operation != IBV_WR_RDMA_WRITE && operation != IBV_WR_RDMA_READ && !is_atomic(operation);
  }
  static bool is_atomic(ibv_wr_opcode operation) {
    return operation == IBV_WR_ATOMIC_FETCH_AND_ADD || operation == IBV_WR_ATOMIC_CMP_AND_SWP;
  }
};

TEST_P(Sizes, ArriveWholeWithTheirPacketsNumbered) {
  const auto [operation, mtu_code] = GetParam();
  const std::uint32_t mtu = 128u << mtu_code;
  std::vector<std::uint32_t> sizes{0, 1, 4, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1, 5 * mtu + 3, 0};
  if (is_atomic(operation)) sizes.assign(12, 8);
  EndpointOptions options;
  options.mtu = mtu_code;
  options.psn = 0xfffffa;
  Endpoint* ends[2]{};
  const auto fill = [](Endpoint& end, std::uint32_t seed) {
    for (std::uint32_t i = 0; i < kTarget; ++i) end.buffer[i] = std::uint8_t(i * 13 + i / 251 + seed);
    std::fill(end.buffer.begin() + kTarget, end.buffer.end(), kOverwritten);
  };
  run_connected(
      [&, operation = operation](Endpoint& end) {
        fill(end, 1);
        ends[0] = &end;
        meet(0);
        for (std::uint32_t i = 0; i < sizes.size(); ++i) {
          const bool read = operation == IBV_WR_RDMA_READ;
          auto wr = end.request(operation, read ? kTarget : 0, sizes[i], read ? 0 : kTarget);
          if (operation == IBV_WR_ATOMIC_FETCH_AND_ADD) wr = end.fetch_add(0, 3, kTarget);
          if (operation == IBV_WR_ATOMIC_CMP_AND_SWP) wr = end.compare_swap(0, i, i + 1, kTarget);
          wr.imm_data = i;
          ASSERT_EQ(end.post(wr), 0);
          EXPECT_EQ(end.completion().status, IBV_WC_SUCCESS);
          meet(0);  // the responder has checked its buffer
          if (is_atomic(operation)) {
            EXPECT_EQ(word(end, 0), operation == IBV_WR_ATOMIC_CMP_AND_SWP ? i : 3 * i);
            continue;
          }
          // Exactly these bytes are written: the byte behind them is unchanged.
          const auto& source = ends[read ? 1 : 0]->buffer;
          auto& target = ends[read ? 0 : 1]->buffer;
          EXPECT_TRUE(std::equal(source.begin(), source.begin() + sizes[i], target.begin() + kTarget)) << sizes[i];
          EXPECT_EQ(target[kTarget + sizes[i]], kOverwritten) << sizes[i];
          std::fill(target.begin() + kTarget, target.end(), kOverwritten);
          meet(0);
        }
      },
      [&, operation = operation](Endpoint& end) {
        fill(end, 2);
        if (is_atomic(operation)) set_word(end, kTarget, 0);
        ends[1] = &end;
        for (const auto size : sizes)
          if (takes_receive(operation)) {
            const auto room = operation == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : size;
            ASSERT_EQ(end.receive(kTarget, room), 0);
          }
        meet(1);
        for (std::uint32_t i = 0; i < sizes.size(); ++i) {
          if (takes_receive(operation)) {
            const auto wc = end.completion();
            EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
            EXPECT_EQ(wc.byte_len, sizes[i]);
            if (operation != IBV_WR_SEND) {
              EXPECT_EQ(wc.imm_data, i);
            }
          }
          meet(1);
          if (!is_atomic(operation)) meet(1);
        }
      },
      options, options);
  // READs take PSNs for the packets of their responses.
  std::uint32_t psn = options.psn;
  const auto packets = operation == IBV_WR_RDMA_READ ? answers() : requests();
  std::size_t at = 0;
  for (const auto size : sizes) {
    const auto count = is_atomic(operation) ? 1 : roce::packets_for(size, mtu);
    for (std::uint32_t i = 0; i < count; ++i, ++at) {
      ASSERT_LT(at, packets.size());
      EXPECT_EQ(packets[at].psn(), psn);
      EXPECT_EQ(packets[at].payload, is_atomic(operation) ? 0 : std::min(mtu, size - i * mtu));
      EXPECT_EQ(roce::info(packets[at].opcode()).position, roce::position_of(i, count));
      psn = (psn + 1) & 0xffffff;
    }
  }
  EXPECT_EQ(at, packets.size());
}
INSTANTIATE_TEST_SUITE_P(Of, Sizes,
                         ::testing::Combine(::testing::Values(IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                                              IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
                                                              IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP),
                                            ::testing::Values(IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
                                                              IBV_MTU_4096)));

}  // namespace
}  // namespace rnicsim::testing::rc_recovery_test
