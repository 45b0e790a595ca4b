// SPDX-License-Identifier: Apache-2.0
// Fixture with two communication managers. h0 connects to h1; each function brings both to a state of the connection.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/cm/cm_pair.h"

namespace rnicsim::cm {

inline constexpr Duration kSoon{1'000'000'000};  // 1 ms: later than any message arrives

inline std::vector<std::uint8_t> pattern(std::size_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = std::uint8_t(i + 1);
  return data;
}

class Managers : public ::testing::Test {
 protected:
  Managers() {
    manager(1).listen(Pair::kService);
    active = manager(0).create();
  }
  ConnectionManager& manager(std::size_t side) { return pair.manager(side); }
  std::vector<Told> told(std::size_t side) { return pair.sides[side].told(); }
  EventKind last(std::size_t side) { return pair.sides[side].last().kind; }
  template <class M>
  const M& last_message(std::size_t side) {
    return std::get<M>(pair.sides[side].last().message);
  }
  State state(std::size_t side) { return manager(side).find(side == 0 ? active : passive)->state; }
  void pass(Duration time = kSoon) { pair.run_until(pair.now + time); }

  void begin_anew() {
    manager(0).destroy(active);
    active = manager(0).create();
  }
  // Each function runs the previous steps, too.
  void request() {
    ASSERT_EQ(manager(0).connect(active, Pair::to(1)), 0);
    pass();
    ASSERT_EQ(last(1), EventKind::request_received);
    passive = pair.sides[1].last().id;
  }
  void reply() {
    request();
    ASSERT_EQ(manager(1).reply(passive, {.qpn = 0x22, .private_data = {}}), 0);
    pass();
    ASSERT_EQ(last(0), EventKind::reply_received);
  }
  void connect() {
    reply();
    ASSERT_EQ(manager(0).ready(active), 0);
    pass();
    ASSERT_EQ(last(1), EventKind::established);
  }
  void resolve() {
    ASSERT_EQ(manager(0).resolve_service(active, Pair::service_of(1)), 0);
    pass();
    ASSERT_EQ(last(1), EventKind::service_requested);
    passive = pair.sides[1].last().id;
  }
  void forget_events() {
    for (auto& side : pair.sides) side.events.clear();
  }
  // After both ids are destroyed, nothing is left at once or after all timers.
  void expect_an_end() {
    manager(0).destroy(active);
    manager(1).destroy(passive);
    EXPECT_TRUE(pair.run_out());
    // Ids that arrived meanwhile are destroyed, too.
    for (const auto& [at, event] : pair.sides[1].events) manager(1).destroy(event.id);
    EXPECT_TRUE(pair.run_out());
    for (std::size_t side = 0; side < 2; ++side) {
      EXPECT_EQ(manager(side).connections(), 0u);
      EXPECT_EQ(manager(side).next_deadline(), std::nullopt);
    }
  }

  Pair pair;
  ConnectionId active = 0, passive = 0;
};

}  // namespace rnicsim::cm
