// SPDX-License-Identifier: Apache-2.0
// The communication manager: connecting, refusals, and ends of connections.
#include "model/cm/connection_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tests/unit/cm/cm_managers.h"

namespace rnicsim::cm::connection_manager_test {
namespace {

using enum EventKind;
using Events = std::vector<Told>;

constexpr Duration kWire = Pair::kWire, kActive = Pair::kActive, kPassive = Pair::kPassive;
constexpr Duration kTimewait = Pair::kTimewait;

// --- Connecting.

TEST_F(Managers, EachLearnsWhatTheOtherSays) {
  auto params = Pair::to(1, 0x15);
  params.starting_psn = 0xabcdef;
  params.responder_resources = 3;
  params.initiator_depth = 5;
  params.retry_count = 6;
  params.rnr_retry_count = 4;
  params.path_mtu = 3;
  params.srq = true;
  ASSERT_EQ(manager(0).connect(active, params), 0);
  pass();
  passive = pair.sides[1].last().id;
  const auto& request = last_message<ConnectRequest>(1);
  EXPECT_EQ(request.local_ca_guid, 0xa1u);
  EXPECT_EQ(request.primary.local_ack_timeout, Pair::kLifeTime + 1);
  EXPECT_TRUE(request.srq);
  const Connection& there = *manager(1).find(passive);
  EXPECT_EQ(there.peer.qpn, 0x15u);
  EXPECT_EQ(there.send_psn, 0xabcdefu);
  EXPECT_EQ(there.responder_resources, 5);  // each side's initiator is the other side's responder
  EXPECT_EQ(there.initiator_depth, 3);
  EXPECT_EQ(there.retry_count, 6);
  EXPECT_EQ(there.rnr_retry_count, 4);
  EXPECT_EQ(there.path_mtu, 3);
  EXPECT_EQ(there.service_id, Pair::kService);
  EXPECT_EQ(there.pkey, 0xffff);
  EXPECT_EQ(there.route.remote, Pair::gid(0));
  EXPECT_EQ(there.route.local, Pair::gid(1));
  ASSERT_EQ(manager(1).reply(passive, {.qpn = 0x22,
                                       .starting_psn = 0x123456,
                                       .responder_resources = 4,
                                       .initiator_depth = 2,
                                       .rnr_retry_count = 1,
                                       .private_data = {}}),
            0);
  pass();
  EXPECT_EQ(last_message<ConnectReply>(0).target_ack_delay, Pair::kAckDelay);
  const Connection& here = *manager(0).find(active);
  EXPECT_EQ(here.peer.qpn, 0x22u);
  EXPECT_EQ(here.peer.ca_guid, 0xb2u);
  EXPECT_EQ(here.send_psn, 0x123456u);
  EXPECT_EQ(here.responder_resources, 2);
  EXPECT_EQ(here.initiator_depth, 4);
  EXPECT_EQ(here.rnr_retry_count, 1);
  ASSERT_EQ(manager(0).ready(active), 0);
  pass();
  EXPECT_EQ(state(0), State::established);
  EXPECT_EQ(state(1), State::established);
  expect_an_end();
}

TEST_F(Managers, AnAnswerIsOfTheTransactionThatItAnswers) {
  connect();
  const std::uint64_t opening = pair.transactions["REQ"];
  EXPECT_EQ(pair.transactions["REP"], opening);
  EXPECT_EQ(pair.transactions["RTU"], opening);
  EXPECT_EQ(std::uint32_t(opening), active);
  ASSERT_EQ(manager(1).disconnect(passive), 0);
  pass();
  ASSERT_EQ(manager(0).confirm_disconnect(active), 0);
  pass();
  EXPECT_EQ(pair.transactions["DREP"], pair.transactions["DREQ"]);
  expect_an_end();
  begin_anew();
  resolve();
  EXPECT_EQ(manager(1).find(passive)->pkey, 0xffff);
  ASSERT_EQ(manager(1).answer_service(passive, ServiceIdStatus::valid, 1, 2), 0);
  pass();
  EXPECT_EQ(pair.transactions["SIDR_REP"], pair.transactions["SIDR_REQ"]);
  expect_an_end();
}

// Sum of two time codes; each code is twice the time of the previous code. The result is the larger code, plus one if
// the smaller code is at least half of the larger time (as in Linux' cm_ack_timeout).
TEST(AckTimeout, IsLongerThanTheWayThereAndBackAndTheDelay) {
  struct Row {
    TimeCode ack_delay, packet_life_time, timeout;
  };
  constexpr Row kRows[] = {
      {0, 0, 2},
      {0, 1, 2},
      {0, 2, 3},
      {0, 3, 4},  // packet life time alone
      // an ACK delay of about the same time
      {13, 14, 15},
      {14, 14, 16},
      {15, 14, 16},
      {16, 14, 17},
      {17, 14, 17},
      {25, 14, 25},
      {31, 0, 31},
      {31, 30, 31},
      {30, 30, 31},
      {29, 30, 31},
      {0, 31, 31},  // no larger code exists
  };
  for (const auto& [ack_delay, packet_life_time, timeout] : kRows)
    EXPECT_EQ(ack_timeout_of(ack_delay, packet_life_time), timeout) << +ack_delay << " " << +packet_life_time;
}

TEST_F(Managers, TheAckTimeoutKnowsThePeersDelay) {
  constexpr TimeCode kSlow = 25;
  request();
  manager(0).receive({.local = Pair::gid(0), .remote = Pair::gid(1)},
                     {1, ConnectReply{.local_id = passive, .remote_id = active, .target_ack_delay = kSlow}});
  pair.take();
  ASSERT_EQ(last(0), reply_received);
  EXPECT_EQ(manager(0).find(active)->ack_timeout, kSlow);
  ASSERT_EQ(manager(0).ready(active), 0);
  ASSERT_EQ(manager(0).disconnect(active), 0);
  pair.run_until(pair.now + 20 * kActive);
  const Duration answered = pair.sides[0].events.at(1).first;
  EXPECT_EQ(told(0).back(), (Told{disconnected, answered}));
  EXPECT_EQ(manager(0).next_deadline(), answered + duration_of(kSlow));
  expect_an_end();
}

// The answer would have an address that this host does not own.
TEST_F(Managers, ARequestForAnotherAddress) {
  ConnectRequest request{.local_id = 7, .service_id = Pair::kService, .local_qpn = 0x11};
  request.primary = {.local_gid = Pair::gid(0), .remote_gid = Pair::gid(2)};
  const Route route{.local = Pair::gid(1), .remote = Pair::gid(0)};
  manager(1).receive(route, {5, request});
  const auto answer = manager(1).next_message();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->route, route);
  const auto& reject = std::get<ConnectReject>(answer->envelope.message);
  EXPECT_EQ(reject.reason, RejectReason::invalid_gid);
  EXPECT_EQ(reject.subject, Subject::request);
  EXPECT_EQ(reject.remote_id, 7u);
  EXPECT_EQ(manager(1).next_event(), std::nullopt);
  EXPECT_EQ(manager(1).connections(), 0u);
}

TEST_F(Managers, NobodyListens) {
  manager(1).unlisten(Pair::kService);
  ASSERT_EQ(manager(0).connect(active, Pair::to(1)), 0);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(told(0), (Events{{rejected, 2 * kWire}}));
  EXPECT_EQ(last_message<ConnectReject>(0).reason, RejectReason::invalid_service_id);
  EXPECT_EQ(last_message<ConnectReject>(0).subject, Subject::request);
  EXPECT_EQ(state(0), State::idle);
  EXPECT_EQ(manager(1).connections(), 0u);
}

TEST_F(Managers, ARequestIsRejected) {
  request();
  const auto why = pattern(148);
  EXPECT_EQ(manager(1).reject(passive, RejectReason::consumer, why), 0);
  EXPECT_EQ(state(1), State::idle);
  pass();
  EXPECT_EQ(last(0), rejected);
  EXPECT_EQ(last_message<ConnectReject>(0).reason, RejectReason::consumer);
  EXPECT_TRUE(std::ranges::equal(last_message<ConnectReject>(0).private_data, why));
  EXPECT_EQ(state(0), State::idle);
  EXPECT_EQ(pair.sent["REQ"], 1u);
  expect_an_end();
}

TEST_F(Managers, AReplyIsRejected) {
  reply();
  EXPECT_EQ(manager(0).reject(active, RejectReason::consumer), 0);
  pass();
  EXPECT_EQ(last(1), rejected);
  EXPECT_EQ(last_message<ConnectReject>(1).subject, Subject::reply);
  EXPECT_EQ(state(1), State::idle);
  expect_an_end();
}

TEST_F(Managers, ARequestWhoseOwnerGoesIsRejected) {
  request();
  manager(1).destroy(passive);
  pass();
  EXPECT_EQ(last(0), rejected);
  EXPECT_EQ(last_message<ConnectReject>(0).reason, RejectReason::consumer);
  EXPECT_EQ(manager(1).connections(), 0u);
  expect_an_end();
}

TEST_F(Managers, AForgottenRequestComesAgain) {
  request();
  manager(1).forget(passive);
  EXPECT_EQ(manager(1).connections(), 0u);
  pass(kActive);
  EXPECT_EQ(told(1), (Events{{request_received, kWire}, {request_received, kActive + kWire}}));
  passive = pair.sides[1].last().id;
  expect_an_end();
}

TEST_F(Managers, WhoNoLongerConnectsSaysSo) {
  request();
  manager(0).destroy(active);
  EXPECT_EQ(manager(0).connections(), 0u);
  pass();
  EXPECT_EQ(last(1), rejected);
  const auto& reject = last_message<ConnectReject>(1);
  EXPECT_EQ(reject.reason, RejectReason::timeout);
  // The information names the connection (12.6.7.2): the sender does not know the peer's ID yet.
  EXPECT_EQ(reject.information_length, 8);
  EXPECT_EQ(reject.information[7], 0xa1);
  EXPECT_EQ(state(1), State::idle);
  EXPECT_EQ(manager(1).reply(passive, {}), EINVAL);
  expect_an_end();
}

TEST_F(Managers, WhoRepeatsARequestIsAskedToWait) {
  request();
  ASSERT_EQ(manager(1).promise(passive, 24), 0);
  pair.run_until(3 * kActive);
  EXPECT_EQ(pair.sent["REQ"], 2u);
  EXPECT_EQ(pair.sent["MRA"], 1u);
  // After the MRA the timeout is the time promised by the MRA plus the path's timeout.
  const Duration waits = duration_of(24) + duration_of(Pair::kLifeTime + 1);
  pair.run_until(kActive + 2 * kWire + waits - Duration{1});
  EXPECT_EQ(pair.sent["REQ"], 2u);
  pair.run_until(kActive + 2 * kWire + waits);
  EXPECT_EQ(pair.sent["REQ"], 3u);
  ASSERT_EQ(manager(1).reply(passive, {.qpn = 0x22, .private_data = {}}), 0);
  pass();
  EXPECT_EQ(last(0), reply_received);
  expect_an_end();
}

TEST_F(Managers, WhoRepeatsAReplyIsAskedToWait) {
  reply();
  const Duration replied = kSoon;
  ASSERT_EQ(manager(0).promise(active, 24), 0);
  pair.run_until(replied + 3 * kPassive);
  EXPECT_EQ(pair.sent["REP"], 2u);
  EXPECT_EQ(pair.sent["MRA"], 1u);
  ASSERT_EQ(manager(0).ready(active), 0);
  pass();
  EXPECT_EQ(last(1), established);
  expect_an_end();
}

TEST_F(Managers, AnMraIsForWhatWasSent) {
  const Route from_active{.local = Pair::gid(1), .remote = Pair::gid(0)};
  const MessageReceiptAck of_request{.local_id = active, .subject = Subject::request, .service_timeout = 24};
  reply();
  auto wrong = of_request;
  wrong.remote_id = passive;
  manager(1).receive(from_active, {1, wrong});
  EXPECT_EQ(manager(1).counters().unexpected, 1u);
  pair.run_until(kSoon + kPassive);
  EXPECT_EQ(pair.sent["REP"], 2u);  // as if the MRA had not arrived
  expect_an_end();
}

TEST_F(Managers, DataBeforeTheRtuEstablish) {
  pair.wire = [](std::size_t, const Envelope& envelope) {
    return Pair::Fate{.lost = name_of(envelope.message) == "RTU"};
  };
  reply();
  ASSERT_EQ(manager(0).ready(active), 0);
  pass();
  EXPECT_EQ(state(1), State::reply_sent);
  EXPECT_EQ(manager(1).establish(passive), 0);
  pair.take();
  EXPECT_EQ(last(1), established);
  EXPECT_EQ(manager(1).establish(passive), EISCONN);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(pair.sent["REP"], 1u);  // the REP has been answered
  pair.wire = nullptr;
  expect_an_end();
}

// --- States that a peer has forgotten.

TEST_F(Managers, ANewConnectionOfTheSameQpEndsTheOld) {
  connect();
  forget_events();
  // As after a restart of the peer: the same QP number with another ID.
  const ConnectionId again = manager(0).create();
  ASSERT_EQ(manager(0).connect(again, Pair::to(1)), 0);
  pass();
  EXPECT_EQ(pair.sides[0].events.at(0).second.kind, rejected);
  EXPECT_EQ(pair.sides[0].events.at(0).second.id, again);
  EXPECT_EQ(std::get<ConnectReject>(pair.sides[0].events.at(0).second.message).reason, RejectReason::stale_connection);
  EXPECT_EQ(last(0), disconnect_requested);
  EXPECT_EQ(pair.sides[0].last().id, active);
  EXPECT_EQ(manager(0).confirm_disconnect(active), 0);
  pass();
  EXPECT_EQ(last(1), disconnected);
  manager(0).destroy(again);
  expect_an_end();
}

TEST_F(Managers, AReplyFromAQpThatIsConnectedIsStale) {
  connect();
  const ConnectionId again = manager(0).create();
  ASSERT_EQ(manager(0).connect(again, Pair::to(1, 0x12)), 0);
  pass();
  const ConnectionId other = pair.sides[1].last().id;
  ASSERT_EQ(manager(1).reply(other, {.qpn = 0x22, .private_data = {}}), 0);
  pass();
  EXPECT_EQ(last(0), request_failed);
  EXPECT_EQ(pair.sides[0].last().id, again);
  EXPECT_EQ(manager(0).counters().stale, 1u);
  EXPECT_EQ(state(0), State::established);
  // The replying side gets the event at once, and not after all retransmissions.
  EXPECT_EQ(last(1), rejected);
  EXPECT_EQ(pair.sides[1].last().id, other);
  EXPECT_EQ(last_message<ConnectReject>(1).reason, RejectReason::stale_connection);
  manager(0).destroy(again);
  manager(1).destroy(other);
  expect_an_end();
}

// The peer's QP may have packets of an old connection in flight: its number must not be reused at once (IBTA vol 1,
// 12.9.7). Other reasons need no timewait.
TEST_F(Managers, OnlyAStaleRejectionIsFollowedByTimewait) {
  for (const bool stale : {true, false})
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      SCOPED_TRACE(side);
      side == 0 ? request() : reply();
      ConnectReject reject{.reason = stale ? RejectReason::stale_connection : RejectReason::consumer};
      reject.subject = side == 0 ? Subject::request : Subject::reply;
      reject.local_id = side == 0 ? 0 : active;
      reject.remote_id = side == 0 ? active : passive;
      const ConnectionId id = reject.remote_id;
      manager(side).receive({.local = Pair::gid(side), .remote = Pair::gid(1 - side)}, {1, reject});
      pair.take();
      EXPECT_EQ(last(side), rejected);
      EXPECT_EQ(manager(side).find(id)->state, stale ? State::timewait : State::idle);
      const Duration rejected_at = pair.now;
      pair.run_until(rejected_at + kTimewait);
      const auto over = std::ranges::count(told(side), Told{timewait_over, rejected_at + kTimewait});
      EXPECT_EQ(over, stale ? 1 : 0);
      EXPECT_EQ(manager(side).find(id)->state, State::idle);
      expect_an_end();
      forget_events();
      active = manager(0).create();
    }
}

