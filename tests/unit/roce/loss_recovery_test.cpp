// SPDX-License-Identifier: Apache-2.0
// Loss recovery, one sequence of events at a time: packets that a responder keeps and reports, and the requester's
// reaction. Random walks are in roce_property_test.cpp.
#include <gtest/gtest.h>

#include <vector>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responders/responder.h"

namespace rnicsim::roce {
namespace {

constexpr std::uint32_t kMtu = 1024;
constexpr std::uint8_t kRetries = 7;
using Kind = Verdict::Kind;

const LossRecovery kSelective{.mode = Recovery::selective, .reorder_window = 64};
const LossRecovery kKeeping{.reorder_window = 64};
const LossRecovery kGoBack0{.mode = Recovery::go_back_0};

// --- The responder.
class Responding : public testing::Test {
 protected:
  void start(const LossRecovery& recovery) {
    responder_.start({.mtu = kMtu,
                      .access = remote_access::kWrite | remote_access::kRead | remote_access::kAtomic,
                      .max_dest_rd_atomic = 4,
                      .recovery = recovery},
                     Psn(0));
  }
  static Headers headers(Opcode opcode, std::uint32_t psn, std::uint64_t address = 0, std::uint32_t length = 0) {
    Headers made;
    made.bth.opcode = opcode;
    made.bth.psn = Psn(psn);
    if (info(opcode).has(header::kReth)) made.reth = Reth{address, {5}, length};
    if (info(opcode).has(header::kImmediate)) made.immediate = 1;
    return made;
  }
  Verdict validate(const Headers& headers, std::uint32_t payload) {
    offer_.access_granted.reset();
    offer_.receive_bytes = 1 << 20;
    offer_.receive = Offer::Receive::available;
    auto verdict = responder_.receive(headers, payload, offer_);
    if (verdict.kind != Kind::wants_access) return verdict;
    offer_.access_granted = granted_;
    return responder_.receive(headers, payload, offer_);
  }

