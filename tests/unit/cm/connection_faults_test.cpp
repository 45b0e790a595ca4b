// SPDX-License-Identifier: Apache-2.0
// A connection, or the lookup of a service, with one message lost once or always, duplicated, or late: the events on
// both sides, and their times, by the timeouts in the messages.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "tests/unit/cm/cm_pair.h"

namespace rnicsim::cm::connection_faults_test {
namespace {

using enum EventKind;
using Events = std::vector<Told>;

enum class Fault { lost_once, lost_always, duplicated, late, overtaken };
constexpr const char* kFaults[] = {"LostOnce", "LostAlways", "Duplicated", "Late", "Overtaken"};

constexpr Duration kLate{1'000'000'000'000};  // less than the time until a retransmission
constexpr Duration kLaterThanRepeated{9'000'000'000'000};
constexpr Duration kWire = Pair::kWire;
constexpr int kSends = Pair::kRetries + 1;

struct Case {
  const char* message;
  Fault fault;
  std::size_t closer = 0;  // side that disconnects

  friend std::ostream& operator<<(std::ostream& out, const Case& about) {
    return out << about.message << ' ' << kFaults[std::size_t(about.fault)] << ", h" << about.closer << " disconnects";
  }
};

class Faults : public ::testing::TestWithParam<Case> {
 protected:
  Faults() {
    pair.wire = [this](std::size_t, const Envelope& envelope) -> Pair::Fate {
      if (name_of(envelope.message) != GetParam().message || (hits_++ > 0 && GetParam().fault != Fault::lost_always))
        return {};
      switch (GetParam().fault) {
        case Fault::lost_once:
        case Fault::lost_always: return {.lost = true};
        case Fault::duplicated: return {.copy = kLate};
        case Fault::late: return {.late = kLate};
        case Fault::overtaken: return {.late = kLaterThanRepeated};
      }
      return {};
    };
    pair.manager(1).listen(Pair::kService);
  }

  static bool always(const char* message) {
    return GetParam().fault == Fault::lost_always && std::string(message) == GetParam().message;
  }
  // Delay of the message by the fault; `interval`: time until a retransmission.
  static Duration delay_of(const char* message, Duration interval) {
    if (std::string(message) != GetParam().message || GetParam().fault == Fault::duplicated) return {};
    return GetParam().fault == Fault::late ? kLate : interval;
  }
  void expect(const Events& h0, const Events& h1) {
    EXPECT_EQ(pair.sides[0].told(), h0);
    EXPECT_EQ(pair.sides[1].told(), h1);
    EXPECT_GE(pair.sent[GetParam().message], GetParam().fault == Fault::lost_always ? unsigned(kSends) : 1u);
    for (std::size_t side = 0; side < 2; ++side) {
      for (const auto& [at, event] : pair.sides[side].events) pair.manager(side).destroy(event.id);
      pair.take();
      EXPECT_TRUE(pair.run_out());
      EXPECT_EQ(pair.manager(side).next_deadline(), std::nullopt);
    }
  }

  Pair pair;