TEST_F(Managers, TheQpOfAConnectionThatEndsConnectsAnew) {
  connect();
  ASSERT_EQ(manager(0).disconnect(active), 0);
  pass();
  ASSERT_EQ(manager(1).confirm_disconnect(passive), 0);
  pass();
  ASSERT_EQ(state(0), State::timewait);
  ASSERT_EQ(state(1), State::timewait);
  const ConnectionId again = manager(0).create();
  ASSERT_EQ(manager(0).connect(again, Pair::to(1)), 0);
  pass();
  ASSERT_EQ(last(1), request_received);
  const ConnectionId accepted = pair.sides[1].last().id;
  ASSERT_EQ(manager(1).reply(accepted, {.qpn = 0x22, .private_data = {}}), 0);
  pass();
  ASSERT_EQ(last(0), reply_received);
  // The end of the first connection's timewait does not affect the new connection of these QPs.
  pass(2 * kTimewait);
  ASSERT_EQ(manager(0).ready(again), 0);
  const ConnectionId third = manager(0).create();
  ASSERT_EQ(manager(0).connect(third, Pair::to(1)), 0);
  pass();
  EXPECT_EQ(manager(1).counters().stale, 1u);
  for (const ConnectionId id : {again, third}) manager(0).destroy(id);
  manager(1).destroy(accepted);
  expect_an_end();
}

