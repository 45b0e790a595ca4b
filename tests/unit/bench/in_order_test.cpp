// SPDX-License-Identifier: Apache-2.0
// Notes of one process are sorted by time, node and arrivals, and otherwise keep their order.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "sim/processes/in_order.h"

namespace rnicsim::sim {
namespace {

TEST(InOrder, IsOfTimeThenNodeThenArrivals) {
  std::string told;
  InOrder notes(nullptr, [&](Duration at, std::uint32_t node, std::span<const std::byte> note) {
    told += std::to_string(at.ps) + ':' + std::to_string(node) + char(note.front()) + ' ';
  });
  const auto add = [&](std::int64_t at, std::uint32_t node, InOrder::Origin origin, char name) {
    notes.add({at}, node, origin, std::as_bytes(std::span(&name, 1)));
  };
  using enum InOrder::Origin;
  add(1, 7, own, 'a');
  add(5, 2, own, 'b');
  EXPECT_EQ(told, "1:7a ");
  add(5, 1, own, 'c');
  add(5, 2, arrival, 'd');
  add(5, 1, own, 'e');
  add(6, 0, own, 'f');
  EXPECT_EQ(told, "1:7a 5:1c 5:1e 5:2d 5:2b ");
  notes.finish();
  EXPECT_EQ(told, "1:7a 5:1c 5:1e 5:2d 5:2b 6:0f ");
}

}  // namespace
}  // namespace rnicsim::sim
