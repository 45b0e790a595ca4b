// SPDX-License-Identifier: Apache-2.0
// Connection management between two hosts with librdmacm: the messages on the wire, and the events of programs whose
// messages are lost, repeated or late, or that end in the middle of a connection.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "model/base/kernel.h"
#include "model/cm/connection_manager.h"
#include "model/host/host_kernel.h"
#include "model/roce/packet.h"
#include "sim/adapter.h"
#include "tests/support/cm_program.h"
#include "tests/support/two_hosts.h"

namespace rnicsim::testing {
namespace {

using cm::duration_of;
using Types = std::vector<rdma_cm_event_type>;

constexpr std::uint16_t kPort = 7471;
constexpr Duration kSecond{1'000'000'000'000};
constexpr Duration kMillisecond{1'000'000'000};
// Linux' values: the peer's manager answers within 2^20, a packet lives for 2^18, in units of 4.096 us.
constexpr Duration kActive = 2 * duration_of(18) + duration_of(20);
constexpr Duration kPassive = duration_of(20);
constexpr Duration kTimewait = duration_of(19);
constexpr int kSends = 16;

struct Datagram {
  Duration at;
  std::uint32_t from;
  roce::Headers headers;
  std::uint32_t bytes;
  std::string name;
};

class CmWire : public TwoHosts {
 protected:
  explicit CmWire(const std::vector<std::string>& faults = {}) : TwoHosts({}, faults) {}

  std::vector<Datagram> datagrams() const {
    std::vector<Datagram> all;
    for (const WireFrame& frame : wire()) {
      const auto parsed = roce::parse_frame(frame.bytes, frame.bytes.size());
      EXPECT_EQ(parsed.error, roce::ParseError::none);
      const auto payload = std::span(frame.bytes).subspan(parsed.payload_offset, parsed.payload_bytes);
      const auto envelope = cm::decode(payload);
      all.push_back({frame.at, frame.from, parsed.headers, parsed.payload_bytes,
                     envelope ? std::string(cm::name_of(envelope->message)) : "?"});
    }
    return all;
  }
  // Sequence of the messages with the sending host: "0:REQ 1:REP ..."
  std::string talk() const {
    std::string all;
    for (const auto& datagram : datagrams())
      all += (all.empty() ? "" : " ") + std::to_string(datagram.from) + ":" + datagram.name;
    return all;
  }
  static void accept_all(CmProgram& program) {
    program.handler = [&program](rdma_cm_event& event) {
      if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        // A peer that has ended already cannot be connected.
        if (CmProgram::try_qp(event.id) == 0)
          EXPECT_EQ(CmProgram::accept(event.id), 0);
        else
          EXPECT_EQ(errno, EINVAL);
      } else if (event.event == RDMA_CM_EVENT_DISCONNECTED) {
        EXPECT_EQ(rdma_disconnect(event.id), 0);
      }
    };
  }
  void expect_nothing_left() {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(host(i).kernel().connection_ids(), 0u) << "h" << i;
      EXPECT_EQ(host(i).kernel().connections(), 0u) << "h" << i;
    }
  }
};

TEST_F(CmWire, AConnectionIsFiveDatagrams) {
  run(
      [&] {
        CmProgram program(process(0));
        rdma_cm_id* id = program.connect(CmProgram::ipv4(1, kPort));
        program.await(RDMA_CM_EVENT_ESTABLISHED);
        program.run_until(kSecond);
        EXPECT_EQ(rdma_disconnect(id), 0);
        program.await(RDMA_CM_EVENT_TIMEWAIT_EXIT);
      },
      [&] {
        CmProgram program(process(1));
        accept_all(program);
        program.listen(kPort);
        program.await(RDMA_CM_EVENT_TIMEWAIT_EXIT);
      },
      10 * kSecond);
  EXPECT_EQ(talk(), "0:REQ 1:REP 0:RTU 0:DREQ 1:DREP");
  for (const auto& datagram : datagrams()) {
    EXPECT_EQ(datagram.headers.bth.opcode, roce::Opcode::ud_send_only);
    EXPECT_EQ(datagram.headers.bth.destination.value, 1u);
    EXPECT_EQ(datagram.headers.bth.pkey, 0xffff);
    EXPECT_EQ(datagram.headers.bth.pad, 0);
    ASSERT_TRUE(datagram.headers.deth);
    EXPECT_EQ(datagram.headers.deth->qkey, 0x80010000u);
    EXPECT_EQ(datagram.headers.deth->source.value, 1u);
    EXPECT_EQ(datagram.bytes, 256u);
  }
  expect_nothing_left();
}

TEST_F(CmWire, ALookupIsTwoDatagrams) {
  run(
      [&] {
        CmProgram program(process(0));
        program.connect(CmProgram::ipv4(1, kPort), RDMA_PS_UDP);
        program.await(RDMA_CM_EVENT_ESTABLISHED);
      },
      [&] {
        CmProgram program(process(1));
        accept_all(program);
        program.listen(kPort, RDMA_PS_UDP);
        program.run_until(kSecond);
      },
      2 * kSecond);
  EXPECT_EQ(talk(), "0:SIDR_REQ 1:SIDR_REP");
  expect_nothing_left();
}

// --- Messages that are lost, duplicated or late.

enum class Fault { lost_once, lost_always, duplicated, late };
constexpr const char* kFaults[] = {"LostOnce", "LostAlways", "Duplicated", "Late"};
constexpr Duration kLate = kSecond;

struct Case {
  const char* message;
  Fault fault;
  std::size_t closer = 0;