TEST_F(Managers, ARequestRepeatedInTimewaitIsStale) {
  connect();
  ASSERT_EQ(manager(0).disconnect(active), 0);
  pass();
  ASSERT_EQ(manager(1).confirm_disconnect(passive), 0);
  pass();
  const Connection& there = *manager(1).find(passive);
  ConnectRequest request;
  request.local_id = active;
  request.local_ca_guid = 0xa1;
  request.local_qpn = 0x11;
  request.service_id = Pair::kService;
  manager(1).receive({.local = Pair::gid(1), .remote = Pair::gid(0)}, {there.transaction_id, request});
  const auto answer = manager(1).next_message();
  ASSERT_TRUE(answer);
  const auto& reject = std::get<ConnectReject>(answer->envelope.message);
  EXPECT_EQ(reject.reason, RejectReason::stale_connection);
  EXPECT_EQ(reject.remote_id, active);
  EXPECT_EQ(manager(1).next_event(), std::nullopt);
  expect_an_end();
}

TEST_F(Managers, ARejectionThatWasOvertakenSaysNothing) {
  // There is no listener when the first REQ arrives. Its REJ is delayed until the second REQ has connected.
  manager(1).unlisten(Pair::kService);
  pair.wire = [](std::size_t, const Envelope& envelope) {
    return Pair::Fate{.late = name_of(envelope.message) == "REJ" ? 2 * kActive : Duration{}};
  };
  ASSERT_EQ(manager(0).connect(active, Pair::to(1)), 0);
  pass();
  manager(1).listen(Pair::kService);
  pass(kActive);
  ASSERT_EQ(last(1), request_received);
  passive = pair.sides[1].last().id;
  ASSERT_EQ(manager(1).reply(passive, {.qpn = 0x22, .private_data = {}}), 0);
  pass();
  ASSERT_EQ(manager(0).ready(active), 0);
  pass(2 * kActive);
  EXPECT_EQ(last(0), reply_received);
  EXPECT_EQ(state(0), State::established);
  EXPECT_EQ(manager(0).counters().unexpected, 1u);
  pair.wire = nullptr;
  expect_an_end();
}

