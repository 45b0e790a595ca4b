// SPDX-License-Identifier: Apache-2.0
// Requester, responder and completer over a direct channel, without time.
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "model/roce/completer.h"
#include "model/roce/requester.h"
#include "model/roce/responders/responder.h"

namespace rnicsim::roce {
namespace {

constexpr std::uint32_t kRights = remote_access::kWrite | remote_access::kRead;

// The payload is not modelled: the test checks that each byte of each message is placed once, in order.
class Connection {
 public:
  explicit Connection(std::uint32_t mtu, Psn first = Psn(0xfffffd)) {
    window.start({.remote = {1}, .mtu = mtu, .max_rd_atomic = 2, .retry_count = 7, .rnr_retry = 7}, first);
    responder.start({.mtu = mtu, .access = kRights, .max_dest_rd_atomic = 2, .min_rnr_timer = 3}, first);
    mtu_ = mtu;
  }

  struct Wire {
    Headers headers;
    std::uint32_t payload;
  };
  SendWindow window;
  Requester requester{window};
  Completer completer{window};
  Responder responder;
  std::function<bool()> lose = [] { return false; };
  std::uint64_t receive_bytes = 1 << 20;
  bool receive_posted = true;
  bool granted = true;
  std::vector<Completion> completions;
  std::vector<std::uint64_t> received;  // bytes of messages that completed at the responder
  std::vector<std::uint8_t> naks;

  void post(SendOperation operation, std::uint32_t length, std::optional<std::uint32_t> immediate = {}) {
    window.post({.id = next_id_++,
                 .operation = operation,
                 .length = length,
                 .remote_address = 0x1000,
                 .rkey = {5},
                 .immediate = immediate,
                 .signaled = true});
  }
  // Runs until no packet moves; a standstill triggers a timeout.
  void run() {
    for (int idle = 0; idle < 50 && !window.messages.empty();) {
      bool moved = false;
      while (auto packet = requester.next_packet()) {
        moved = true;
        if (!lose()) serve({packet->headers, packet->payload});
      }
      while (!answers_.empty()) {
        const auto answer = answers_.front();
        answers_.pop_front();
        moved = true;
        if (!lose()) take(answer);
      }
      if (window.rnr_waiting) requester.rnr_timeout();
      if (moved) continue;
      ++idle;
      requester.ack_timeout(false);
      collect();
    }
  }
  Verdict validate(const Wire& wire) {
    Offer offer{.receive_bytes = receive_bytes};
    for (;;) {
      const auto verdict = responder.receive(wire.headers, wire.payload, offer);
      if (verdict.kind == Verdict::Kind::wants_receive) {
        offer.receive = receive_posted ? Offer::Receive::available : Offer::Receive::none;
      } else if (verdict.kind == Verdict::Kind::wants_access) {
        offer.access_granted = granted;
      } else {
        return verdict;
      }
    }
  }
  void serve(const Wire& wire) {
    const auto verdict = validate(wire);
    if (verdict.kind == Verdict::Kind::place) {
      EXPECT_EQ(verdict.offset, placed_);
      placed_ += wire.payload;
      if (verdict.completes) received.push_back(std::exchange(placed_, 0));
      if (verdict.acknowledge) answer(Opcode::acknowledge, verdict.psn, Aeth::kNoCredits, verdict.msn, 0);
    }
    if (verdict.kind == Verdict::Kind::acknowledge)
      answer(Opcode::acknowledge, verdict.psn, Aeth::kNoCredits, verdict.msn, 0);
    if (verdict.kind == Verdict::Kind::reject) {
      naks.push_back(verdict.syndrome);
      answer(Opcode::acknowledge, verdict.psn, verdict.syndrome, verdict.msn, 0);
    }
    if (verdict.kind != Verdict::Kind::read) return;
    const auto packets = packets_for(verdict.range.length, mtu_);
    for (std::uint32_t i = 0; i < packets; ++i)
      answer(rc_opcode(Operation::read_response, position_of(i, packets)), verdict.psn + i, Aeth::kNoCredits,
             verdict.msn, std::min(mtu_, verdict.range.length - i * mtu_));
  }
  void answer(Opcode opcode, Psn psn, std::uint8_t syndrome, std::uint32_t msn, std::uint32_t payload) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = psn;
    if (info(opcode).has(header::kAeth)) headers.aeth = Aeth{syndrome, msn};
    answers_.push_back({headers, payload});
  }
  void take(const Wire& wire) {
    const auto outcome = completer.receive(wire.headers, wire.payload);
    if (outcome.placement) {
      read_bytes += wire.payload;
      completer.placed(outcome.placement->message, Status::success);
    }
    collect();
  }
  void collect() {
    while (auto completion = completer.take_completion()) completions.push_back(*completion);
  }
  std::uint64_t read_bytes = 0;