  Responder responder_;
  Offer offer_;
  bool granted_ = true;
};

TEST_F(Responding, PlacesWhatBelongsToTheWriteInProgress) {
  start(kSelective);
  EXPECT_EQ(validate(headers(Opcode::write_first, 0, 0x1000, 4 * kMtu), kMtu).kind, Kind::place);
  const auto kept = validate(headers(Opcode::write_middle, 2), kMtu);
  EXPECT_EQ(kept.kind, Kind::keep);
  EXPECT_EQ(kept.range.address, 0x1000u + 2 * kMtu);
  EXPECT_EQ(kept.range.length, kMtu);
  EXPECT_TRUE(kept.tells_of_gap);
  EXPECT_EQ(kept.syndrome, Aeth::kSelectiveNak);
  EXPECT_EQ(kept.psn, Psn(1));
  EXPECT_EQ(kept.msn, 2u);
  const auto filled = validate(headers(Opcode::write_middle, 1), kMtu);
  EXPECT_EQ(filled.kind, Kind::place);
  EXPECT_EQ(filled.next_kept, Psn(2));
}

// A packet that does not fit the message is not placed: it will be refused at its turn.
TEST_F(Responding, PlacesNothingThatDoesNotFit) {
  start(kSelective);
  validate(headers(Opcode::write_first, 0, 0x1000, 4 * kMtu), kMtu);
  // PSN 3 is the message's last packet, whose opcode must be WRITE last
  EXPECT_EQ(validate(headers(Opcode::write_middle, 3), kMtu).range.length, 0u);
  EXPECT_EQ(validate(headers(Opcode::write_middle, 9), kMtu).range.length, 0u);  // beyond the message
  EXPECT_EQ(validate(headers(Opcode::send_middle, 2), kMtu).range.length, 0u);
}

TEST_F(Responding, PlacesNothingThatTheKeyRefuses) {
  start(kSelective);
  granted_ = false;
  const auto first = validate(headers(Opcode::write_first, 1, 0x1000, 2 * kMtu), kMtu);
  EXPECT_EQ(first.kind, Kind::keep);
  EXPECT_EQ(first.range.length, 0u);
  EXPECT_EQ(validate(headers(Opcode::write_last, 2), kMtu).range.length, 0u);
}

TEST_F(Responding, WithoutEarlyPlacingEverythingWaits) {
  auto recovery = kSelective;
  recovery.place_early = false;
  start(recovery);
  validate(headers(Opcode::write_first, 0, 0x1000, 4 * kMtu), kMtu);
  EXPECT_EQ(validate(headers(Opcode::write_middle, 2), kMtu).range.length, 0u);
  EXPECT_EQ(validate(headers(Opcode::write_only, 4, 0x9000, 8), 8).range.length, 0u);
}

TEST_F(Responding, KeepsAsMuchAsTheWindowSays) {
  start(kKeeping);
  EXPECT_EQ(validate(headers(Opcode::write_only, 64, 0x1000, 8), 8).kind, Kind::keep);
  EXPECT_EQ(validate(headers(Opcode::write_only, 65, 0x1000, 8), 8).kind, Kind::drop);
  const auto twice = validate(headers(Opcode::write_only, 64, 0x1000, 8), 8);
  EXPECT_EQ(twice.kind, Kind::drop);
  EXPECT_TRUE(twice.duplicate);
}

// Otherwise the requester would not learn that a received packet was not kept.
TEST_F(Responding, SaysThatThereIsNoRoomToKeep) {
  start(kSelective);
  offer_.may_keep = false;
  const auto lost = validate(headers(Opcode::send_only, 1), 8);
  EXPECT_EQ(lost.kind, Kind::reject);
  EXPECT_EQ(lost.syndrome, Aeth::kSequenceError);
  EXPECT_EQ(lost.psn, Psn(0));
  EXPECT_EQ(validate(headers(Opcode::send_only, 2), 8).kind, Kind::drop);
}

TEST_F(Responding, NoNakUpToTheGap) {
  auto recovery = kKeeping;
  recovery.nak_gap = 3;
  start(recovery);
  EXPECT_FALSE(validate(headers(Opcode::send_only, 3), 8).tells_of_gap);
  const auto told = validate(headers(Opcode::send_only, 4), 8);
  EXPECT_TRUE(told.tells_of_gap);
  EXPECT_EQ(told.syndrome, Aeth::kSequenceError);
  EXPECT_FALSE(validate(headers(Opcode::send_only, 5), 8).tells_of_gap);  // one NAK per gap
}

// A READ takes the PSNs of its response: kept packets with these PSNs are discarded.
TEST_F(Responding, AReadThatJumpsOverKeptPacketsTellsWhereItGoesOn) {
  start(kKeeping);
  for (std::uint32_t psn = 1; psn <= 60; ++psn) validate(headers(Opcode::send_only, psn), 8);
  const auto read = validate(headers(Opcode::read_request, 0, 0x1000, 100 * kMtu), 0);
  EXPECT_EQ(read.kind, Kind::read);
  EXPECT_EQ(read.next_kept, Psn(100));
}

TEST_F(Responding, GoBack0BeginsTheMessageOnceMore) {
  start(kGoBack0);
  EXPECT_TRUE(validate(headers(Opcode::send_first, 0), kMtu).begins_receive);
  validate(headers(Opcode::send_middle, 1), kMtu);
  const auto gap = validate(headers(Opcode::send_middle, 3), kMtu);
  EXPECT_EQ(gap.syndrome, Aeth::kSequenceError);
  EXPECT_EQ(gap.psn, Psn(0));
  const auto again = validate(headers(Opcode::send_first, 0), kMtu);
  EXPECT_EQ(again.kind, Kind::place);
  EXPECT_EQ(again.offset, 0u);
  EXPECT_FALSE(again.begins_receive);
}

// Only the message's own first packet starts it again: another message would consume a receive that does not exist.
TEST_F(Responding, GoBack0RefusesAnotherMessageInItsPlace) {
  for (const auto opcode : {Opcode::write_only_imm, Opcode::write_first, Opcode::send_only}) {
    start(kGoBack0);
    validate(headers(Opcode::send_first, 0), kMtu);
    validate(headers(Opcode::send_middle, 2), kMtu);  // a gap
    const auto other = validate(headers(opcode, 0, 0x1000, kMtu), kMtu);
    EXPECT_EQ(other.kind, Kind::reject) << info(opcode).name;
    EXPECT_TRUE(other.fatal);
    EXPECT_FALSE(other.begins_receive);
  }
}

// --- The requester.
class Requesting : public testing::Test {
 protected:
  void start(const LossRecovery& recovery, std::uint8_t rd_atomic = 4) {
    window_.start({.remote = {1},
                   .mtu = kMtu,
                   .max_rd_atomic = rd_atomic,
                   .retry_count = kRetries,
                   .rnr_retry = 7,
                   .recovery = recovery},
                  Psn(0));
  }
  void post(SendOperation operation, std::uint32_t packets) {
    window_.post({.id = next_id_++, .operation = operation, .length = packets * kMtu, .rkey = {5}, .signaled = true});
  }
  std::vector<std::uint32_t> send() {
    std::vector<std::uint32_t> psns;
    while (const auto packet = requester_.next_packet()) psns.push_back(packet->headers.bth.psn.value());
    return psns;
  }
  ResponseOutcome answer(std::uint32_t psn, std::uint8_t syndrome = Aeth::kAck, std::uint32_t msn = 0) {
    Headers headers;
    headers.bth.opcode = Opcode::acknowledge;
    headers.bth.psn = Psn(psn);
    headers.aeth = Aeth{syndrome, msn};
    return completer_.receive(headers, 0);
  }
  ResponseOutcome response(std::uint32_t psn, Opcode opcode = Opcode::read_response_middle) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = Psn(psn);
    if (info(opcode).has(header::kAeth)) headers.aeth = Aeth{};
    return completer_.receive(headers, kMtu);
  }
  using Psns = std::vector<std::uint32_t>;

