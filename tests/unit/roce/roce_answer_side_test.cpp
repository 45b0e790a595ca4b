// SPDX-License-Identifier: Apache-2.0
// Pending answers of a responder: order, combined acknowledgements, atomics and writes, payload that could not be
// placed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/roce/responders/answer_side.h"

namespace rnicsim::roce::answer_side_test {
namespace {

constexpr std::uint32_t kMtu = 1024;
constexpr Psn kFirst(0xfffffe);  // PSNs wrap
constexpr std::uint32_t kAll = remote_access::kWrite | remote_access::kRead | remote_access::kAtomic;

class AnswerSideTest : public ::testing::Test, private CoreActions {
 protected:
  AnswerSideTest() { side_.start(attributes(kAll), kFirst); }

  static ResponderAttributes attributes(std::uint32_t access) {
    return {.remote = {5}, .mtu = kMtu, .access = access, .max_dest_rd_atomic = 4};
  }
  // The next request in order. Its key is granted, and a receive is posted.
  void request(Opcode opcode, std::uint32_t payload = 0, Offer offer = granted()) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = side_.responder().expected_psn();
    headers.bth.ack_request = true;
    const auto& row = info(opcode);
    if (row.has(header::kReth)) headers.reth = Reth{0x1000, {1}, row.operation == Operation::read ? 2 * kMtu : payload};
    if (row.has(header::kAtomic)) headers.atomic = AtomicEth{0x1000, {1}, 1, 0};
    if (row.has(header::kInvalidate)) headers.invalidate = Rkey{7};
    side_.request(headers, payload, offer);
    side_.settle();
  }
  // A READ of the packets `first` to `end` of a range, counted from kFirst.
  void read(std::uint32_t first, std::uint32_t end) {
    Headers headers;
    headers.bth.opcode = Opcode::read_request;
    headers.bth.psn = kFirst + first;
    headers.reth = Reth{0x1000 + std::uint64_t{first} * kMtu, {1}, (end - first) * kMtu};
    side_.request(headers, 0, granted());
    side_.settle();
  }
  static Offer granted() {
    return {.receive = Offer::Receive::available, .receive_bytes = 1 << 20, .access_granted = true};
  }
  // "ACK 2": the answer, and the index of its request, counted from the first.
  std::string answer() {
    if (!side_.next()) return "none";
    Headers headers;
    const auto sent = side_.answer(headers);
    side_.settle();
    const auto at = std::to_string(distance(kFirst, headers.bth.psn));
    if (sent.is_read) return "READ " + at;
    if (headers.atomic_ack) return "ATOMIC " + at;
    const auto kind = headers.aeth->syndrome & Aeth::kClassMask;
    return (kind == Aeth::kAck ? "ACK " : sent.fatal ? "fatal NAK " : "NAK ") + at;
  }
  std::vector<std::string> take() { return std::exchange(done_, {}); }

  AnswerSide side_{0, *this, Transport::rc};
  std::optional<bool> known_{};  // access that is known at once: granted or not

 private:
  void tell(const std::string& what, AnswerId pending_answer) {
    done_.push_back(what + " " + std::to_string(pending_answer));
  }
  void begin_step() override {}
  void end_step() override {}
  void moved(Slot, bool) override {}
  void posted(Slot, std::uint64_t, Psn, std::uint32_t) override {}
  void responded(Slot, const ResponseOutcome&, Psn) override {}
  void ack_timed_out(Slot, bool) override {}
  void completed(Slot, std::uint64_t, Status, bool) override {}
  void local_work(Slot, std::uint64_t) override {}
  void drained(Slot) override {}
  void arm(Slot, Timer, std::uint8_t, bool) override {}
  void cancel(Slot, Timer) override {}
  std::optional<bool> granted(Slot, const Verdict&) override { return known_; }
  void validated(Slot, const Verdict& verdict) override {
    using Kind = Verdict::Kind;
    if (verdict.kind == Kind::busy) done_.push_back("busy");
    if (verdict.kind == Kind::wants_access) done_.push_back("wants access");
    if (verdict.kind == Kind::reject) done_.push_back("rejected");
  }
  void start_atomic(Slot, AnswerId pending_answer, Psn psn, const AtomicEth&, bool, std::uint32_t) override {
    EXPECT_EQ(distance(kFirst, psn), static_cast<std::int32_t>(pending_answer));
    tell("atomic", pending_answer);
  }
  void invalidate(Slot, AnswerId pending_answer, Rkey) override { tell("invalidate", pending_answer); }
  void receive_completed(Slot, AnswerId pending_answer) override { tell("receive", pending_answer); }
  void placement_failed(Slot, const PlacementFailure& failure) override { tell("failed", failure.pending_answer); }
  void told(Slot, const CoreState&) override {}