 private:
  std::uint32_t mtu_;
  std::uint64_t next_id_ = 0;
  std::uint32_t placed_ = 0;
  std::deque<Wire> answers_;
};

TEST(Transport, EveryOperationSizeAndMtu) {
  for (std::uint8_t code = 1; code <= 5; ++code) {
    const auto mtu = mtu_bytes(code);
    for (const std::uint32_t length : {0u, 1u, mtu - 1, mtu, mtu + 1, 65536u}) {
      Connection c(mtu);
      c.post(SendOperation::send, length);
      c.post(SendOperation::send, length, 7);
      c.post(SendOperation::write, length);
      c.post(SendOperation::write, length, 7);
      c.post(SendOperation::read, length);
      c.run();
      ASSERT_EQ(c.completions.size(), 5u);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(c.completions[i].status, Status::success);
        EXPECT_EQ(c.completions[i].id, i);
      }
      EXPECT_EQ(c.received, std::vector<std::uint64_t>(4, length));
      EXPECT_EQ(c.read_bytes, length);
      EXPECT_EQ(c.responder.msn(), 5u);
    }
  }
}

TEST(Transport, LossNeitherLosesNorRepeats) {
  for (int seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Connection c(256);
    c.lose = [&] { return random() % 20 == 0; };
    std::uint64_t read = 0;
    std::vector<std::uint64_t> expected;
    for (int i = 0; i < 100; ++i) {
      const auto operation = static_cast<SendOperation>(1 + random() % 3);
      const std::uint32_t length = random() % 2000;
      c.post(operation, length);
      operation == SendOperation::read ? void(read += length) : expected.push_back(length);
    }
    c.run();
    ASSERT_EQ(c.completions.size(), 100u) << "seed " << seed;
    for (const auto& completion : c.completions) EXPECT_EQ(completion.status, Status::success);
    EXPECT_EQ(c.received, expected);
    EXPECT_EQ(c.read_bytes, read);
  }
}

TEST(Transport, ReadsInFlightAreBounded) {
  Connection c(1024);
  for (int i = 0; i < 3; ++i) c.post(SendOperation::read, 10);
  EXPECT_TRUE(c.requester.next_packet());
  EXPECT_TRUE(c.requester.next_packet());
  EXPECT_FALSE(c.requester.next_packet());
}

TEST(Transport, FenceWaitsForReads) {
  Connection c(1024);
  c.post(SendOperation::read, 10);
  c.window.post({.id = 1, .operation = SendOperation::send, .length = 1, .fence = true});
  EXPECT_TRUE(c.requester.next_packet());
  EXPECT_FALSE(c.requester.can_send());
}

TEST(Responder, OneNakAGap) {
  Connection c(256);
  c.post(SendOperation::write, 256 * 4);
  std::vector<RequestPacket> packets;
  while (auto packet = c.requester.next_packet()) packets.push_back(*packet);
  ASSERT_EQ(packets.size(), 4u);
  for (const int i : {0, 2, 3}) c.serve({packets[i].headers, packets[i].payload});
  EXPECT_EQ(c.naks, std::vector<std::uint8_t>{Aeth::kSequenceError});
}