  friend std::ostream& operator<<(std::ostream& out, const Case& about) {
    return out << about.message << ' ' << kFaults[std::size_t(about.fault)] << ", h" << about.closer << " disconnects";
  }
};

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

struct Expected {
  rdma_cm_event_type type;
  Duration after;  // after the program's call, without the time of wire, kernels and programs
};

class CmFaults : public CmWire, public ::testing::WithParamInterface<Case> {
 protected:
  CmFaults() : CmWire({rule()}) {}

  static std::string rule() {
    const std::string of = std::string(",cm=") + GetParam().message;
    switch (GetParam().fault) {
      case Fault::lost_once: return "drop" + of + ",count=1";
      case Fault::lost_always: return "drop" + of;
      case Fault::duplicated: return "duplicate" + of + ",count=1,by=1s";
      case Fault::late: return "delay" + of + ",count=1,by=1s";
    }
    return {};
  }
  static bool is(const char* message) { return std::string(message) == GetParam().message; }
  static bool always(const char* message) { return is(message) && GetParam().fault == Fault::lost_always; }
  static Duration delay_of(const char* message, Duration interval) {
    if (!is(message) || GetParam().fault == Fault::duplicated) return {};
    return GetParam().fault == Fault::late ? kLate : interval;
  }
  static void expect(const std::vector<CmEvent>& seen, Duration start, const std::vector<Expected>& expected) {
    ASSERT_EQ(seen.size(), expected.size()) << ::testing::PrintToString(seen);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].type, expected[i].type) << ::testing::PrintToString(seen);
      EXPECT_GE(seen[i].at, start + expected[i].after) << seen[i];
      EXPECT_LT(seen[i].at, start + expected[i].after + kMillisecond) << seen[i];
    }
  }
  // A message without answer is sent kSends times at this interval. The last transmission may come after the program
  // ended.
  void expect_intervals(Duration interval) {
    constexpr Duration kMicrosecond{1'000'000};
    std::vector<Duration> times;
    for (const auto& datagram : datagrams())
      if (is(datagram.name.c_str())) times.push_back(datagram.at);
    ASSERT_GE(times.size(), std::size_t(kSends));
    for (int i = 1; i < kSends; ++i) {
      EXPECT_GE(times[i], times[i - 1] + interval - kMicrosecond);
      EXPECT_LE(times[i], times[i - 1] + interval + kMicrosecond);
    }
  }
};

class CmConnectionFaults : public CmFaults {
 protected:
  static constexpr Duration kClose = 150 * kSecond;
  static constexpr Duration kEnd = 300 * kSecond;
  static constexpr Duration kGone = 10 * kSecond;  // more than timewait

