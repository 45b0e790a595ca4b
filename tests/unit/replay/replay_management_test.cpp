// SPDX-License-Identifier: Apache-2.0
// The check of connection management. Two managers over a wire that loses, repeats and delays messages: the check
// agrees at either end. Each deviation of a port is one difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sim/replay/cm/cm_fields.h"
#include "sim/replay/cm/cm_validator.h"
#include "tests/unit/cm/cm_pair.h"

namespace rnicsim::sim::replay {
namespace {

using cm::EventKind;
using cm::Pair;

constexpr Duration kSecond{1'000'000'000'000};
constexpr Duration kSoon{1'000'000'000};

// h0 connects to h1. A port's capture has the messages that it sends and receives.
class Management : public testing::Test {
 protected:
  Management() {
    pair.wire = [this](std::size_t from, const cm::Envelope& envelope) {
      const auto fate = spoil ? spoil(from, envelope) : Pair::Fate{};
      const auto arrival = pair.now + Pair::kWire + fate.late;
      record(from, true, pair.now, envelope);
      if (!fate.lost) record(1 - from, false, arrival, envelope);
      if (fate.copy) record(1 - from, false, arrival + *fate.copy, envelope);
      return fate;
    };
    pair.manager(1).listen(Pair::kService);
    for (std::size_t side = 0; side < 2; ++side)
      pair.sides[side].program = [=, this](const cm::Event& event) { program(side, event); };
  }

  void record(std::size_t side, bool sent, Duration time, const cm::Envelope& envelope) {
    captured[side].emplace(time, CmMessage{.sent = sent, .peer = Pair::gid(1 - side), .envelope = envelope});
  }
  CmTraffic traffic(std::size_t side) const {
    CmTraffic traffic;
    traffic.end = pair.now;
    for (const auto& [time, message] : captured[side]) {
      traffic.messages.push_back(message);
      traffic.messages.back().time = time;
      traffic.messages.back().frame = static_cast<std::uint32_t>(traffic.messages.size());
    }
    return traffic;
  }

  virtual void program(std::size_t side, const cm::Event& event) {
    auto& manager = pair.manager(side);
    if (event.kind == EventKind::request_received) later([=, &manager, this] { accept(manager, event.id); });
    if (event.kind == EventKind::reply_received) later([=, &manager, this] { manager.ready(event.id, words); });
    if (event.kind == EventKind::disconnect_requested) later([=, &manager] { manager.confirm_disconnect(event.id); });
    if (event.kind == EventKind::service_requested)
      later([=, &manager, this] { manager.answer_service(event.id, cm::ServiceIdStatus::valid, 5, 6, words); });
  }
  void accept(cm::ConnectionManager& manager, cm::ConnectionId id) {
    manager.reply(id, {.qpn = server_qpn.value_or(0x10000 + (id & 0xffff)), .starting_psn = 7, .private_data = words});
    passive = id;
  }
  void later(std::function<void()> action) { pair.at(pair.now + think, std::move(action)); }

  void connect(std::uint32_t qpn = 0x11) {
    active = pair.manager(0).create();
    auto params = Pair::to(1, qpn);
    params.responder_resources = params.initiator_depth = 4;
    params.private_data = words;
    ASSERT_EQ(pair.manager(0).connect(active, params), 0);
    pair.run_until(pair.now + 100 * kSecond);
  }
  void connect_and_disconnect() {
    connect();
    ASSERT_EQ(pair.manager(0).disconnect(active), 0);
    pair.run_until(pair.now + 100 * kSecond);
  }
  void resolve() {
    active = pair.manager(0).create();
    ASSERT_EQ(pair.manager(0).resolve_service(active, Pair::service_of(1)), 0);
    pair.run_until(pair.now + 100 * kSecond);
  }

  static Comparison validated(const CmTraffic& traffic, std::size_t side) {
    return validate_management(traffic, Pair::gid(side));
  }
  // The check finds no difference at either end.
  void expect_same() {
    for (std::size_t side = 0; side < 2; ++side) {
      const auto given = traffic(side);
      const auto result = validated(given, side);
      const auto sent = std::ranges::count(given.messages, true, &CmMessage::sent);
      for (const auto& difference : result.differences)
        ADD_FAILURE() << "h" << side << " message " << difference.frame << ": ours "
                      << difference.ours.value_or("nothing") << ", theirs " << difference.theirs.value_or("nothing")
                      << (difference.fields.empty() ? "" : ", " + difference.fields[0].field);
      EXPECT_GT(sent, 0) << side;
      EXPECT_EQ(result.matched, static_cast<std::uint64_t>(sent)) << side;
    }
  }
  template <class M>
  static CmMessage& of_kind(CmTraffic& traffic, bool sent = true) {
    return *std::ranges::find_if(traffic.messages, [&](const CmMessage& each) {
      return each.sent == sent && std::holds_alternative<M>(each.envelope.message);
    });
  }
  template <class M>
  static M& message(CmTraffic& traffic, bool sent = true) {
    return std::get<M>(of_kind<M>(traffic, sent).envelope.message);
  }
  static void expect_field(const CmTraffic& traffic, std::size_t side, const char* field) {
    const auto result = validated(traffic, side);
    ASSERT_EQ(result.differences.size(), 1u) << field;
    EXPECT_EQ(result.differences[0].subject, Subject::management);
    ASSERT_EQ(result.differences[0].fields.size(), 1u) << field;
    EXPECT_EQ(result.differences[0].fields[0].field, field);
  }
  static std::uint64_t used(const Comparison& result, Equivalence freedom) {
    return result.equivalences[static_cast<std::size_t>(freedom)];
  }

  Pair pair;
  std::function<Pair::Fate(std::size_t, const cm::Envelope&)> spoil;
  Duration think = kSoon;
  std::optional<std::uint32_t> server_qpn;
  std::vector<std::uint8_t> words{1, 2, 3};
  std::array<std::multimap<Duration, CmMessage>, 2> captured;
  cm::ConnectionId active = 0, passive = 0;
};

TEST_F(Management, AConnectionFromItsBeginToItsEnd) {
  connect_and_disconnect();
  EXPECT_EQ(traffic(0).messages.size(), 5u);
  expect_same();
}

TEST_F(Management, SeveralAtATime) {
  std::vector<cm::ConnectionId> ids;
  for (std::uint32_t qpn = 1; qpn <= 3; ++qpn) {
    ids.push_back(pair.manager(0).create());
    ASSERT_EQ(pair.manager(0).connect(ids.back(), Pair::to(1, qpn)), 0);
  }
  pair.run_until(30 * kSecond);
  for (const auto id : ids) pair.manager(0).disconnect(id);
  pair.run_until(60 * kSecond);
  connect_and_disconnect();
  expect_same();
}

TEST_F(Management, ARepFromAQueuePairThatIsAlreadyConnected) {
  connect();
  // The server's host restarted and uses the same queue pair number.
  server_qpn = pair.manager(1).find(passive)->local_qpn;
  pair.manager(1).forget(passive);
  connect(0x12);
  EXPECT_EQ(pair.sent["REJ"], 1u);
  expect_same();
}

TEST_F(Management, TheServerDisconnects) {
  connect();
  ASSERT_EQ(pair.manager(1).disconnect(passive), 0);
  pair.run_until(pair.now + 100 * kSecond);
  expect_same();
}

TEST_F(Management, BothDisconnectAtOnce) {
  connect();
  ASSERT_EQ(pair.manager(0).disconnect(active), 0);
  ASSERT_EQ(pair.manager(1).disconnect(passive), 0);
  pair.run_until(pair.now + 100 * kSecond);
  expect_same();
}

TEST_F(Management, AService) {
  resolve();
  expect_same();
}

TEST_F(Management, NobodyListens) {
  pair.manager(1).unlisten(Pair::kService);
  connect();
  resolve();
  expect_same();
  // Later there is a listener.
  pair.manager(1).listen(Pair::kService);
  connect_and_disconnect();
  resolve();
  expect_same();
}

TEST_F(Management, TheClientGoesBeforeItsAnswer) {
  spoil = [](std::size_t, const cm::Envelope& envelope) {
    return Pair::Fate{.lost = std::holds_alternative<cm::ConnectReply>(envelope.message)};
  };
  active = pair.manager(0).create();
  ASSERT_EQ(pair.manager(0).connect(active, Pair::to(1)), 0);
  pair.at(kSecond, [this] { pair.manager(0).destroy(active); });
  pair.run_until(60 * kSecond);
  expect_same();
}

class Rejected : public Management {
 protected:
  void program(std::size_t side, const cm::Event& event) override {
    if (event.kind == EventKind::request_received)
      later([=, this] { pair.manager(side).reject(event.id, cm::RejectReason::consumer, words); });
  }
};

TEST_F(Rejected, ByTheServer) {
  connect();
  expect_same();
  // Linux sends no own ID in this case.
  auto given = traffic(1);
  message<cm::ConnectReject>(given).local_id = 0;
  const auto result = validated(given, 1);
  EXPECT_TRUE(result.differences.empty());
  EXPECT_EQ(used(result, Equivalence::reject_id), 1u);
}

TEST_F(Rejected, ForAReasonThatDoesNotHold) {
  connect();
  auto given = traffic(1);
  message<cm::ConnectReject>(given).reason = cm::RejectReason::stale_connection;
  const auto result = validated(given, 1);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_FALSE(result.differences[0].ours);
}

TEST_F(Management, AnotherReasonOrSubjectThanTheRequestHas) {
  pair.manager(1).unlisten(Pair::kService);
  connect();
  expect_same();
  auto given = traffic(1);
  message<cm::ConnectReject>(given).subject = cm::Subject::other;
  expect_field(given, 1, "subject");
  given = traffic(1);
  message<cm::ConnectReject>(given).remote_id ^= 4;
  expect_field(given, 1, "remote_id");
  given = traffic(1);
  message<cm::ConnectReject>(given).private_data[3] = 9;
  expect_field(given, 1, "private_data");
  given = traffic(1);
  message<cm::ConnectReject>(given).reason = cm::RejectReason::stale_connection;
  EXPECT_EQ(validated(given, 1).differences.size(), 1u);
}

TEST_F(Management, AStaleConnection) {
  connect();
  // The client's host restarted and uses the same queue pair number.
  pair.manager(0).forget(active);
  connect();
  EXPECT_EQ(pair.sent["REJ"], 1u);
  expect_same();
}

class Busy : public Management {
 protected:
  void program(std::size_t side, const cm::Event& event) override {
    if (event.kind == EventKind::request_received) pair.manager(side).promise(event.id, 22);
    Management::program(side, event);
  }
};

TEST_F(Busy, SaysSo) {
  think = 15 * kSecond;
  connect();
  EXPECT_GE(pair.sent["MRA"], 1u);
  expect_same();
  // An MRA is optional.
  auto given = traffic(1);
  std::erase_if(given.messages, [](const CmMessage& each) {
    return std::holds_alternative<cm::MessageReceiptAck>(each.envelope.message);
  });
  EXPECT_TRUE(validated(given, 1).differences.empty());
}

// --- A wire with a fault for one kind of message.

struct Fault {
  const char* name;
  Pair::Fate fate;
  unsigned times;
};
const Fault kFaults[] = {{"lost_once", {.lost = true}, 1},   {"lost_often", {.lost = true}, 5},
                         {"twice", {.copy = kSoon}, 1},      {"twice_much_later", {.copy = 3 * kSecond}, 1},
                         {"late", {.late = 5 * kSecond}, 1}, {"later_than_its_repeat", {.late = 8 * kSecond}, 1}};

class Faults : public Management, public testing::WithParamInterface<std::tuple<const char*, Fault>> {
 protected:
  void SetUp() override {
    const auto& [kind, fault] = GetParam();
    spoil = [kind = std::string(kind), fault = fault, count = 0u](std::size_t, const cm::Envelope& envelope) mutable {
      return cm::name_of(envelope.message) == kind && count++ < fault.times ? fault.fate : Pair::Fate{};
    };
  }
};

TEST_P(Faults, AreBorneAlike) {
  if (std::string(std::get<0>(GetParam())).starts_with("SIDR"))
    resolve();
  else
    connect_and_disconnect();
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(OfEachMessage, Faults,
                         testing::Combine(testing::Values("REQ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"),
                                          testing::ValuesIn(kFaults)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
                         });

// Many connections of both sides, with random losses, delays and repetitions.
class Walk : public Management, public testing::WithParamInterface<unsigned> {
 protected:
  bool one_in(unsigned n) { return random() % n == 0; }
  Duration up_to(std::int64_t seconds) { return {std::int64_t(random() % 1000) * seconds * 1'000'000'000}; }

  std::mt19937 random{GetParam()};
};

TEST_P(Walk, AgreesAtBothEnds) {
  spoil = [this](std::size_t, const cm::Envelope&) {
    Pair::Fate fate{.lost = one_in(5), .late = one_in(3) ? up_to(13) : Duration{}};
    if (one_in(5)) fate.copy = up_to(13);
    return fate;
  };
  for (std::uint32_t qpn = 1; qpn <= 200; ++qpn) {
    const std::size_t from = qpn % 2;
    auto& manager = pair.manager(from);
    manager.listen(Pair::kService);
    if (one_in(6)) pair.manager(1 - from).unlisten(Pair::kService);
    const auto id = manager.create();
    ASSERT_EQ(manager.connect(id, Pair::to(1 - from, 0x100 + qpn)), 0);
    pair.run_until(pair.now + up_to(20));
    if (one_in(2)) manager.disconnect(id);
    if (one_in(3)) pair.manager(1 - from).disconnect(passive);
    if (one_in(3)) manager.resolve_service(manager.create(), Pair::service_of(1 - from));
    pair.take();
  }
  pair.run_until(pair.now + 1000 * kSecond);
  for (const auto* kind : {"REQ", "REP", "RTU", "REJ", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP"})
    EXPECT_GT(pair.sent[kind], 10u) << kind;
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Walk, testing::Range(1u, 6u));

// --- Deviations of a port.

TEST_F(Management, FieldsThatFollowFromTheRequest) {
  connect_and_disconnect();
  const auto server_with = [&](auto change, const char* field) {
    auto given = traffic(1);
    change(given);
    expect_field(given, 1, field);
  };
  const auto client_with = [&](auto change, const char* field) {
    auto given = traffic(0);
    change(given);
    expect_field(given, 0, field);
  };
  server_with([](auto& given) { message<cm::ConnectReply>(given).remote_id ^= 1; }, "remote_id");
  server_with([](auto& given) { message<cm::ConnectReply>(given).responder_resources = 5; }, "responder_resources");
  server_with([](auto& given) { message<cm::ConnectReply>(given).initiator_depth = 5; }, "initiator_depth");
  server_with([](auto& given) { message<cm::ConnectReply>(given).failover_accepted = 1; }, "failover_accepted");
  server_with([](auto& given) { of_kind<cm::ConnectReply>(given).envelope.transaction_id ^= 1; }, "transaction_id");
  server_with([](auto& given) { message<cm::DisconnectReply>(given).local_id ^= 1; }, "local_id");
  server_with([](auto& given) { message<cm::DisconnectReply>(given).remote_id ^= 1; }, "remote_id");
  server_with([](auto& given) { of_kind<cm::DisconnectReply>(given).envelope.transaction_id ^= 1; }, "transaction_id");
  client_with([](auto& given) { message<cm::ReadyToUse>(given).local_id ^= 1; }, "local_id");
  client_with([](auto& given) { message<cm::ReadyToUse>(given).remote_id ^= 1; }, "remote_id");
  client_with([](auto& given) { of_kind<cm::ReadyToUse>(given).envelope.transaction_id ^= 1; }, "transaction_id");
  client_with([](auto& given) { message<cm::DisconnectRequest>(given).remote_qpn ^= 1; }, "remote_qpn");
  client_with([](auto& given) { message<cm::DisconnectRequest>(given).remote_id ^= 1; }, "remote_id");
}

TEST_F(Management, FieldsThatAHostIsFreeIn) {
  connect_and_disconnect();
  auto given = traffic(1);
  auto& reply = message<cm::ConnectReply>(given);
  reply.local_qpn ^= 0x100;
  reply.starting_psn ^= 0x10;
  reply.responder_resources = 0;
  reply.initiator_depth = 4;
  reply.rnr_retry_count = 3;
  reply.private_data[9] = 1;
  reply.local_ca_guid ^= 2;
  reply.target_ack_delay = 9;
  message<cm::DisconnectRequest>(given, false).remote_qpn ^= 0x100;  // names another QP of the peer
  message<cm::DisconnectReply>(given).private_data[0] = 1;
  EXPECT_TRUE(validated(given, 1).differences.empty());
}

TEST_F(Management, FieldsOfAService) {
  resolve();
  auto given = traffic(1);
  message<cm::ServiceIdReply>(given).request_id ^= 1;
  expect_field(given, 1, "request_id");
  given = traffic(1);
  message<cm::ServiceIdReply>(given).service_id ^= 1;
  expect_field(given, 1, "service_id");
  given = traffic(1);
  message<cm::ServiceIdReply>(given).status = cm::ServiceIdStatus::rejected;
  auto result = validated(given, 1);
  ASSERT_EQ(result.differences.size(), 1u);  // two fields: the refusal, and the QP number
  EXPECT_EQ(result.differences[0].fields.size(), 2u);
}

TEST_F(Management, OneThatIsMissingOrSurplus) {
  connect_and_disconnect();
  resolve();
  const auto missing = [&](std::size_t side, const char* kind) {
    auto given = traffic(side);
    std::erase_if(given.messages,
                  [&](const CmMessage& each) { return each.sent && cm::name_of(each.envelope.message) == kind; });
    return validated(given, side).differences;
  };
  for (const auto& [side, kind] : {std::pair{0u, "RTU"}, {1u, "DREP"}, {1u, "SIDR_REP"}}) {
    const auto found = missing(side, kind);
    ASSERT_EQ(found.size(), 1u) << kind;
    EXPECT_TRUE(found[0].ours) << kind;
    EXPECT_FALSE(found[0].theirs) << kind;
  }
  const auto found = missing(1, "REP");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].frame, 1u);  // the REQ
  EXPECT_FALSE(found[0].theirs);
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t i = 0; i < traffic(side).messages.size(); ++i) {
      auto given = traffic(side);
      if (!given.messages[i].sent) continue;
      given.messages.insert(given.messages.begin() + static_cast<std::ptrdiff_t>(i), given.messages[i]);
      EXPECT_EQ(validated(given, side).differences.size(), 1u) << side << ' ' << i;
    }
}

TEST_F(Management, WhatTheCapturesEndLeavesOpenIsNotChecked) {
  connect();
  const auto begun = traffic(1);
  const auto& request = begun.messages.front();
  CmTraffic given{.messages = {request}, .odd = {}, .end = request.time + kSoon};
  EXPECT_TRUE(validated(given, 1).differences.empty());
  given.end += kSecond;
  EXPECT_EQ(validated(given, 1).differences.size(), 1u);
  // The peer has received an answer.
  given = begun;
  std::erase_if(given.messages, &CmMessage::sent);
  given.end = given.messages.back().time;
  EXPECT_EQ(validated(given, 1).differences.size(), 1u);
}

// The port has not processed a message that its capture already holds.
TEST_F(Management, MessagesThatCrossInThePort) {
  connect();
  ASSERT_EQ(pair.manager(0).disconnect(active), 0);
  ASSERT_EQ(pair.manager(1).disconnect(passive), 0);
  pair.run_until(pair.now + 100 * kSecond);
  for (std::size_t side = 0; side < 2; ++side) {
    auto given = traffic(side);
    const auto own = std::ranges::find(given.messages, of_kind<cm::DisconnectRequest>(given).frame, &CmMessage::frame);
    const auto other =
        std::ranges::find(given.messages, of_kind<cm::DisconnectRequest>(given, false).frame, &CmMessage::frame);
    ASSERT_LT(own - other, 0);
    std::swap(*own, *other);
    std::swap(own->time, other->time);
    EXPECT_TRUE(validated(given, side).differences.empty()) << side;
    // A second earlier: the port should have known the message.
    for (auto& message : given.messages)
      if (&message >= &*other) message.time += kSecond;
    EXPECT_FALSE(validated(given, side).differences.empty()) << side;
  }
}

TEST_F(Management, OneThatIsSentAgainTooEarly) {
  spoil = [lost = 0](std::size_t, const cm::Envelope& envelope) mutable {
    return Pair::Fate{.lost = std::holds_alternative<cm::ConnectRequest>(envelope.message) && lost++ == 0};
  };
  connect();
  expect_same();
  auto given = traffic(0);
  // Linux computes a timeout that is a little shorter than the one in the message.
  given.messages.at(1).time -= Duration{Pair::kActive.ps / 1000 * 46};
  EXPECT_TRUE(validated(given, 0).differences.empty());
  given = traffic(0);
  // A tenth shorter: no sender's timer.
  given.messages.at(1).time -= Duration{Pair::kActive.ps / 10};
  const auto result = validated(given, 0);
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].subject, Subject::timer);
  EXPECT_EQ(result.differences[0].frame, 2u);
}

TEST_F(Management, OneThatIsNeverSentAgain) {
  spoil = [](std::size_t, const cm::Envelope&) { return Pair::Fate{.lost = true}; };
  connect();
  auto given = traffic(0);
  ASSERT_GT(given.messages.size(), 4u);
  const auto last = given.messages.back().time;
  given.messages.resize(1);
  given.messages.push_back({.frame = 9, .time = last, .sent = false, .peer = Pair::gid(1), .envelope = {}});
  given.messages.back().envelope.message = cm::ReadyToUse{.local_id = 5, .remote_id = 6};
  const auto result = validated(given, 0);
  EXPECT_FALSE(result.differences.empty());
  EXPECT_EQ(used(result, Equivalence::sent_again), 1u);
}

TEST_F(Management, WhatNoManagerCanReadIsADifferenceOfItsSenders) {
  connect_and_disconnect();
  auto given = traffic(1);
  given.odd = {{3, false, true, "noise"}, {4, true, false, "of another class"}};
  EXPECT_TRUE(validated(given, 1).differences.empty());
  given.odd.push_back({4, true, true, "noise"});
  const auto found = validated(given, 1).differences;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].frame, 4u);
  EXPECT_EQ(found[0].theirs, "noise");
}

// --- Fields.

TEST(ManagementFields, EachBitThatIsReadIsOfAField) {
  for (std::uint16_t attribute = 0x10; attribute <= 0x1a; ++attribute) {
    cm::Mad blank{};
    blank[0] = std::byte{1}, blank[1] = std::byte{7}, blank[2] = std::byte{2}, blank[3] = std::byte{3};
    blank[17] = std::byte(attribute);
    const auto ours = *cm::decode(blank);
    for (std::size_t bit = 8 * 8; bit < 8 * cm::kMadBytes; ++bit) {
      if (bit / 8 >= 16 && bit / 8 < 24) continue;  // bytes of the MAD header
      auto mad = blank;
      mad[bit / 8] ^= std::byte(0x80 >> bit % 8);
      const auto theirs = *cm::decode(mad);
      EXPECT_EQ(fields_of(ours, theirs).size(), cm::encode(theirs) == blank ? 0u : 1u) << attribute << ' ' << bit;
    }
  }
}

}  // namespace
}  // namespace rnicsim::sim::replay
