// SPDX-License-Identifier: Apache-2.0
// A stream's flow control delivers every byte in order, into free memory, and never stalls.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <deque>
#include <vector>

#include "verbs/rsockets/flow.h"

namespace rnicsim::rsockets {
namespace {

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr std::uint64_t kReceiveAddress = 0x10000;

// One direction of a connection: a sender, a receiver, and messages in flight between them.
struct Direction {
  Direction(std::uint32_t send_bytes, std::uint32_t half, std::uint16_t places)
      : ring(send_bytes),
        window(places),
        targets({kReceiveAddress, 1, half}),
        receive(half),
        credits(places),
        places(places),
        half(half),
        send_memory(send_bytes),
        receive_memory(2 * half) {}

  // Sends as many of the `wanted` bytes as one message may contain.
  std::uint32_t send(std::uint32_t wanted, bool inlined) {
    const std::uint32_t length = std::min({wanted, ring.available(), targets.room()});
    if (length == 0 || !window.open()) return 0;
    window.sent();
    const Extent target = targets.take(length);
    std::vector<std::uint8_t> bytes;
    if (inlined) {
      ring.count(length);
      for (std::uint32_t i = 0; i < length; ++i) bytes.push_back(next_written++);
    } else {
      for (const Piece& piece : ring.take(length)) {
        RC_ASSERT(piece.offset + piece.length <= send_memory.size());
        for (std::uint32_t i = 0; i < piece.length; ++i) send_memory[piece.offset + i] = next_written++;
        for (std::uint32_t i = 0; i < piece.length; ++i) bytes.push_back(send_memory[piece.offset + i]);
      }
    }
    RC_ASSERT(target.address - kReceiveAddress + bytes.size() <= receive_memory.size());
    std::ranges::copy(bytes, receive_memory.begin() + std::ptrdiff_t(target.address - kReceiveAddress));
    flying.push_back(length);
    unacknowledged.push_back(length);
    return length;
  }
  void arrive() {
    if (flying.empty()) return;
    RC_ASSERT(receive.arrived(flying.front()));
    flying.pop_front();
    RC_ASSERT(receive.messages() <= places);
  }
  void acknowledge() {
    if (unacknowledged.empty()) return;
    ring.release(unacknowledged.front());
    unacknowledged.pop_front();
  }
  std::uint32_t read(std::uint32_t wanted) {
    std::vector<std::uint8_t> peeked, got;
    const auto into = [&](std::vector<std::uint8_t>& bytes) {
      return [&](Piece piece) {
        RC_ASSERT(piece.offset + piece.length <= receive_memory.size());
        for (std::uint32_t i = 0; i < piece.length; ++i) bytes.push_back(receive_memory[piece.offset + i]);
      };
    };
    receive.peek(wanted, into(peeked));
    const std::uint32_t count = receive.read(wanted, credits, into(got));
    RC_ASSERT(got.size() == count);
    RC_ASSERT(peeked == got);
    for (const std::uint8_t byte : got) RC_ASSERT(byte == next_read++);
    return count;
  }
  // The receiver's messages arrive in order; the list changes before the grant is seen.
  bool grant() {
    if (!receive.half_free() && !credits.due()) return false;
    Grant next{credits.grant(), {}, false};
    if (receive.half_free()) {
      next.entry = {kReceiveAddress + receive.publish(), 1, half};
      next.publishes = true;
    }
    grants.push_back(next);
    return true;
  }
  bool take_grant() {
    if (grants.empty()) return false;
    if (grants.front().publishes) {
      RC_ASSERT(list[entry].length == 0u);
      list[entry] = encode(grants.front().entry, false);
      entry = (entry + 1) % Targets::kEntries;
    }
    window.granted(grants.front().limit);
    targets.look(list);
    grants.pop_front();
    return true;
  }

  struct Grant {
    std::uint16_t limit;
    Extent entry;
    bool publishes;
  };