// Packets behind a message without receive are dropped silently until that message comes again.
TEST(Responder, SilentBehindAnRnrNak) {
  Connection c(256);
  c.receive_posted = false;
  c.post(SendOperation::send, 600);
  c.post(SendOperation::write, 8);
  std::vector<RequestPacket> packets;
  while (auto packet = c.requester.next_packet()) packets.push_back(*packet);
  ASSERT_EQ(packets.size(), 4u);
  const auto validated = [&](std::size_t i) { return c.validate({packets[i].headers, packets[i].payload}).kind; };
  EXPECT_EQ(validated(0), Verdict::Kind::reject);
  for (int round = 0; round < 2; ++round)
    for (const std::size_t i : {1u, 2u, 3u}) EXPECT_EQ(validated(i), Verdict::Kind::drop) << i;
  EXPECT_EQ(validated(0), Verdict::Kind::reject);  // refused again: there is still no receive
  EXPECT_EQ(validated(1), Verdict::Kind::drop);
  c.receive_posted = true;
  for (const std::size_t i : {0u, 1u}) EXPECT_EQ(validated(i), Verdict::Kind::place) << i;
  // From now on a gap is reported.
  EXPECT_EQ(validated(3), Verdict::Kind::reject);
}

TEST(Requester, AsksForAnAnswerAtTheEndAndEvery256Packets) {
  Connection c(256);
  for (const auto operation : {SendOperation::write, SendOperation::send}) {
    c.post(operation, 600 * 256);
    std::vector<std::uint32_t> asked;
    std::uint32_t number = 0;
    while (auto packet = c.requester.next_packet()) {
      ++number;
      if (packet->headers.bth.ack_request) asked.push_back(number);
    }
    EXPECT_EQ(asked, (std::vector<std::uint32_t>{256, 512, 600}));
  }
}

// Only the last packet of a message that consumes a receive has the solicited event bit.
TEST(Requester, SolicitsOnlyWhatTakesAReceive) {
  struct Posted {
    SendOperation operation;
    std::optional<std::uint32_t> immediate;
    bool rouses;
  };
  for (const auto& [operation, immediate, rouses] :
       {Posted{SendOperation::send, {}, true}, Posted{SendOperation::send, 7, true},
        Posted{SendOperation::write, 7, true}, Posted{SendOperation::write, {}, false},
        Posted{SendOperation::read, {}, false}})
    for (const bool solicited : {false, true}) {
      Connection c(256);
      c.window.post({.id = 0,
                     .operation = operation,
                     .length = 600,
                     .rkey = {5},
                     .immediate = immediate,
                     .solicited = solicited});
      while (const auto packet = c.requester.next_packet())
        EXPECT_EQ(packet->headers.bth.solicited, solicited && rouses && info(packet->headers.bth.opcode).ends())
            << int(operation);
    }
}

TEST(Responder, RefusesWhatTheSpecificationRefuses) {
  const auto verdict = [](Opcode opcode, std::uint32_t payload, std::uint32_t length, auto&& change) {
    Connection c(256);
    change(c);
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = c.responder.expected_psn();
    if (info(opcode).has(header::kReth)) headers.reth = Reth{0x1000, {5}, length};
    return c.validate({headers, payload});
  };
  const auto nothing = [](Connection&) {};
  EXPECT_EQ(verdict(Opcode::send_middle, 256, 0, nothing).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::send_first, 255, 0, nothing).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::write_only, 8, 9, nothing).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::write_first, 256, 256, nothing).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::uc_send_only, 0, 0, nothing).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::write_only, 8, 8, [](auto& c) { c.granted = false; }).syndrome, Aeth::kRemoteAccessError);
  EXPECT_EQ(verdict(Opcode::send_only, 8, 8, [](auto& c) { c.receive_posted = false; }).syndrome, Aeth::kRnrNak | 3);
  const auto small = verdict(Opcode::send_only, 8, 8, [](auto& c) { c.receive_bytes = 7; });
  EXPECT_EQ(small.syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(small.receive_status, Status::local_length_error);
  EXPECT_EQ(verdict(Opcode::write_only, 0, 0, [](auto& c) { c.granted = false; }).kind, Verdict::Kind::place);
  EXPECT_EQ(verdict(Opcode::send_only_inv, 8, 8, nothing).kind, Verdict::Kind::place);
  const auto without = [](auto& c) { c.responder.start({.mtu = 256, .invalidate = false}, Psn(7)); };
  EXPECT_EQ(verdict(Opcode::send_only_inv, 8, 8, without).syndrome, Aeth::kInvalidRequest);
  EXPECT_EQ(verdict(Opcode::send_only, 8, 8, without).kind, Verdict::Kind::place);
}