// --- Disconnecting.

TEST_F(Managers, EitherSideDisconnects) {
  for (const std::size_t closer : {std::size_t{0}, std::size_t{1}}) {
    begin_anew();
    connect();
    forget_events();
    const ConnectionId ids[] = {active, passive};
    const Duration start = pair.now;
    ASSERT_EQ(manager(closer).disconnect(ids[closer]), 0);
    pass();
    EXPECT_EQ(state(1 - closer), State::disconnect_received);
    const Duration confirmed = pair.now;
    ASSERT_EQ(manager(1 - closer).confirm_disconnect(ids[1 - closer]), 0);
    pair.run_until(start + 2 * kTimewait);
    EXPECT_EQ(told(1 - closer),
              (Events{{disconnect_requested, start + kWire}, {timewait_over, confirmed + kTimewait}}));
    EXPECT_EQ(told(closer),
              (Events{{disconnected, confirmed + kWire}, {timewait_over, confirmed + kWire + kTimewait}}));
    EXPECT_EQ(state(0), State::idle);
    EXPECT_EQ(state(1), State::idle);
    expect_an_end();
  }
}

TEST_F(Managers, BothDisconnectAtOnce) {
  connect();
  forget_events();
  const Duration start = pair.now;
  ASSERT_EQ(manager(0).disconnect(active), 0);
  ASSERT_EQ(manager(1).disconnect(passive), 0);
  pass();
  EXPECT_EQ(told(0), (Events{{disconnect_requested, start + kWire}}));
  EXPECT_EQ(told(1), told(0));
  pass(2 * kActive);  // neither side retransmits
  const Duration confirmed = pair.now;
  EXPECT_EQ(manager(0).confirm_disconnect(active), 0);
  EXPECT_EQ(manager(1).confirm_disconnect(passive), 0);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(pair.sent["DREQ"], 2u);
  EXPECT_EQ(told(0).back(), (Told{timewait_over, confirmed + kTimewait}));
  EXPECT_EQ(told(1).back(), (Told{timewait_over, confirmed + kTimewait}));
  expect_an_end();
}