  SendRing ring;
  SendWindow window;
  Targets targets;
  ReceiveRing receive;
  ReceiveWindow credits;
  std::uint16_t places;
  std::uint32_t half;
  std::vector<std::uint8_t> send_memory;
  std::vector<std::uint8_t> receive_memory;
  std::array<WireExtent, Targets::kEntries> list{};
  std::uint32_t entry = 1;
  std::deque<std::uint32_t> flying;
  std::deque<std::uint32_t> unacknowledged;
  std::deque<Grant> grants;
  std::uint8_t next_written = 0;
  std::uint8_t next_read = 0;
};

RC_GTEST_PROP(RsocketFlow, EveryByteArrivesInOrder, ()) {
  Direction way(*rc::gen::inRange<std::uint32_t>(1, 300), *rc::gen::inRange<std::uint32_t>(1, 100),
                *rc::gen::inRange<std::uint16_t>(1, 20));
  std::uint64_t sent = 0, read = 0;
  const auto steps = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 1000));
  for (const std::uint32_t step : steps) {
    switch (step % 6) {
      case 0:
      case 1: sent += way.send(1 + step / 6, step % 2 == 0); break;
      case 2: way.arrive(); break;
      case 3: way.acknowledge(); break;
      case 4: read += way.read(1 + step / 6); break;
      default:
        way.grant();
        way.take_grant();
        break;
    }
  }
  // With a reader that reads, all remaining bytes arrive.
  const std::uint64_t wanted = sent + 1000;
  for (int round = 0; sent < wanted || read < sent; ++round) {
    RC_ASSERT(round < 5000);
    if (sent < wanted) sent += way.send(std::uint32_t(wanted - sent), round % 2 == 0);
    way.arrive();
    way.acknowledge();
    read += way.read(1000);
    way.grant();
    way.take_grant();
  }
  RC_ASSERT(sent == wanted);
  RC_ASSERT(read == sent);
}

TEST(RsocketFlow, TheWindowOpensAnewAtHalf) {
  ReceiveWindow receive(4);
  SendWindow send(4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(send.open());
    send.sent();
  }
  EXPECT_FALSE(send.open());
  receive.consumed();
  EXPECT_FALSE(receive.due());
  receive.consumed();
  EXPECT_TRUE(receive.due());
  EXPECT_EQ(receive.grant(), 6);
  EXPECT_FALSE(receive.due());
  send.granted(6);
  EXPECT_TRUE(send.open());
}

TEST(RsocketFlow, CountsRunOverTheirEnd) {
  ReceiveWindow receive(384);
  SendWindow send(384);
  for (int i = 0; i < 200000; ++i) {
    ASSERT_TRUE(send.open());
    send.sent();
    receive.consumed();
    if (receive.due()) send.granted(receive.grant());
  }
}

TEST(RsocketFlow, APeerThatSaysMoreThanItHasRoomForIsFound) {
  ReceiveRing ring(100);
  EXPECT_TRUE(ring.arrived(60));
  EXPECT_FALSE(ring.arrived(41));
  EXPECT_TRUE(ring.half_free());
  EXPECT_EQ(ring.publish(), 100u);
  EXPECT_FALSE(ring.half_free());
  EXPECT_TRUE(ring.arrived(40));
  EXPECT_TRUE(ring.arrived(100));
  EXPECT_FALSE(ring.arrived(1));
}

// An entry that the peer writes too early does not replace one that still has room.
TEST(RsocketFlow, AnEntryInUseIsKept) {
  Targets targets({1000, 1, 10});
  std::array<WireExtent, Targets::kEntries> list{WireExtent{5000, 2, 10}, WireExtent{2000, 1, 10}};
  targets.look(list);
  EXPECT_EQ(list[1].length, 0u);
  targets.look(list);
  EXPECT_EQ(targets.take(10), (Extent{1000, 1, 10}));
  EXPECT_EQ(targets.take(4), (Extent{2000, 1, 4}));
  targets.look(list);
  EXPECT_EQ(targets.take(6), (Extent{2004, 1, 6}));
  EXPECT_EQ(targets.take(10), (Extent{5000, 2, 10}));
  EXPECT_EQ(targets.room(), 0u);
}

TEST(RsocketFlow, ControlMessagesHaveTheirPlaces) {
  ControlPlaces places;
  for (std::uint32_t i = 0; i < kControlPlaces; ++i) EXPECT_EQ(places.take(), i);
  EXPECT_FALSE(places.available());
  places.done();
  EXPECT_TRUE(places.available());
  EXPECT_EQ(places.take(), 0u);
  for (std::uint32_t i = 0; i < kControlPlaces; ++i) places.done();
  EXPECT_TRUE(places.idle());
}

TEST(RsocketFlow, ASendGrows) {
  Overlap overlap;
  std::vector<std::uint32_t> lengths;
  for (std::size_t left = 200000; left != 0; left -= lengths.back()) lengths.push_back(overlap.next(left));
  EXPECT_EQ(lengths, (std::vector<std::uint32_t>{2048, 4096, 8192, 16384, 32768, 65536, 65536, 5440}));
}

}  // namespace
}  // namespace rnicsim::rsockets