  SendWindow window_;
  Requester requester_{window_};
  Completer completer_{window_};
  std::uint64_t next_id_ = 0;
};

TEST_F(Requesting, SendsWhatIsMissingOnce) {
  start(kSelective);
  post(SendOperation::write, 10);
  EXPECT_EQ(send().size(), 10u);
  EXPECT_EQ(answer(2, Aeth::kSelectiveNak, 3).kind, ResponseOutcome::Kind::sequence_error);
  EXPECT_EQ(send(), Psns{2});
  EXPECT_EQ(answer(2, Aeth::kSelectiveNak, 4).kind, ResponseOutcome::Kind::duplicate);
  EXPECT_EQ(answer(2, Aeth::kSelectiveNak, 7).kind, ResponseOutcome::Kind::sequence_error);
  EXPECT_EQ(send(), (Psns{5, 6}));
  EXPECT_EQ(window_.retries_left, kRetries - 1);
  answer(7);
  EXPECT_EQ(window_.retries_left, kRetries);
  EXPECT_EQ(window_.oldest_psn(), Psn(8));
  requester_.ack_timeout(false);
  EXPECT_EQ(send(), (Psns{8, 9}));
}

TEST_F(Requesting, ATimeoutLeavesOutWhatHasArrived) {
  start(kSelective);
  post(SendOperation::write, 6);
  send();
  answer(1, Aeth::kSelectiveNak, 3);
  EXPECT_EQ(send(), (Psns{1, 2}));
  requester_.ack_timeout(false);
  EXPECT_EQ(send(), (Psns{1, 2, 4, 5}));
}

TEST_F(Requesting, TheLimitIsReachedWithAQuestion) {
  auto recovery = kSelective;
  recovery.most_in_flight = 110;
  start(recovery);
  post(SendOperation::write, 1000);
  std::uint32_t sent = 0, asked = 0;
  while (const auto packet = requester_.next_packet()) {
    ++sent;
    asked += packet->headers.bth.ack_request;
  }
  EXPECT_EQ(sent, 110u);
  EXPECT_GE(asked, 2u);
  answer(15);
  EXPECT_EQ(send().size(), 16u);
}

TEST_F(Requesting, GoingBackNeedsOneOfTheSelectiveNaksOfAGap) {
  start({});
  post(SendOperation::write, 20);
  send();
  EXPECT_TRUE(answer(3, Aeth::kSelectiveNak, 4).rewound);
  for (std::uint32_t arrived = 5; arrived < 20; ++arrived)
    EXPECT_FALSE(answer(3, Aeth::kSelectiveNak, arrived).rewound);
  EXPECT_EQ(window_.retries_left, kRetries - 1);
  EXPECT_EQ(send().front(), 3u);
}

TEST_F(Requesting, GoBack0IsNotMovedByAnAckWithinAMessage) {
  start(kGoBack0);
  post(SendOperation::write, 600);
  send();
  EXPECT_FALSE(answer(255).rewound);
  EXPECT_EQ(window_.retries_left, kRetries);
  EXPECT_TRUE(answer(0, Aeth::kSequenceError).rewound);
  EXPECT_EQ(send().size(), 600u);
  answer(599);
  EXPECT_TRUE(completer_.take_completion());
}

// A gap becomes known after the loss of a later packet.
TEST_F(Requesting, AsksForAnEarlierHoleWithinARecovery) {
  start(kSelective);
  post(SendOperation::read, 8);
  post(SendOperation::write, 2);
  send();
  for (const auto psn : {0, 1, 2}) response(psn, psn == 0 ? Opcode::read_response_first : Opcode::read_response_middle);
  answer(8, Aeth::kSelectiveNak, 9);
  EXPECT_EQ(send(), Psns{8});
  answer(9);
  EXPECT_EQ(send(), Psns{3});  // a request for all missing packets
}

// A responder accepts no more repeated READs than new READs at a time.
TEST_F(Requesting, AsksForHolesWithNoMoreReadsThanTheResponderTakes) {
  start(kSelective, 2);
  post(SendOperation::read, 16);
  send();
  for (std::uint32_t psn = 1; psn < 16; psn += 2) response(psn);
  EXPECT_EQ(send(), (Psns{0, 2}));
}

TEST_F(Requesting, ARefusalWaitsForResponsesThatItOvertook) {
  start(kSelective);
  post(SendOperation::read, 4);
  post(SendOperation::write, 1);
  send();
  EXPECT_FALSE(answer(4, Aeth::kRemoteAccessError).rewound);
  EXPECT_FALSE(completer_.oldest_done());
  for (std::uint32_t psn = 0; psn < 4; ++psn) {
    response(psn, psn == 0   ? Opcode::read_response_first
                  : psn == 3 ? Opcode::read_response_last
                             : Opcode::read_response_middle);
    completer_.placed(0, Status::success);
  }
  EXPECT_EQ(completer_.take_completion()->status, Status::success);
  EXPECT_EQ(completer_.take_completion()->status, Status::remote_access_error);
}

TEST_F(Requesting, EachPacketOfAWriteMayHaveItsAddress) {
  start({.reth_in_each = true});
  window_.post({.id = 0,
                .operation = SendOperation::write,
                .length = 2 * kMtu + 10,
                .remote_address = 0x1000,
                .rkey = {5},
                .signaled = true});
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto packet = requester_.next_packet();
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet->headers.bth.opcode, Opcode::write_only);
    EXPECT_EQ(packet->headers.reth->address, 0x1000u + i * kMtu);
    EXPECT_EQ(packet->headers.reth->length, i == 2 ? 10 : kMtu);
    EXPECT_EQ(packet->headers.bth.ack_request, i == 2);
  }
}

// The receiver's completion has the length of the whole message, so the message must stay one message.
TEST_F(Requesting, AWriteWithImmediateStaysOneMessage) {
  start({.reth_in_each = true});
  window_.post({.id = 0, .operation = SendOperation::write, .length = 2 * kMtu, .rkey = {5}, .immediate = 7});
  EXPECT_EQ(requester_.next_packet()->headers.bth.opcode, Opcode::write_first);
  EXPECT_EQ(requester_.next_packet()->headers.bth.opcode, Opcode::write_last_imm);
}

}  // namespace
}  // namespace rnicsim::roce