 private:
  unsigned hits_ = 0;
};

// --- Connections.

class ConnectionFaults : public Faults {
 protected:
  static constexpr Duration kEnd{1'000'000'000'000'000};  // time of the disconnect
  static constexpr Duration kActive = Pair::kActive, kPassive = Pair::kPassive, kTimewait = Pair::kTimewait;

  struct Expected {
    Events events[2];
    bool stands = false;  // connection established on the side that closes
  };

  static Expected opening() {
    Expected expected;
    auto& [active, passive] = expected.events;
    if (always("REQ")) {
      active = {{request_failed, kSends * kActive}};
      return expected;
    }
    const Duration requested = kWire + delay_of("REQ", kActive);
    passive = {{request_received, requested}};
    if (always("REP")) {
      active = {{request_failed, kSends * kActive}};
      // A failed request is forgotten: a later REQ makes a new connection.
      for (int i = 0; i < kSends; ++i) {
        const Duration given_up =
            passive.back().kind == reply_failed ? passive.back().at : requested + kSends * kPassive;
        if (passive.back().kind == request_received) passive.push_back({reply_failed, given_up});
        if (i * kActive + kWire > given_up) {
          passive.push_back({request_received, i * kActive + kWire});
          passive.push_back({reply_failed, i * kActive + kWire + kSends * kPassive});
        }
      }
      return expected;
    }
    const Duration replied = requested + kWire + delay_of("REP", kPassive);
    active = {{reply_received, replied}};
    expected.stands = true;
    if (always("RTU"))
      passive.push_back({reply_failed, requested + kSends * kPassive});
    else
      passive.push_back({established, replied + kWire + delay_of("RTU", kPassive)});
    return expected;
  }
  static Expected whole() {
    Expected expected = opening();
    if (!expected.stands) return expected;
    const std::size_t closer = GetParam().closer;
    auto& closing = expected.events[closer];
    auto& closed = expected.events[1 - closer];
    const Duration interval = closer == 0 ? kActive : kPassive;
    const bool dead = always("DREQ") || always("DREP");
    const Duration requested = kEnd + kWire + delay_of("DREQ", interval);
    const Duration answered = dead ? kEnd + kSends * interval : requested + kWire + delay_of("DREP", interval);
    closing.push_back({disconnected, answered});
    closing.push_back({timewait_over, answered + kTimewait});
    // A connection that has failed needs no disconnect.
    if (always("DREQ") || closed.back().kind == reply_failed) return expected;
    closed.push_back({disconnect_requested, requested});
    closed.push_back({timewait_over, requested + kTimewait});
    return expected;
  }
};

TEST_P(ConnectionFaults, EndAsTheTimeoutsSay) {
  ConnectionId id[2] = {pair.manager(0).create(), 0};
  for (std::size_t side = 0; side < 2; ++side)
    pair.sides[side].program = [&, side](const Event& event) {
      id[side] = event.id;
      int error = 0;
      if (event.kind == request_received) error = pair.manager(side).reply(event.id, {.qpn = 0x22});
      if (event.kind == reply_received) error = pair.manager(side).ready(event.id);
      if (event.kind == disconnect_requested) error = pair.manager(side).confirm_disconnect(event.id);
      EXPECT_EQ(error, 0) << name_of(event.kind);
    };
  ASSERT_EQ(pair.manager(0).connect(id[0], Pair::to(1)), 0);
  const auto expected = whole();
  pair.at(kEnd, [&] {
    EXPECT_EQ(pair.manager(GetParam().closer).disconnect(id[GetParam().closer]), expected.stands ? 0 : EINVAL);
  });
  EXPECT_TRUE(pair.run_out());
  expect(expected.events[0], expected.events[1]);
}

std::vector<Case> cases(std::initializer_list<const char*> messages, std::initializer_list<std::size_t> closers) {
  std::vector<Case> all;
  for (const char* message : messages)
    for (const std::size_t closer : closers)
      for (std::size_t fault = 0; fault < std::size(kFaults); ++fault) all.push_back({message, Fault(fault), closer});
  return all;
}

std::string title(const ::testing::TestParamInfo<Case>& about) {
  return std::string(about.param.message) + kFaults[std::size_t(about.param.fault)] +
         (about.param.closer == 0 ? "" : "FromBehind");
}

INSTANTIATE_TEST_SUITE_P(Opening, ConnectionFaults, ::testing::ValuesIn(cases({"REQ", "REP", "RTU"}, {0})), title);
INSTANTIATE_TEST_SUITE_P(Closing, ConnectionFaults, ::testing::ValuesIn(cases({"DREQ", "DREP"}, {0, 1})), title);

// --- Services.

class ServiceFaults : public Faults {};

TEST_P(ServiceFaults, EndAsTheTimeoutsSay) {
  pair.sides[1].program = [&](const Event& event) {
    EXPECT_EQ(pair.manager(1).answer_service(event.id, ServiceIdStatus::valid, 0x33, 0x44), 0);
  };
  const Duration interval = duration_of(Pair::kResponse);
  ASSERT_EQ(pair.manager(0).resolve_service(pair.manager(0).create(), Pair::service_of(1)), 0);
  EXPECT_TRUE(pair.run_out());

  const bool of_request = std::string(GetParam().message) == "SIDR_REQ";
  const Duration asked = kWire + delay_of("SIDR_REQ", interval);
  Events h0{{service_answered, asked + kWire + delay_of("SIDR_REP", interval)}};
  if (GetParam().fault == Fault::lost_always) h0 = {{service_failed, kSends * interval}};
  // A request repeated after the answer is answered again: the manager keeps no state.
  Events h1{{service_requested, asked}};
  switch (GetParam().fault) {
    case Fault::lost_once:
      if (!of_request) h1.push_back({service_requested, kWire + interval});
      break;
    case Fault::lost_always:
      h1.clear();
      for (int i = 0; i < kSends && !of_request; ++i) h1.push_back({service_requested, kWire + i * interval});
      break;
    case Fault::duplicated:
      if (of_request) h1.push_back({service_requested, kWire + kLate});
      break;
    case Fault::late: break;
    case Fault::overtaken:
      h1.push_back({service_requested, kWire + (of_request ? kLaterThanRepeated : interval)});
      break;
  }
  expect(h0, h1);
}

INSTANTIATE_TEST_SUITE_P(Of, ServiceFaults, ::testing::ValuesIn(cases({"SIDR_REQ", "SIDR_REP"}, {0})), title);

}  // namespace
}  // namespace rnicsim::cm::connection_faults_test