// PSNs wrap: an atomic's PSN comes again while the old atomic with this PSN is still saved.
TEST(Responder, AnAtomicOfTheLastRoundIsNotAnswered) {
  Responder responder;
  responder.start({.mtu = 256, .access = kRights | remote_access::kAtomic, .max_dest_rd_atomic = 2}, Psn(7));
  const auto validate = [&](Opcode opcode, Psn psn, std::uint32_t length = 0) {
    Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.psn = psn;
    if (info(opcode).has(header::kReth)) headers.reth = Reth{0x1000, {5}, length};
    if (info(opcode).has(header::kAtomic)) headers.atomic = AtomicEth{0x1000, {5}, 1, 0};
    return responder.receive(headers, 0, {.access_granted = true});
  };
  constexpr std::uint32_t kMostPackets = (1u << 23) - 1;
  ASSERT_EQ(validate(Opcode::fetch_add, Psn(7)).kind, Verdict::Kind::atomic);
  responder.atomic_done(Psn(7), 111);
  for (const auto packets : {kMostPackets, kMostPackets, 1u})
    ASSERT_EQ(validate(Opcode::read_request, responder.expected_psn(), packets * 256).kind, Verdict::Kind::read);
  ASSERT_EQ(responder.expected_psn(), Psn(7));
  ASSERT_EQ(validate(Opcode::fetch_add, Psn(7)).kind, Verdict::Kind::atomic);
  EXPECT_EQ(validate(Opcode::fetch_add, Psn(7)).kind, Verdict::Kind::drop) << "it is not carried out yet";
  responder.atomic_done(Psn(7), 222);
  ASSERT_EQ(validate(Opcode::fetch_add, Psn(8)).kind, Verdict::Kind::atomic);
  const auto again = validate(Opcode::fetch_add, Psn(7));
  EXPECT_EQ(again.kind, Verdict::Kind::replay);
  EXPECT_EQ(again.original, 222u);
}

// Packets in flight cover less than half of all PSNs, but more than half counted from the start of a partly
// acknowledged message.
class HalfTheCircle : public ::testing::TestWithParam<std::pair<std::uint32_t, std::uint32_t>> {};
TEST_P(HalfTheCircle, IsReachedByTwoMessages) {
  const auto [packets, behind] = GetParam();
  Connection c(256);
  c.post(SendOperation::read, packets * 256);
  c.post(SendOperation::read, behind * 256);
  ASSERT_TRUE(c.requester.next_packet());
  ASSERT_FALSE(c.requester.next_packet());
  const auto answer = [&](std::uint32_t index) {
    Headers headers;
    headers.bth.opcode = rc_opcode(Operation::read_response, position_of(index, packets));
    headers.bth.psn = Psn(0xfffffd) + index;
    headers.aeth = Aeth{};
    const auto outcome = c.completer.receive(headers, 256);
    if (outcome.placement) c.completer.placed(outcome.placement->message, Status::success);
    return outcome.kind;
  };
  EXPECT_EQ(answer(0), ResponseOutcome::Kind::progress);
  ASSERT_TRUE(c.requester.next_packet());
  EXPECT_TRUE(c.requester.awaits_answer());
  EXPECT_EQ(answer(1), ResponseOutcome::Kind::progress);
  c.window.advance(c.window.messages.front(), packets - 3);
  EXPECT_FALSE(c.completer.take_completion());
  EXPECT_EQ(answer(packets - 1), ResponseOutcome::Kind::progress);
  EXPECT_EQ(c.completer.take_completion()->status, Status::success);
}
INSTANTIATE_TEST_SUITE_P(Of, HalfTheCircle,
                         ::testing::Values(std::pair{1u << 22, 1u << 22}, std::pair{(1u << 23) - 1, 1u}));

// The same for acknowledgements.
TEST(SendWindow, AcknowledgesBeyondHalfTheCircleFromAMessagesBegin) {
  constexpr std::uint32_t kPackets = (1u << 23) - 1, kAnswered = 1000;
  Connection c(256);
  c.post(SendOperation::write, kPackets * 256);
  c.post(SendOperation::write, 256);
  auto& window = c.window;
  for (std::uint32_t i = 0; i < kAnswered; ++i) ASSERT_TRUE(c.requester.next_packet());
  EXPECT_TRUE(window.acknowledge_before(Psn(0xfffffd) + kAnswered));
  // As if all packets of both had been sent.
  for (auto& message : window.messages) message.sent = message.packets;
  window.unsent_psn = window.next_psn;
  EXPECT_EQ(window.oldest_unanswered(), &window.messages.front());
  EXPECT_TRUE(window.acknowledge_before(window.next_psn));
  EXPECT_EQ(window.oldest_unanswered(), nullptr);
  EXPECT_EQ(window.oldest_psn(), window.next_psn);
}