TEST_F(Managers, ADisconnectOvertakesTheRtu) {
  pair.wire = [](std::size_t, const Envelope& envelope) {
    return Pair::Fate{.lost = name_of(envelope.message) == "RTU"};
  };
  reply();
  ASSERT_EQ(manager(0).ready(active), 0);
  ASSERT_EQ(manager(0).disconnect(active), 0);
  pass();
  EXPECT_EQ(last(1), disconnect_requested);
  EXPECT_EQ(manager(1).confirm_disconnect(passive), 0);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(pair.sent["REP"], 1u);
  EXPECT_EQ(told(0).back().kind, timewait_over);
  expect_an_end();
}

TEST_F(Managers, WhoGoesDisconnects) {
  connect();
  manager(0).destroy(active);
  EXPECT_EQ(manager(0).find(active), nullptr);
  EXPECT_EQ(manager(0).connections(), 1u);  // in timewait
  pass();
  EXPECT_EQ(last(1), disconnect_requested);
  manager(1).destroy(passive);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(pair.sent["DREP"], 1u);
  EXPECT_EQ(pair.sides[0].events.size(), 1u);  // no event: the owner has destroyed the connection
  expect_an_end();
}

TEST_F(Managers, ADreqForAnotherQpIsNone) {
  connect();
  forget_events();
  manager(1).receive({.local = Pair::gid(1), .remote = Pair::gid(0)},
                     {1, DisconnectRequest{.local_id = active, .remote_id = passive, .remote_qpn = 0x23}});
  EXPECT_EQ(manager(1).next_event(), std::nullopt);
  EXPECT_EQ(manager(1).next_message(), std::nullopt);
  EXPECT_EQ(state(1), State::established);
  expect_an_end();
}