  std::vector<Expected> expected_[2];
  void expect_opening() {
    auto& [client, server] = expected_;
    if (always("REQ") || always("REP")) client = {{RDMA_CM_EVENT_UNREACHABLE, kSends * kActive}};
    if (always("REQ")) return;
    const Duration requested = delay_of("REQ", kActive);
    server = {{RDMA_CM_EVENT_CONNECT_REQUEST, requested}};
    if (always("REP")) {
      server.push_back({RDMA_CM_EVENT_UNREACHABLE, kSends * kPassive});
      // The first retransmitted REQ after that time makes a new connection.
      constexpr Duration again = 11 * kActive;
      static_assert(again > kSends * kPassive && again - kActive < kSends * kPassive);
      server.push_back({RDMA_CM_EVENT_CONNECT_REQUEST, again});
      server.push_back({RDMA_CM_EVENT_UNREACHABLE, again + kSends * kPassive});
      return;
    }
    const Duration replied = requested + delay_of("REP", kPassive);
    client = {{RDMA_CM_EVENT_ESTABLISHED, replied}};
    if (always("RTU"))
      server.push_back({RDMA_CM_EVENT_UNREACHABLE, kSends * kPassive});
    else
      server.push_back({RDMA_CM_EVENT_ESTABLISHED, replied + delay_of("RTU", kPassive)});
  }
  void expect_closing() {
    if (always("REQ") || always("REP")) return;
    auto& closing = expected_[GetParam().closer];
    auto& closed = expected_[1 - GetParam().closer];
    const Duration interval = GetParam().closer == 0 ? kActive : kPassive;
    const bool dead = always("DREQ") || always("DREP");
    const Duration requested = kClose + delay_of("DREQ", interval);
    const Duration answered = dead ? kClose + kSends * interval : requested + delay_of("DREP", interval);
    closing.push_back({RDMA_CM_EVENT_DISCONNECTED, answered});
    closing.push_back({RDMA_CM_EVENT_TIMEWAIT_EXIT, answered + kTimewait});
    if (always("DREQ") || closed.back().type == RDMA_CM_EVENT_UNREACHABLE) return;
    closed.push_back({RDMA_CM_EVENT_DISCONNECTED, requested});
    closed.push_back({RDMA_CM_EVENT_TIMEWAIT_EXIT, requested + kTimewait});
  }
};

TEST_P(CmConnectionFaults, EndAsTheTimeoutsSay) {
  Duration start;
  std::vector<CmEvent> seen[2];
  const auto live = [&](std::size_t me, CmProgram& program, rdma_cm_id* id) {
    program.run_until(start + kClose);
    if (me == GetParam().closer) {
      EXPECT_EQ(rdma_disconnect(me == 0 ? id : program.seen.back().id), 0);
    }
    program.run_until(start + kEnd);
    seen[me] = program.seen;
  };
  run(
      [&] {
        {
          CmProgram program(process(0));
          accept_all(program);
          rdma_cm_id* id = program.connect(CmProgram::ipv4(1, kPort));
          start = now();
          program.seen.clear();
          live(0, program, id);
        }
        settle(0);
        sleep_until(start + kEnd + kGone);
      },
      [&] {
        {
          CmProgram program(process(1));
          accept_all(program);
          program.listen(kPort);
          program.run_until(kMillisecond);  // until the client has begun
          live(1, program, nullptr);
        }
        settle(1);
        sleep_until(start + kEnd + kGone);
      },
      400 * kSecond);
  expect_opening();
  expect_closing();
  for (std::size_t i = 0; i < 2; ++i) expect(seen[i], start, expected_[i]);
  if (always("REQ")) expect_intervals(kActive);
  if (always("DREQ")) expect_intervals(GetParam().closer == 0 ? kActive : kPassive);
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Opening, CmConnectionFaults, ::testing::ValuesIn(cases({"REQ", "REP", "RTU"}, {0})), title);
INSTANTIATE_TEST_SUITE_P(Closing, CmConnectionFaults, ::testing::ValuesIn(cases({"DREQ", "DREP"}, {0, 1})), title);

class CmLookupFaults : public CmFaults {};