TEST(SendWindow, NewCountsOfRetriesBeginAtOnce) {
  Connection c(256);
  c.post(SendOperation::write, 1);
  ASSERT_TRUE(c.requester.next_packet());
  EXPECT_TRUE(c.requester.ack_timeout(false));
  EXPECT_EQ(c.window.retries_left, 6);
  auto given = c.window.attributes;
  c.window.update(given);
  EXPECT_EQ(c.window.retries_left, 6) << "nothing is new of it";
  given.retry_count = 1;
  given.rnr_retry = 2;
  c.window.update(given);
  EXPECT_EQ(c.window.retries_left, 1);
  EXPECT_EQ(c.window.rnr_retries_left, 2);
}

TEST(Completer, BadResponses) {
  Connection c(256);
  c.post(SendOperation::read, 100);
  (void)c.requester.next_packet();
  Headers headers;
  headers.bth.opcode = Opcode::read_response_only;
  headers.bth.psn = Psn(0xfffffd);
  headers.aeth = Aeth{};
  EXPECT_EQ(c.completer.receive(headers, 99).kind, ResponseOutcome::Kind::failed);
  EXPECT_EQ(c.completer.take_completion()->status, Status::bad_response_error);
}

// Directly behind the READ, and further.
TEST(Completer, AnAckBeyondAReadTellsThatItsResponseWasLost) {
  for (const std::uint32_t behind : {1u, 2u}) {
    Connection c(256);
    c.post(SendOperation::read, 100);
    for (std::uint32_t i = 0; i < behind; ++i) c.post(SendOperation::write, 8);
    while (c.requester.next_packet()) {}
    Headers headers;
    headers.bth.opcode = Opcode::acknowledge;
    headers.bth.psn = Psn(0xfffffd) + behind;
    headers.aeth = Aeth{};
    const auto outcome = c.completer.receive(headers, 0);
    EXPECT_EQ(outcome.kind, ResponseOutcome::Kind::implied_sequence_error) << behind;
    EXPECT_TRUE(outcome.rewound);
  }
}

TEST(Completer, GhostsAreDropped) {
  Connection c(256);
  Headers headers;
  headers.bth.psn = Psn(77);
  headers.aeth = Aeth{};
  EXPECT_EQ(c.completer.receive(headers, 0).kind, ResponseOutcome::Kind::dropped);
}

// Soft-RoCE sends a NAK for the packets in flight behind the refused packet, each time.
TEST(Completer, SequenceNaksBehindAnRnrNakCostNoRetry) {
  Connection connection(256);
  for (int i = 0; i < 2; ++i) connection.post(SendOperation::send, 10);
  const auto first = connection.window.oldest_psn();
  Headers nak;
  nak.bth.opcode = Opcode::acknowledge;
  nak.bth.psn = first;
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(connection.requester.next_packet()->headers.bth.psn, first);
    connection.requester.next_packet();
    nak.aeth = Aeth{Aeth::kRnrNak | 3, 0};
    ASSERT_EQ(connection.completer.receive(nak, 0).kind, ResponseOutcome::Kind::rnr) << round;
    nak.aeth = Aeth{Aeth::kSequenceError, 0};
    const auto outcome = connection.completer.receive(nak, 0);
    EXPECT_EQ(outcome.kind, ResponseOutcome::Kind::duplicate);
    EXPECT_FALSE(outcome.rewound);
    EXPECT_FALSE(connection.requester.can_send()) << "the timer is what counts";
    connection.requester.rnr_timeout();
  }
  EXPECT_FALSE(connection.completer.take_completion());
}

TEST(Requester, GivesUpAfterItsRetries) {
  Connection c(256);
  c.post(SendOperation::write, 1);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(c.requester.next_packet());
    c.requester.ack_timeout(false);
  }
  EXPECT_EQ(c.completer.take_completion()->status, Status::transport_retry_exceeded);
}

}  // namespace
}  // namespace rnicsim::roce
