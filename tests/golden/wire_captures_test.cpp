// SPDX-License-Identifier: Apache-2.0
// Every capture of real NICs, replayed as each of its two ends: our NIC answers, sends and delivers the same as the
// real NIC, except for the equivalences named here. If a capture was not taken at the end's own port, each packet that
// was lost on the way is one difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "model/nic/engine/engine_factory.h"
#include "model/nic/engine/jittered_engine.h"
#include "model/nic/engine/qp_context.h"
#include "model/nic/seam/qp_engine.h"
#include "sim/replay/replay.h"

namespace rnicsim::sim::replay {
namespace {

struct Row {
  const char* capture;
  const char* address;
  std::size_t answers = 0;                       // answers of the real NIC that match
  std::size_t requests = 0;                      // requests of the real NIC that match
  std::size_t delivered = 0;                     // delivered messages
  std::size_t managed = 0;                       // connection-management messages of the real NIC that match
  std::size_t naks = 0, rnrs = 0, timeouts = 0;  // causes of retransmissions
  std::uint64_t nak_behind_rnr = 0;
  std::uint64_t read_resumed = 0;
  std::uint64_t rnr_acknowledges = 0;
  std::size_t differences = 0;  // packets lost between the end and the place of the capture

  friend std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.capture << row.address; }
};

constexpr Row kRows[] = {
    {.capture = "rxe-two-guests", .address = "10.0.0.1", .answers = 23, .requests = 53, .delivered = 25, .managed = 2},
    {.capture = "rxe-two-guests", .address = "10.0.0.2", .answers = 13, .requests = 66, .delivered = 21, .managed = 3},
    {.capture = "atomic_loss-h0", .address = "10.0.0.1", .requests = 16, .naks = 1, .timeouts = 1},
    {.capture = "atomic_loss-h0", .address = "10.0.0.2", .answers = 13, .differences = 3},
    {.capture = "exhaustion-h0", .address = "10.0.0.1", .requests = 24, .timeouts = 3},
    {.capture = "exhaustion-h0", .address = "10.0.0.2", .delivered = 3, .differences = 21},
    {.capture = "mcast-h0", .address = "10.0.0.1", .requests = 2},
    {.capture = "mcast-h0", .address = "10.0.0.2", .delivered = 2},
    {.capture = "mcast-h1", .address = "10.0.0.1", .requests = 2},
    {.capture = "mcast-h1", .address = "10.0.0.2", .delivered = 2},
    {.capture = "read_loss-h0", .address = "10.0.0.1", .requests = 6, .naks = 1},
    {.capture = "read_loss-h0", .address = "10.0.0.2", .answers = 234, .read_resumed = 1, .differences = 4},
    {.capture = "read_loss-h1", .address = "10.0.0.1", .requests = 3, .timeouts = 1, .differences = 3},
    {.capture = "read_loss-h1", .address = "10.0.0.2", .answers = 238, .read_resumed = 1},
    {.capture = "rnr-h0", .address = "10.0.0.1", .requests = 156, .rnrs = 19},
    {.capture = "rnr-h0", .address = "10.0.0.2", .answers = 22, .delivered = 3, .nak_behind_rnr = 19},
    {.capture = "rnr-h1", .address = "10.0.0.1", .requests = 156, .rnrs = 19},
    {.capture = "rnr-h1", .address = "10.0.0.2", .answers = 22, .delivered = 3, .nak_behind_rnr = 19},
    {.capture = "rnr_exhaust-h0", .address = "10.0.0.1", .requests = 6, .rnrs = 3, .rnr_acknowledges = 2},
    {.capture = "rnr_exhaust-h0", .address = "10.0.0.2", .answers = 6},
    {.capture = "uc-h0", .address = "10.0.0.1", .requests = 23},
    {.capture = "uc-h0", .address = "10.0.0.2", .delivered = 8},
    {.capture = "uc-h1", .address = "10.0.0.1", .requests = 3, .differences = 1},
    {.capture = "uc-h1", .address = "10.0.0.2", .delivered = 6},
    {.capture = "ud-h0", .address = "10.0.0.1", .requests = 7, .delivered = 1},
    {.capture = "ud-h0", .address = "10.0.0.2", .requests = 1, .delivered = 6},
    {.capture = "ud-h1", .address = "10.0.0.1", .requests = 7, .delivered = 1},
    {.capture = "ud-h1", .address = "10.0.0.2", .requests = 1, .delivered = 6},
};

std::filesystem::path folder() { return std::filesystem::path(RNICSIM_SOURCE_DIR) / "traces" / "wire"; }

std::size_t matched(const std::vector<Comparison>& comparisons) {
  std::size_t count = 0;
  for (const auto& comparison : comparisons) count += comparison.matched;
  return count;
}

std::size_t went_back(const Replay& replay, Cause cause) {
  std::size_t count = 0;
  for (const auto& qp : replay.environment.requesters) count += qp.count(cause);
  return count;
}

class WireCaptures : public testing::TestWithParam<Row> {
 protected:
  static Replay run(nic::QpEngine& engine) {
    const auto frames = read_capture(folder() / (std::string(GetParam().capture) + ".pcap"));
    return replay_frames(frames, *parse_address(GetParam().address), engine);
  }
  static void expect_row(const Replay& replay) {
    const auto& row = GetParam();
    EXPECT_EQ(replay.differences(), row.differences);
    EXPECT_EQ(matched(replay.comparisons), row.answers);
    EXPECT_EQ(matched(replay.requests), row.requests);
    EXPECT_EQ(matched(replay.deliveries), row.delivered);
    EXPECT_EQ(replay.managed.matched, row.managed);
    EXPECT_EQ(went_back(replay, Cause::nak), row.naks);
    EXPECT_EQ(went_back(replay, Cause::rnr), row.rnrs);
    EXPECT_EQ(went_back(replay, Cause::timeout), row.timeouts);
    for (const auto& [equivalence, name, meaning] : kEquivalences) {
      if (equivalence == Equivalence::migration_state) continue;  // every packet of Soft-RoCE has this equivalence
      const auto expected = equivalence == Equivalence::nak_behind_rnr     ? row.nak_behind_rnr
                            : equivalence == Equivalence::read_resumed     ? row.read_resumed
                            : equivalence == Equivalence::rnr_acknowledges ? row.rnr_acknowledges
                                                                           : 0;
      EXPECT_EQ(replay.equivalences()[static_cast<std::size_t>(equivalence)], expected) << name;
    }
  }
};

TEST_P(WireCaptures, OurNicDoesAsTheRealOne) {
  const auto engine_owner = nic::make_model_engine({});
  auto& engine = *engine_owner;
  const auto replay = run(engine);
  expect_row(replay);
  for (const auto& difference : replay.strays) ADD_FAILURE() << *difference.theirs;
}

// The result depends on the NIC's input, and not on the speed of the engine.
TEST_P(WireCaptures, TheSameOnAnEngineWhoseEveryTransactionIsLate) {
  nic::JitteredEngine engine({.delay = Duration{300'000}}, nic::make_model_engine({}));
  expect_row(run(engine));
}

INSTANTIATE_TEST_SUITE_P(BothEnds, WireCaptures, testing::ValuesIn(kRows), [](const auto& row) {
  auto name = std::string(row.param.capture) + (row.param.address == std::string("10.0.0.1") ? "_as_h0" : "_as_h1");
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(WireFolder, EveryCaptureIsReplayedAsBothEnds) {
  std::multiset<std::string> listed;
  for (const auto& row : kRows) listed.insert(row.capture);
  for (const auto& file : std::filesystem::directory_iterator(folder()))
    EXPECT_EQ(listed.count(file.path().stem()), 2u) << file.path();
}

Replay replay_of(const char* capture, const char* address) {
  const auto engine_owner = nic::make_model_engine({});
  auto& engine = *engine_owner;
  return replay_frames(read_capture(folder() / capture), *parse_address(address), engine);
}

TEST(Exhaustion, OurNicGivesUpAfterAsManyRetries) {
  const auto replay = replay_of("exhaustion-h0.pcap", "10.0.0.1");
  const auto& qp = replay.environment.requesters.at(0);
  EXPECT_TRUE(qp.gives_up);
  EXPECT_EQ(qp.retry_count, 3);
  EXPECT_EQ(qp.timeout, 10);  // 4.2 ms: the longest timeout below all intervals of 6.1 ms to 7.8 ms
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::transport_retry_exceeded);
  EXPECT_EQ(qp.posted.at(1).outcome, roce::Status::flushed_error);
}

TEST(RnrExhaustion, OurNicGivesUpAfterAsManyRefusals) {
  const auto replay = replay_of("rnr_exhaust-h0.pcap", "10.0.0.1");
  const auto& qp = replay.environment.requesters.at(0);
  EXPECT_EQ(qp.rnr_retry, 3);
  EXPECT_EQ(qp.posted.at(0).outcome, roce::Status::rnr_retry_exceeded);
}

// The answer to the atomic is lost twice. Later packets cause no second retransmission; the timer does.
TEST(AtomicLoss, WhatIsLostTwiceIsAskedForByTheTimer) {
  const auto replay = replay_of("atomic_loss-h0.pcap", "10.0.0.1");
  const auto& qp = replay.environment.requesters.at(0);
  ASSERT_EQ(qp.posted.size(), 8u);
  for (const auto& request : qp.posted) EXPECT_EQ(request.outcome, roce::Status::success);
  EXPECT_EQ(qp.timeout, 12);  // 16.8 ms: the longest timeout below 19.5 ms
  const auto back = std::ranges::find(qp.events, Cause::timeout, &WireEvent::cause);
  EXPECT_EQ(back->packet->psn().value(), 257u);
}

TEST(ReadLoss, WhatWasLostIsAskedForAgainFromThere) {
  const auto replay = replay_of("read_loss-h0.pcap", "10.0.0.1");
  const auto& qp = replay.environment.requesters.at(0);
  ASSERT_EQ(qp.posted.size(), 3u);
  for (const auto& request : qp.posted) {
    EXPECT_EQ(request.outcome, roce::Status::success);
    EXPECT_EQ(request.brought.size(), 40000u);
  }
  const auto back = std::ranges::find(qp.events, Cause::nak, &WireEvent::cause);
  EXPECT_EQ(back->packet->psn().value(), 258u);
}

}  // namespace
}  // namespace rnicsim::sim::replay
