// SPDX-License-Identifier: Apache-2.0
// Completion moderation: an armed CQ's event waits for a number of CQEs, or for a time from the first CQE, exact to a
// picosecond.
#include "model/nic/nic.h"
#include "model/nic/queues/command_unit.h"
#include "model/nic/queues/completion.h"
#include "model/nic/queues/event_writer.h"
#include "tests/unit/nic/nic_pair.h"

namespace rnicsim::nic::test {
namespace {

using abi::CommandStatus;
using abi::SendOpcode;

constexpr std::uint32_t kEqn = 1;  // EQ of every CQ

class Moderation : public Pair {
 protected:
  void SetUp() override { begin({}); }

  void begin(const NicParams& params) {
    build(params);
    connect();
    events.clear();
    cqes.clear();
    b().nic.blocks().events.written.subscribe([this](const EventTrace& event) {
      if (event.eqn == kEqn) events.push_back(now());
    });
    b().nic.blocks().completion.written.subscribe([this](const CqeWritten&) { cqes.push_back(now()); });
  }
  CommandStatus moderate(std::uint16_t count, std::uint16_t period) {
    abi::ModifyCq modify;
    modify.header.opcode = std::uint16_t(abi::CommandOpcode::modify_cq);
    modify.header.object = kReceiveCqn;
    modify.moderation_count = count;
    modify.moderation_period = period;
    return b().command(modify);
  }
  CommandStatus on_cq(abi::CommandOpcode opcode, std::uint32_t cqn) {
    abi::CommandHeader header;
    header.opcode = std::uint16_t(opcode);
    header.object = cqn;
    return b().command(header);
  }
  void arm(bool solicited = false) {
    b().arm(kReceiveCqn, solicited);
    run(0.5);
  }
  // Sends messages to b, each with a CQE.
  void send(int count, bool solicited = false) {
    for (int i = 0; i < count; ++i) {
      const auto before = cqes.size();
      b().post_receive(b().buffer, 64);
      a().post_send({.opcode = SendOpcode::send,
                     .length = 8,
                     .flags = abi::ControlSegment::kSignaled | (solicited ? abi::ControlSegment::kSolicited : 0)});
      while (cqes.size() == before) sc_core::sc_start(100, sc_core::SC_NS);
    }
  }
  void poll_all() {
    while (b().poll(kReceiveCqn)) {}
  }
  void run_until(Duration at) { sc_core::sc_start(to_sc_time(at - now())); }
  // The first event comes at `at`, and no other event.
  void expect_event(Duration at) {
    if (at > now() + 1_ns) {
      run_until(at - 1_ps);
      EXPECT_TRUE(events.empty());
      run_until(at + 1_ns);
    }
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events.front(), at);
    run(300);
    EXPECT_EQ(events.size(), 1u);
  }