  std::vector<std::string> done_;
};

using Done = std::vector<std::string>;

TEST_F(AnswerSideTest, AcknowledgementsOfWhatIsInMemoryAreOne) {
  for (int i = 0; i < 3; ++i) request(Opcode::write_only, 100);
  EXPECT_EQ(answer(), "none");
  side_.placed(1, MemoryResult::ok);
  EXPECT_EQ(answer(), "none");
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(answer(), "ACK 1");
  side_.placed(2, MemoryResult::ok);
  EXPECT_EQ(answer(), "ACK 2");
  EXPECT_EQ(answer(), "none");
}

TEST_F(AnswerSideTest, AccessThatIsKnownAtOnceIsNotWaitedFor) {
  request(Opcode::write_only, 100, {});
  EXPECT_EQ(take(), Done{"wants access"});
  known_ = true;
  request(Opcode::write_only, 100, {});
  EXPECT_EQ(take(), Done{});
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(answer(), "ACK 0");
  known_ = false;
  request(Opcode::write_only, 100, {});
  EXPECT_EQ(take(), Done{"rejected"});
  EXPECT_EQ(answer(), "fatal NAK 1");
}

TEST_F(AnswerSideTest, ReceivesCompleteInOrderBehindTheirPayload) {
  request(Opcode::send_only, 100);
  request(Opcode::send_only, 100);
  side_.placed(1, MemoryResult::ok);
  EXPECT_EQ(take(), Done{});
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(take(), Done{"receive 0"});
  EXPECT_EQ(answer(), "ACK 1");
  EXPECT_EQ(take(), Done{"receive 1"});
}

TEST_F(AnswerSideTest, AheadTheyDoNotWaitForAnAcknowledgementsTurn) {
  request(Opcode::send_only, 100);
  request(Opcode::send_only, 100);
  side_.placed(0, MemoryResult::ok);
  side_.placed(1, MemoryResult::ok);
  take();
  side_.settle_ahead();
  EXPECT_EQ(take(), Done{"receive 1"});
}

TEST_F(AnswerSideTest, AnAtomicIsBehindTheWritesBeforeItAndBeforeThoseBehind) {
  request(Opcode::write_only, 100);
  request(Opcode::fetch_add);
  EXPECT_EQ(take(), Done{});
  request(Opcode::write_only, 100);
  EXPECT_EQ(take(), Done{"busy"});
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(take(), Done{"atomic 1"});
  EXPECT_EQ(answer(), "ACK 0");
  side_.atomic_executed(1, MemoryResult::ok, 17);
  request(Opcode::write_only, 100);
  EXPECT_EQ(take(), Done{});
  EXPECT_EQ(answer(), "ATOMIC 1");
}

TEST_F(AnswerSideTest, AReadIsAnsweredPacketByPacket) {
  request(Opcode::read_request);
  EXPECT_EQ(side_.next(), kMtu);
  EXPECT_EQ(answer(), "READ 0");
  EXPECT_EQ(answer(), "READ 1");
  EXPECT_EQ(answer(), "none");
}

// The requester discards the rest of a response with a gap: only the repeated READ is answered.
TEST_F(AnswerSideTest, ARepeatedReadTakesThePlaceOfTheRest) {
  read(0, 5);
  read(5, 7);
  for (const auto* packet : {"READ 0", "READ 1", "READ 2"}) EXPECT_EQ(answer(), packet);
  read(1, 5);
  read(5, 7);  // is pending anyway
  for (const auto* packet : {"READ 1", "READ 2", "READ 3", "READ 4", "READ 5", "READ 6", "none"})
    EXPECT_EQ(answer(), packet);
}

// A READ of a part, such as lost packets alone, is answered in addition.
TEST_F(AnswerSideTest, ARepeatedPartOfAReadLeavesTheRest) {
  read(0, 4);
  for (const auto* packet : {"READ 0", "READ 1", "READ 2"}) EXPECT_EQ(answer(), packet);
  read(1, 2);
  for (const auto* packet : {"READ 3", "READ 1", "none"}) EXPECT_EQ(answer(), packet);
}

TEST_F(AnswerSideTest, InPlaceOfBytesThatCannotBeHadComesANakAndNothingBehind) {
  request(Opcode::read_request);
  request(Opcode::send_only, 0);
  EXPECT_EQ(answer(), "READ 0");
  side_.unreadable(kFirst, MemoryResult::refused);
  EXPECT_EQ(answer(), "fatal NAK 0");
  EXPECT_EQ(answer(), "none");
}

TEST_F(AnswerSideTest, AKeyIsInvalidatedBehindThePayloadAndBeforeTheReceive) {
  request(Opcode::send_only_inv, 100);
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(take(), Done{"invalidate 0"});
  EXPECT_EQ(answer(), "none");
  side_.invalidated(0);
  EXPECT_EQ(take(), Done{"receive 0"});
  EXPECT_EQ(answer(), "ACK 0");
}

TEST_F(AnswerSideTest, AMessageThatCouldNotBePlacedInvalidatesNoKey) {
  request(Opcode::send_only_inv, 100);
  side_.placed(0, MemoryResult::refused);
  EXPECT_EQ(take(), Done{"failed 0"});
  EXPECT_EQ(answer(), "fatal NAK 0");
}

TEST_F(AnswerSideTest, WhatWantedAccessGoesOnWithTheRightsOfThen) {
  Offer unknown = granted();
  unknown.access_granted.reset();
  request(Opcode::write_only, 100, unknown);
  EXPECT_EQ(take(), Done{"wants access"});
  request(Opcode::write_only, 100);
  side_.placed(0, MemoryResult::ok);
  EXPECT_EQ(answer(), "ACK 0");
  request(Opcode::write_only, 100, unknown);
  EXPECT_EQ(take(), Done{"wants access"});
  side_.update(attributes(remote_access::kRead));  // changed meanwhile
  request(Opcode::write_only, 100);
  EXPECT_EQ(take(), Done{"rejected"});
}

TEST_F(AnswerSideTest, AccessThatIsNotGrantedIsRejected) {
  Offer unknown = granted();
  unknown.access_granted.reset();
  request(Opcode::write_only, 100, unknown);
  Offer denied = granted();
  denied.access_granted = false;
  request(Opcode::write_only, 100, denied);
  EXPECT_EQ(take(), (Done{"wants access", "rejected"}));
  EXPECT_EQ(answer(), "fatal NAK 0");
}

}  // namespace
}  // namespace rnicsim::roce::answer_side_test