TEST_P(CmLookupFaults, EndAsTheTimeoutsSay) {
  constexpr Duration kEnd = 150 * kSecond;
  Duration start;
  std::vector<CmEvent> seen[2];
  run(
      [&] {
        CmProgram program(process(0));
        program.connect(CmProgram::ipv4(1, kPort), RDMA_PS_UDP);
        start = now();
        program.seen.clear();
        program.run_until(kEnd);
        seen[0] = program.seen;
      },
      [&] {
        CmProgram program(process(1));
        accept_all(program);
        program.listen(kPort, RDMA_PS_UDP);
        program.run_until(kEnd);
        seen[1] = program.seen;
      },
      2 * kEnd);
  std::vector<Expected> client{
      {RDMA_CM_EVENT_ESTABLISHED, delay_of("SIDR_REQ", kPassive) + delay_of("SIDR_REP", kPassive)}};
  if (GetParam().fault == Fault::lost_always) client = {{RDMA_CM_EVENT_UNREACHABLE, kSends * kPassive}};
  // A request that arrives after the answer counts as a new request.
  std::vector<Expected> server{{RDMA_CM_EVENT_CONNECT_REQUEST, delay_of("SIDR_REQ", kPassive)}};
  if (always("SIDR_REQ")) server.clear();
  if (is("SIDR_REQ") && GetParam().fault == Fault::duplicated)
    server.push_back({RDMA_CM_EVENT_CONNECT_REQUEST, kSecond});
  const int repeated = always("SIDR_REP") ? kSends - 1 : is("SIDR_REP") && GetParam().fault == Fault::lost_once ? 1 : 0;
  for (int i = 1; i <= repeated; ++i) server.push_back({RDMA_CM_EVENT_CONNECT_REQUEST, i * kPassive});
  expect(seen[0], start, client);
  expect(seen[1], start, server);
  if (always("SIDR_REQ")) expect_intervals(kPassive);
  EXPECT_EQ(seen[0].at(0).status, GetParam().fault == Fault::lost_always ? -ETIMEDOUT : 0);
  expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(Of, CmLookupFaults, ::testing::ValuesIn(cases({"SIDR_REQ", "SIDR_REP"}, {0})), title);

// --- Programs that end in the middle of a connection.

struct Death {
  const char* at;
  Types told;      // events of the connection that the peer gets
  int status = 0;  // status of the last event

  friend std::ostream& operator<<(std::ostream& out, const Death& death) { return out << death.at; }
};

class CmDeaths : public CmWire, public ::testing::WithParamInterface<Death> {
 protected:
  static bool at(const char* step) { return std::string(step) == GetParam().at; }
  static Types types(const std::vector<CmEvent>& events) {
    Types all;
    for (const auto& event : events) all.push_back(event.type);
    return all;
  }
  static void expect_status(const std::vector<CmEvent>& events) {
    EXPECT_EQ(events.empty() ? 0 : events.back().status, GetParam().status);
  }
  void expect_nothing_anywhere() {
    expect_nothing_left();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(host(i).kernel().processes(), 0u);
  }
  static constexpr Duration kSettled = 5 * kSecond;  // more than timewait
};

class CmClientDies : public CmDeaths {
 protected:
  void die() {
    CmProgram program(process(0));
    program.leave_behind();
    if (at("channel")) return;
    rdma_cm_id* id = program.make();
    if (at("id")) return;
    auto to = CmProgram::ipv4(1, kPort);
    ASSERT_EQ(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), 0);
    if (at("resolving")) return;
    program.sleep_to(now() + kMillisecond);
    if (at("unread")) return;
    program.await(RDMA_CM_EVENT_ADDR_RESOLVED);
    ASSERT_EQ(rdma_resolve_route(id, 1000), 0);
    program.await(RDMA_CM_EVENT_ROUTE_RESOLVED);
    program.make_qp(id);
    if (at("qp")) return;
    rdma_conn_param wanted{};
    ASSERT_EQ(rdma_connect(id, &wanted), 0);
    if (at("connecting")) return;
    program.sleep_to(now() + kMillisecond);
    if (at("answered")) return;
    program.await(RDMA_CM_EVENT_ESTABLISHED);
    if (at("established")) return;
    program.sleep_to(now() + kMillisecond);
    ASSERT_EQ(rdma_disconnect(id), 0);
    if (at("disconnecting")) return;
    program.await(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  }
};

TEST_P(CmClientDies, AndTheListenerServesOn) {
  run([&] { die(); },
      [&] {
        {
          CmProgram program(process(1));
          accept_all(program);
          program.listen(kPort);
          program.run_until(kSettled);
          EXPECT_EQ(types(program.seen), GetParam().told);
          expect_status(program.seen);
          // A client on the listener's host works, too.
          program.seen.clear();
          program.connect(CmProgram::ipv4(1, kPort));
          program.run_until(2 * kSettled);
          EXPECT_EQ(types(program.seen),
                    (Types{RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_CONNECT_REQUEST,
                           RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED}));
        }
        settle(1);
        sleep_until(3 * kSettled);
      },
      4 * kSettled);
  expect_nothing_anywhere();
}

constexpr auto kRequest = RDMA_CM_EVENT_CONNECT_REQUEST;
constexpr auto kEstablished = RDMA_CM_EVENT_ESTABLISHED;
constexpr auto kDisconnected = RDMA_CM_EVENT_DISCONNECTED;
constexpr auto kOver = RDMA_CM_EVENT_TIMEWAIT_EXIT;
constexpr auto kRejected = RDMA_CM_EVENT_REJECTED;
constexpr int kConsumer = 28, kNoService = 8;  // reasons of a REJ (IBTA vol 1, 12.6.7.2)

INSTANTIATE_TEST_SUITE_P(At, CmClientDies,
                         ::testing::Values(Death{"channel", {}}, Death{"id", {}}, Death{"resolving", {}},
                                           Death{"unread", {}}, Death{"qp", {}}, Death{"connecting", {kRequest}},
                                           Death{"answered", {kRequest, kRejected}, kConsumer},
                                           Death{"established", {kRequest, kEstablished, kDisconnected, kOver}},
                                           Death{"disconnecting", {kRequest, kEstablished, kDisconnected, kOver}},
                                           Death{"end", {kRequest, kEstablished, kDisconnected, kOver}}),
                         [](const auto& about) { return std::string(about.param.at); });

class CmServerDies : public CmDeaths {
 protected:
  void die() {
    CmProgram program(process(1));
    program.leave_behind();
    rdma_cm_id* listener = program.make();
    auto any = CmProgram::ipv4(1, kPort);
    any.sin_addr.s_addr = 0;
    ASSERT_EQ(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)), 0);
    if (at("bound")) return;
    ASSERT_EQ(rdma_listen(listener, 1), 0);
    if (at("listening")) return;
    program.sleep_to(2 * kSecond);
    if (at("unread")) return;
    const CmEvent request = program.await(RDMA_CM_EVENT_CONNECT_REQUEST);
    if (at("requested")) return;
    program.make_qp(request.id);
    ASSERT_EQ(CmProgram::accept(request.id), 0);
    if (at("accepted")) return;
    program.await(RDMA_CM_EVENT_ESTABLISHED);
    if (at("established")) return;
    program.sleep_to(3 * kSecond);
    ASSERT_EQ(rdma_disconnect(request.id), 0);
  }
};