  std::vector<Duration> events, cqes;  // times at which each was written, at b
};

TEST_F(Moderation, WaitsForSoMany) {
  EXPECT_EQ(moderate(3, 4095), CommandStatus::ok);
  arm();
  send(2);
  run(1000);
  EXPECT_TRUE(events.empty());
  EXPECT_EQ(b().nic.counters().completion.moderated_events, 1u);
  send(1);
  expect_event(cqes[2]);
  EXPECT_EQ(b().nic.counters().completion.moderated_events, 1u);
}

TEST_F(Moderation, OrForSoLong) {
  EXPECT_EQ(moderate(3, 50), CommandStatus::ok);
  arm();
  send(1);
  expect_event(cqes[0] + 50_us);
}

TEST_F(Moderation, FromTheFirstOne) {
  EXPECT_EQ(moderate(3, 50), CommandStatus::ok);
  arm();
  send(1);
  run(20);
  send(1);
  expect_event(cqes[0] + 50_us);
}

TEST_F(Moderation, EachTimeAnew) {
  EXPECT_EQ(moderate(2, 50), CommandStatus::ok);
  arm();
  send(2);
  expect_event(cqes[1]);
  events.clear();
  poll_all();
  arm();
  send(1);
  expect_event(cqes[2] + 50_us);
  events.clear();
  poll_all();
  arm();
  send(1);
  run(20);
  send(1);
  expect_event(cqes[4]);
}

TEST_F(Moderation, NothingUnlessArmed) {
  EXPECT_EQ(moderate(2, 50), CommandStatus::ok);
  send(5);
  run(200);
  EXPECT_TRUE(events.empty());
  poll_all();
  arm();
  run(200);
  EXPECT_TRUE(events.empty());
}

TEST_F(Moderation, ALateArmCountsWhatIsThere) {
  EXPECT_EQ(moderate(2, 50), CommandStatus::ok);
  send(1);
  b().arm(kReceiveCqn, false);
  const auto armed = now();
  run_until(armed + 50_us - 1_ps);
  EXPECT_TRUE(events.empty());
  run(1);
  EXPECT_EQ(events.size(), 1u);
  send(1);
  b().arm(kReceiveCqn, false);  // two CQEs are not polled
  run(1);
  EXPECT_EQ(events.size(), 2u);
}

TEST_F(Moderation, OfSolicitedOnesOnly) {
  EXPECT_EQ(moderate(2, 4095), CommandStatus::ok);
  arm(true);
  send(3);
  send(1, true);
  send(3);
  run(100);
  EXPECT_TRUE(events.empty());
  send(1, true);
  expect_event(cqes[7]);
}

TEST_F(Moderation, ArmingAgainTakesNoEventBack) {
  EXPECT_EQ(moderate(3, 50), CommandStatus::ok);
  arm();
  send(1);
  poll_all();
  arm();
  send(1);
  poll_all();
  arm();
  expect_event(cqes[0] + 50_us);
}

TEST_F(Moderation, OffWithEitherAtZero) {
  for (const auto& [count, period] : {std::pair{0, 50}, {1, 50}, {5, 0}, {0, 0}}) {
    EXPECT_EQ(moderate(std::uint16_t(count), std::uint16_t(period)), CommandStatus::ok);
    arm();
    send(1);
    expect_event(cqes.back());
    poll_all();
    events.clear();
  }
}

TEST_F(Moderation, AChangeIsForWhatWaits) {
  EXPECT_EQ(moderate(5, 4000), CommandStatus::ok);
  arm();
  send(2);
  EXPECT_EQ(moderate(3, 100), CommandStatus::ok);
  const auto changed = now();
  run(90);
  EXPECT_TRUE(events.empty());
  run(20);
  EXPECT_EQ(events.size(), 1u);
  EXPECT_LE(events.front(), changed + 100_us);
  poll_all();
  events.clear();
  arm();
  send(2);
  EXPECT_EQ(moderate(2, 100), CommandStatus::ok);
  EXPECT_EQ(events.size(), 1u);
}

TEST_F(Moderation, SurvivesEviction) {
  NicParams params;
  params.contexts.cqc.l0_entries = 0;
  params.contexts.cqc.l1_entries = 1;
  begin(params);
  EXPECT_EQ(moderate(3, 200), CommandStatus::ok);
  const auto evict = [&] { EXPECT_EQ(on_cq(abi::CommandOpcode::query_cq, kSendCqn), CommandStatus::ok); };
  evict();
  arm();
  for (int i = 0; i < 2; ++i) {
    evict();
    send(1);
  }
  evict();
  EXPECT_TRUE(events.empty());
  send(1);
  run(3);
  EXPECT_EQ(events.size(), 1u);
  poll_all();
  arm();
  send(1);
  evict();
  run_until(cqes.back() + 200_us - 1_ps);
  EXPECT_EQ(events.size(), 1u);
  run(3);  // fetches the context
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(on_cq(abi::CommandOpcode::query_cq, kReceiveCqn), CommandStatus::ok);
  const auto context = b().output<abi::QueryCq>().context;
  EXPECT_EQ(context.moderation_count, 3u);
  EXPECT_EQ(context.moderation_period, 200u);
  EXPECT_EQ(context.withheld, 0u);
}

TEST_F(Moderation, GoesWithItsQueue) {
  EXPECT_EQ(moderate(3, 50), CommandStatus::ok);
  arm();
  send(1);
  EXPECT_EQ(b().destroy_qp(), CommandStatus::ok);
  EXPECT_EQ(on_cq(abi::CommandOpcode::destroy_cq, kReceiveCqn), CommandStatus::ok);
  run(100);
  EXPECT_TRUE(events.empty());
}

TEST_F(Moderation, ADeviceHasItsLimits) {
  NicParams params;
  params.capabilities.max_cq_moderation_count = 100;
  params.capabilities.max_cq_moderation_period = 20_us;
  begin(params);
  EXPECT_EQ(moderate(100, 20), CommandStatus::ok);
  for (const auto& [count, period] : {std::pair{101, 20}, {100, 21}}) {
    EXPECT_EQ(moderate(std::uint16_t(count), std::uint16_t(period)), CommandStatus::bad_parameter);
    EXPECT_EQ(b().output<abi::CommandResult>().syndrome, std::uint32_t(CommandSyndrome::bad_moderation));
  }
  EXPECT_EQ(on_cq(abi::CommandOpcode::modify_cq, 60), CommandStatus::bad_input_length);
}

}  // namespace
}  // namespace rnicsim::nic::test
