// SPDX-License-Identifier: Apache-2.0
// The whole engine in lockstep with the transport core.
#include <gtest/gtest.h>

#include "model/roce/opcode.h"
#include "tests/rtl/engine_node.h"

namespace rnicsim::rtl::test {
namespace {

void expect_sound(Network& network, std::uint64_t messages) {
  const bool done = network.run(messages);
  for (const int number : {0, 1}) {
    EXPECT_EQ(network.node(number).reference_model().mismatch(), "") << "node " << number;
    EXPECT_EQ(network.node(number).engine().failures(), 0) << "an assertion failed";
  }
  EXPECT_TRUE(done) << "nothing moves any more, at cycle " << network.cycle();
}

TEST(QpEngine, CarriesMessagesOverAGoodNetwork) {
  Network network({.seed = 1});
  expect_sound(network, 2'000);
}

TEST(QpEngine, CarriesMessagesOverABadOne) {
  Network network(
      {.seed = 2, .lost = 10, .doubled = 10, .reordered = 20, .no_receive = 50, .stalled = 200, .idle = 200});
  expect_sound(network, 5'000);
}

TEST(QpEngine, ErrorsEndAQueuePairAndNotItsNeighbours) {
  Network network(
      {.seed = 3, .lost = 5, .doubled = 5, .reordered = 5, .no_receive = 20, .stalled = 50, .idle = 50, .errors = 100});
  expect_sound(network, 10'000);
}

// Opcodes, PSNs, lengths and syndromes that no peer would send, to working queue pairs.
TEST(QpEngine, TakesWhateverComes) {
  for (unsigned seed = 5; seed < 13; ++seed) {
    Network network({.seed = seed,
                     .slots = 8,
                     .lost = 5,
                     .doubled = 5,
                     .reordered = 5,
                     .spoiled = 60,
                     .stalled = 50,
                     .idle = 50,
                     .errors = 20});
    expect_sound(network, 5'000);
  }
}

// This run covers each opcode, verdict and outcome.
TEST(QpEngine, IsInLockstepFor200000Messages) {
  Network network({.seed = 4,
                   .slots = 12,
                   .lost = 10,
                   .doubled = 10,
                   .reordered = 10,
                   .no_receive = 20,
                   .stalled = 50,
                   .idle = 50,
                   .errors = 20});
  expect_sound(network, 200'000);
  const auto count = [&](auto of, auto key) {
    std::uint64_t sum = 0;
    for (const int number : {0, 1}) {
      const auto& counts = (network.node(number).*of)();
      if (const auto found = counts.find(key); found != counts.end()) sum += found->second;
    }
    return sum;
  };
  for (unsigned code = 0; code < 256; ++code) {
    const auto* row = roce::find_opcode(static_cast<std::uint8_t>(code));
    if (row == nullptr || row->transport != roce::Transport::rc || row->has(roce::header::kInvalidate)) continue;
    if (row->operation == roce::Operation::atomic_write) continue;
    EXPECT_GT(count(&Node::opcodes, static_cast<std::uint8_t>(code)), 100u) << row->name;
  }
  for (int i = 0; i <= static_cast<int>(Verdict::replay); ++i)
    EXPECT_GT(count(&Node::verdicts, static_cast<Verdict>(i)), 0u) << "verdict " << i;
  for (int i = 0; i <= static_cast<int>(Outcome::failed); ++i)
    EXPECT_GT(count(&Node::outcomes, static_cast<Outcome>(i)), 0u) << "outcome " << i;
}

}  // namespace
}  // namespace rnicsim::rtl::test
