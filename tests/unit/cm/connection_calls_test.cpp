// SPDX-License-Identifier: Apache-2.0
// Calls to the communication manager: allowed states of a connection for each, and sizes of private data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "tests/unit/cm/cm_managers.h"

namespace rnicsim::cm {
namespace {

TEST_F(Managers, PrivateDataHaveTheirSizes) {
  const auto tried = [](std::size_t room, auto call) {
    EXPECT_EQ(call(pattern(room + 1)), EINVAL);
    EXPECT_EQ(call(pattern(room)), 0);
  };
  tried(92, [&](const auto& data) {
    auto params = Pair::to(1);
    params.private_data = data;
    return manager(0).connect(active, params);
  });
  pass();
  passive = pair.sides[1].last().id;
  EXPECT_EQ(last_message<ConnectRequest>(1).private_data[91], 92);
  tried(196, [&](const auto& data) { return manager(1).reply(passive, {.qpn = 0x22, .private_data = data}); });
  pass();
  tried(224, [&](const auto& data) { return manager(0).ready(active, data); });
  pass();
  expect_an_end();

  begin_anew();
  request();
  tried(148, [&](const auto& data) { return manager(1).reject(passive, RejectReason::consumer, data); });
  pass();
  expect_an_end();

  begin_anew();
  tried(216, [&](const auto& data) {
    auto params = Pair::service_of(1);
    params.private_data = data;
    return manager(0).resolve_service(active, params);
  });
  pass();
  passive = pair.sides[1].last().id;
  tried(136, [&](const auto& data) { return manager(1).answer_service(passive, ServiceIdStatus::valid, 1, 2, data); });
  expect_an_end();
}

struct Call {
  const char* name;
  std::function<int(ConnectionManager&, ConnectionId)> make;
  std::vector<State> allowed;
};

const Call kCalls[] = {
    {"connect", [](auto& manager, auto id) { return manager.connect(id, Pair::to(1)); }, {State::idle}},
    {"reply",
     [](auto& manager, auto id) { return manager.reply(id, {}); },
     {State::request_received, State::request_acknowledged}},
    {"ready", [](auto& manager, auto id) { return manager.ready(id); }, {State::reply_received}},
    {"reject",
     [](auto& manager, auto id) { return manager.reject(id, RejectReason::consumer); },
     {State::request_sent, State::request_received, State::request_acknowledged, State::reply_sent,
      State::reply_received}},
    {"promise",
     [](auto& manager, auto id) { return manager.promise(id, 24); },
     {State::request_received, State::reply_received}},
    {"disconnect", [](auto& manager, auto id) { return manager.disconnect(id); }, {State::established}},
    {"confirm_disconnect",
     [](auto& manager, auto id) { return manager.confirm_disconnect(id); },
     {State::disconnect_received}},
    {"establish", [](auto& manager, auto id) { return manager.establish(id); }, {State::reply_sent}},
    {"resolve_service",
     [](auto& manager, auto id) { return manager.resolve_service(id, Pair::service_of(1)); },
     {State::idle}},
    {"answer_service",
     [](auto& manager, auto id) { return manager.answer_service(id, ServiceIdStatus::valid, 1, 2); },
     {State::service_request_received}},
};

struct Stage {
  State state;
  std::size_t side;
};

constexpr Stage kStages[] = {{State::idle, 0},
                             {State::request_sent, 0},
                             {State::request_received, 1},
                             {State::request_acknowledged, 1},
                             {State::reply_sent, 1},
                             {State::reply_received, 0},
                             {State::established, 0},
                             {State::established, 1},
                             {State::disconnect_sent, 0},
                             {State::disconnect_received, 1},
                             {State::timewait, 1},
                             {State::service_request_sent, 0},
                             {State::service_request_received, 1}};

class InState : public Managers {
 protected:
  void reach(State wanted) {
    switch (wanted) {
      case State::idle: return;
      case State::request_sent:
      case State::request_received: return request();
      case State::request_acknowledged:
        request();
        manager(1).promise(passive, 24);
        return;
      case State::reply_sent:
      case State::reply_received: return reply();
      case State::established: return connect();
      case State::disconnect_sent:
      case State::disconnect_received:
      case State::timewait:
        connect();
        manager(0).disconnect(active);
        pass();
        if (wanted == State::timewait) manager(1).confirm_disconnect(passive);
        return;
      case State::service_request_sent:
      case State::service_request_received: return resolve();
    }
  }
};

TEST_F(InState, ACallIsRefusedWhereItMeansNothing) {
  for (const Call& call : kCalls)
    for (const Stage& stage : kStages) {
      begin_anew();
      reach(stage.state);
      ASSERT_EQ(state(stage.side), stage.state);
      const ConnectionId id = stage.side == 0 ? active : passive;
      const bool allowed = std::ranges::find(call.allowed, stage.state) != call.allowed.end();
      const int refusal = call.name == std::string("establish") && stage.state == State::established ? EISCONN : EINVAL;
      EXPECT_EQ(call.make(manager(stage.side), id), allowed ? 0 : refusal)
          << call.name << " in state " << int(stage.state);
      EXPECT_TRUE(allowed || state(stage.side) == stage.state) << call.name;
      expect_an_end();
      EXPECT_EQ(call.make(manager(stage.side), id), EINVAL) << call.name << " of one that has gone";
    }
}

}  // namespace
}  // namespace rnicsim::cm