TEST_P(CmServerDies, AndTheClientIsTold) {
  run(
      [&] {
        {
          CmProgram program(process(0));
          accept_all(program);
          program.sleep_to(kSecond);
          program.connect(CmProgram::ipv4(1, kPort));
          program.seen.clear();
          program.run_until(2 * kSettled);
          EXPECT_EQ(types(program.seen), GetParam().told);
          expect_status(program.seen);
        }
        settle(0);
        sleep_until(3 * kSettled);
      },
      [&] { die(); }, 4 * kSettled);
  expect_nothing_anywhere();
}

INSTANTIATE_TEST_SUITE_P(At, CmServerDies,
                         ::testing::Values(Death{"bound", {kRejected}, kNoService},
                                           Death{"listening", {kRejected}, kNoService},
                                           Death{"unread", {kRejected}, kConsumer},
                                           Death{"requested", {kRejected}, kConsumer},
                                           // The REJ arrives before the program has read the event of the REP.
                                           Death{"accepted", {RDMA_CM_EVENT_CONNECT_ERROR, kOver}},
                                           Death{"established", {kEstablished, kDisconnected, kOver}},
                                           Death{"disconnecting", {kEstablished, kDisconnected, kOver}}),
                         [](const auto& about) { return std::string(about.param.at); });

}  // namespace
}  // namespace rnicsim::testing