TEST_F(Managers, ADreqOfNobodysConnectionIsConfirmed) {
  manager(1).receive({.local = Pair::gid(1), .remote = Pair::gid(0)},
                     {1, DisconnectRequest{.local_id = 7, .remote_id = 8, .remote_qpn = 9}});
  const auto answer = manager(1).next_message();
  ASSERT_TRUE(answer);
  const auto& reply = std::get<DisconnectReply>(answer->envelope.message);
  EXPECT_EQ(reply.local_id, 8u);
  EXPECT_EQ(reply.remote_id, 7u);
  EXPECT_EQ(answer->route.remote, Pair::gid(0));
}

TEST_F(Managers, NoAlternatePathIsLoaded) {
  connect();
  manager(1).receive({.local = Pair::gid(1), .remote = Pair::gid(0)},
                     {1, LoadAlternatePath{.local_id = active, .remote_id = passive}});
  const auto answer = manager(1).next_message();
  ASSERT_TRUE(answer);
  const auto& response = std::get<AlternatePathResponse>(answer->envelope.message);
  EXPECT_EQ(response.local_id, passive);
  EXPECT_EQ(response.remote_id, active);
  EXPECT_EQ(response.status, AlternatePathResponse::kNotSupported);
  EXPECT_EQ(state(1), State::established);
  expect_an_end();
}

// --- Service IDs.

TEST_F(Managers, AServiceIsResolved) {
  auto params = Pair::service_of(1);
  const auto hello = pattern(216), welcome = pattern(136);
  params.private_data = hello;
  ASSERT_EQ(manager(0).resolve_service(active, params), 0);
  pass();
  EXPECT_TRUE(std::ranges::equal(last_message<ServiceIdRequest>(1).private_data, hello));
  passive = pair.sides[1].last().id;
  ASSERT_EQ(manager(1).answer_service(passive, ServiceIdStatus::valid, 0x33, 0x44, welcome), 0);
  pass();
  EXPECT_EQ(last(0), service_answered);
  const auto& reply = last_message<ServiceIdReply>(0);
  EXPECT_EQ(reply.status, ServiceIdStatus::valid);
  EXPECT_EQ(reply.service_id, Pair::kService);
  EXPECT_EQ(reply.qpn, 0x33u);
  EXPECT_EQ(reply.qkey, 0x44u);
  EXPECT_TRUE(std::ranges::equal(reply.private_data, welcome));
  EXPECT_EQ(state(0), State::idle);
  EXPECT_EQ(state(1), State::idle);
  expect_an_end();
}

TEST_F(Managers, AServiceIsRefused) {
  resolve();
  ASSERT_EQ(manager(1).answer_service(passive, ServiceIdStatus::rejected, 0x33, 0x44), 0);
  pass();
  EXPECT_EQ(last_message<ServiceIdReply>(0).status, ServiceIdStatus::rejected);
  EXPECT_EQ(last_message<ServiceIdReply>(0).qpn, 0u);
  EXPECT_EQ(last_message<ServiceIdReply>(0).qkey, 0u);
  expect_an_end();
}

TEST_F(Managers, AServiceRequestWhoseOwnerGoesIsRefused) {
  resolve();
  manager(1).destroy(passive);
  pass();
  EXPECT_EQ(last_message<ServiceIdReply>(0).status, ServiceIdStatus::rejected);
  expect_an_end();
}

TEST_F(Managers, AServiceIsNotThere) {
  manager(1).unlisten(Pair::kService);
  ASSERT_EQ(manager(0).resolve_service(active, Pair::service_of(1)), 0);
  EXPECT_TRUE(pair.run_out());
  EXPECT_EQ(told(0), (Events{{service_answered, 2 * kWire}}));
  EXPECT_EQ(last_message<ServiceIdReply>(0).status, ServiceIdStatus::not_supported);
  EXPECT_EQ(manager(1).connections(), 0u);
}

TEST_F(Managers, ARepeatedServiceRequestIsOne) {
  resolve();
  pass(3 * kPassive);
  EXPECT_EQ(pair.sent["SIDR_REQ"], 4u);
  EXPECT_EQ(pair.sides[1].events.size(), 1u);
  EXPECT_EQ(manager(1).counters().duplicates, 3u);
  expect_an_end();
}

// --- Messages of unknown connections.

TEST_F(Managers, NumbersOfNobodyAreAnsweredOrIgnored) {
  const Route route{.local = Pair::gid(1), .remote = Pair::gid(0)};
  const Message messages[] = {MessageReceiptAck{.remote_id = 5},
                              ConnectReject{.remote_id = 5},
                              ConnectReject{.local_id = 6, .reason = RejectReason::timeout},
                              ConnectReply{.local_id = 6, .remote_id = 5},
                              ReadyToUse{.local_id = 6, .remote_id = 5},
                              DisconnectReply{.local_id = 6, .remote_id = 5},
                              ServiceIdReply{.request_id = 5},
                              AlternatePathResponse{.remote_id = 5}};
  for (const Message& message : messages) {
    manager(1).receive(route, {1, message});
    EXPECT_EQ(manager(1).next_message(), std::nullopt) << cm::name_of(message);
    EXPECT_EQ(manager(1).next_event(), std::nullopt) << cm::name_of(message);
  }
  EXPECT_EQ(manager(1).counters().unexpected, std::size(messages));
  EXPECT_EQ(manager(1).connections(), 0u);
}

}  // namespace
}  // namespace rnicsim::cm::connection_manager_test
