// SPDX-License-Identifier: Apache-2.0
// Order and times of frames that leave a port.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "model/base/event_queue.h"
#include "model/base/ports/pause_frame.h"
#include "model/base/ports/transmit_port.h"

namespace rnicsim::transmit_port_test {
namespace {

using namespace rnicsim::literals;

// Every run has the same cases; RC_PARAMS in the environment selects others.
[[maybe_unused]] const int seeded = ::setenv("RC_PARAMS", "seed=1", 0);

constexpr Duration kTook = 10_ns;

Frame frame_of(std::uint64_t id, std::size_t bytes = 100) { return Frame::of(Payload(bytes), {}, {}, id); }

struct Left {
  std::uint64_t id;
  Duration began;
  bool operator==(const Left&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Left& left) { return out << left.id << " at " << left.began.ps; }

// A port, with operations at given times.
class Bench {
 public:
  explicit Bench(ByteCount capacity = TransmitPort::kUnlimited, std::uint8_t lossless = 0)
      : fresh_((sc_core::sc_get_curr_simcontext()->reset(), true)), port([this] { leave_due(); }, capacity, lossless) {}

  void at(Duration time, std::function<void()> action) { actions_.push(time, std::move(action)); }
  void send(std::uint64_t id, std::uint8_t priority, Duration from = now(), Duration took = kTook) {
    port.send(frame_of(id), from, took, priority);
  }
  const std::vector<Left>& run() {
    sc_core::sc_start(1, sc_core::SC_MS);
    return left;
  }

 private:
  void act() {
    std::function<void()> action;
    while (actions_.pop_due(action)) action();
  }
  void leave_due() {
    TransmitPort::Departure departure;
    while (port.pop_due(departure)) {
      left.push_back({departure.frame.id(), now() - departure.took});
      if (on_left) on_left(departure);
    }
  }

  const bool fresh_;

 public:
  TransmitPort port;
  std::vector<Left> left;
  std::function<void(const TransmitPort::Departure&)> on_left;

 private:
  EventQueue<std::function<void()>> actions_{[this] { act(); }};
};

TEST(TransmitPort, OneBehindTheOther) {
  Bench bench;
  bench.at(5_ns, [&] {
    bench.send(1, 0, 20_ns);
    bench.send(2, 0, 21_ns);
    bench.send(3, 0, 90_ns);
    EXPECT_EQ(bench.port.frames(), 3u);
    EXPECT_EQ(bench.port.bytes(), 300u);
  });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 20_ns}, {2, 30_ns}, {3, 90_ns}}));
  EXPECT_EQ(bench.port.frames(), 0u);
  EXPECT_EQ(bench.port.bytes(), 0u);
  EXPECT_EQ(bench.port.most_bytes(), 300u);
}

// Bytes that wait when the first bit leaves, without frames that arrive while the frame leaves.
TEST(TransmitPort, BytesThatWaitWhenAFrameBegins) {
  Bench bench;
  std::vector<std::uint64_t> behind;
  bench.on_left = [&](const TransmitPort::Departure& departure) { behind.push_back(departure.behind); };
  bench.at(5_ns, [&] {
    bench.send(1, 0, 20_ns);
    bench.send(2, 0, 21_ns);
  });
  bench.at(15_ns, [&] { bench.send(3, 0); });  // before the first bit of frame 1
  bench.at(25_ns, [&] { bench.send(4, 0); });  // after it
  bench.at(45_ns, [&] { bench.send(5, 0); });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 20_ns}, {2, 30_ns}, {3, 40_ns}, {4, 50_ns}, {5, 60_ns}}));
  EXPECT_EQ(behind, (std::vector<std::uint64_t>{200, 200, 100, 100, 0}));
}

TEST(TransmitPort, TheMostUrgentOfThoseThatMay) {
  Bench bench;
  bench.at(0_ns, [&] {
    bench.send(1, 0, 5_ns);
    bench.send(2, 3, 6_ns);
    bench.send(3, 7, 14_ns);
    bench.send(4, 7, 26_ns);  // not ready when the port becomes free
  });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 5_ns}, {3, 15_ns}, {2, 25_ns}, {4, 35_ns}}));
}

// Until the transmission begins, a more urgent frame goes first; afterwards the frame completes.
TEST(TransmitPort, AFrameThatHasBegunLeaves) {
  for (const bool in_time : {true, false}) {
    Bench bench;
    bench.at(0_ns, [&] { bench.send(1, 0, 20_ns); });
    bench.at(in_time ? 20_ns - 1_ps : 20_ns, [&] { bench.send(2, 1); });
    if (in_time)
      EXPECT_EQ(bench.run(), (std::vector<Left>{{2, 20_ns - 1_ps}, {1, 30_ns - 1_ps}}));
    else
      EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 20_ns}, {2, 30_ns}}));
  }
}

TEST(TransmitPort, APauseStopsItsPriorityAlone) {
  Bench bench;
  bench.at(0_ns, [&] {
    bench.send(1, 3, 20_ns);
    bench.send(2, 0, 40_ns);
    bench.port.pause(3, 100_ns);
  });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{2, 40_ns}, {1, 100_ns}}));
  EXPECT_EQ(bench.port.paused_ps(), 100'000u);
}

TEST(TransmitPort, APauseComesTooLateForWhatHasBegun) {
  for (const bool in_time : {true, false}) {
    Bench bench;
    bench.at(0_ns, [&] {
      bench.send(1, 3, 20_ns);
      bench.send(2, 3, 20_ns);
    });
    bench.at(in_time ? 20_ns - 1_ps : 20_ns, [&] { bench.port.pause(3, 100_ns); });
    if (in_time)
      EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 100_ns}, {2, 110_ns}}));
    else
      EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 20_ns}, {2, 100_ns}}));
  }
}

TEST(TransmitPort, APauseEndsEarlierOrLaterWhenToldAgain) {
  Bench bench;
  bench.at(0_ns, [&] {
    bench.send(1, 3);
    bench.send(2, 3);
    bench.send(3, 3);
    bench.port.pause(3, 100_ns);
  });
  bench.at(50_ns, [&] { bench.port.pause(3, now()); });
  bench.at(55_ns, [&] { bench.port.pause(3, 500_ns); });
  bench.at(400_ns, [&] { bench.port.pause(3, 600_ns); });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 0_ns}, {2, 50_ns}, {3, 600_ns}}));
  EXPECT_EQ(bench.port.paused_ps(), 50'000u + 545'000u);
}

TEST(TransmitPort, ControlFramesGoAheadAndNothingStopsThem) {
  Bench bench(100_B);
  bench.at(0_ns, [&] {
    for (std::uint8_t priority = 0; priority < kPriorities; ++priority) bench.port.pause(priority, 1_us);
    bench.send(1, 7);
    bench.send(2, TransmitPort::kControl);
  });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{2, 0_ns}, {1, 1_us}}));
}

// A cut-through frame is reported after its transmission began.
TEST(TransmitPort, OneThatBeganBeforeItWasSent) {
  Bench bench;
  bench.at(20_ns, [&] { bench.send(1, 0, 15_ns); });
  bench.at(22_ns, [&] { bench.send(2, 7, 14_ns); });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{1, 15_ns}, {2, 25_ns}}));
}

TEST(TransmitPort, ItsRoomIsItsCapacityToTheByte) {
  Bench bench(300_B, 1 << 5);
  bench.at(0_ns, [&] {
    bench.send(1, 0);
    bench.send(2, 3);
    EXPECT_TRUE(bench.port.has_room(frame_of(0, 100), 0));
    EXPECT_FALSE(bench.port.has_room(frame_of(0, 101), 0));
    bench.send(3, 5);
    EXPECT_TRUE(bench.port.has_room(frame_of(0, 100), 0));
    EXPECT_TRUE(bench.port.has_room(frame_of(0, 9000), 5));
  });
  bench.at(35_ns, [&] { EXPECT_TRUE(bench.port.has_room(frame_of(0, 300), 0)); });
  bench.run();
}

TEST(TransmitPort, ClearedItIsAsNew) {
  Bench bench;
  bench.at(0_ns, [&] {
    bench.send(1, 2);
    bench.send(2, 2);
    bench.port.pause(2, 500_ns);
  });
  bench.at(5_ns, [&] {
    bench.port.clear();
    EXPECT_EQ(bench.port.bytes(), 0u);
    bench.send(3, 2);
  });
  EXPECT_EQ(bench.run(), (std::vector<Left>{{3, 5_ns}}));
  EXPECT_EQ(bench.port.paused_ps(), 5'000u);
}

struct Offered {
  Duration at;    // time of send()
  Duration from;  // earliest time of departure
  std::uint8_t priority;
  std::uint64_t bytes;
  Duration began{-1};
};
struct Pause {
  std::uint8_t priority;
  Duration at;
  Duration until;  // end of the pause, unless another one follows sooner
};

Duration nanoseconds(int most) { return {*rc::gen::inRange<std::int64_t>(0, most) * 1000}; }
std::uint8_t some_priority() { return *rc::gen::inRange<std::uint8_t>(0, kPriorities); }

RC_GTEST_PROP(TransmitPortProperty, Whatever, ()) {
  constexpr std::uint64_t kCapacity = 1500;
  const std::uint8_t lossless = *rc::gen::arbitrary<std::uint8_t>();
  Bench bench({kCapacity}, lossless);
  std::vector<Offered> frames;
  std::vector<Pause> pauses;
  const auto counts = [&](const Offered& frame) { return (lossless >> frame.priority & 1) == 0; };
  std::uint64_t held = 0;
  std::string wrong;  // first violation
  const auto check = [&](bool right, const char* what) {
    if (!right && wrong.empty()) wrong = what;
  };
  Duration free;
  std::array<std::uint64_t, kPriorities> last{};
  const auto paused = [&](std::uint8_t priority, Duration at) {
    Duration until{-1};
    for (const auto& pause : pauses)
      if (pause.priority == priority && pause.at <= at) until = pause.until;
    return at < until;
  };
  bench.on_left = [&](const TransmitPort::Departure& leaving) {
    auto& frame = frames.at(leaving.frame.id() - 1);
    check(frame.began.ps == -1, "leaves twice");
    check(frame.priority == leaving.priority && frame.bytes == leaving.frame.size(), "is another");
    check(leaving.frame.id() > last[frame.priority], "overtakes in its priority");
    last[frame.priority] = leaving.frame.id();
    const auto begins = now() - leaving.took;
    check(begins >= free, "two on the line");
    check(begins >= frame.from, "leaves before it may");
    // At equal times the order of pause and frame decides, so such ties are not checked.
    const bool tie = std::ranges::any_of(pauses, [&](const Pause& pause) { return pause.at == begins; });
    if (!tie) {
      check(!paused(frame.priority, begins), "leaves while paused");
      for (const auto& other : frames) {
        const bool waits = other.began.ps == -1 && other.at < begins;
        if (!waits || other.from > begins || paused(other.priority, begins)) continue;
        check(other.priority <= frame.priority, "a more urgent one waits");
        const bool could_before = other.from < begins && !paused(other.priority, begins - 1_ps);
        check(!could_before || begins == free, "the line was idle");
      }
    }
    frame.began = begins;
    free = now();
    if (counts(frame)) held -= frame.bytes;
  };
  Duration time;
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    time += nanoseconds(20);
    if (*rc::gen::inRange(0, 4) == 0) {
      const auto priority = some_priority();
      const auto length = nanoseconds(60);
      bench.at(time, [&, priority, length] {
        pauses.push_back({priority, now(), now() + length});
        bench.port.pause(priority, now() + length);
      });
      continue;
    }
    // Within a priority, frames keep their order, as from one pipeline or one switch.
    const Offered frame{time, time + 30_ns, some_priority(), *rc::gen::inRange<std::uint64_t>(1, 700)};
    const auto took = nanoseconds(30) + 1_ps;
    bench.at(time, [&, frame, took] {
      auto made = frame_of(frames.size() + 1, frame.bytes);
      const bool room = !counts(frame) || held + frame.bytes <= kCapacity;
      check(bench.port.has_room(made, frame.priority) == room, "the room");
      if (!room) return;
      frames.push_back(frame);
      if (counts(frame)) held += frame.bytes;
      bench.port.send(std::move(made), frame.from, took, frame.priority);
    });
  }
  bench.run();
  for (const auto& frame : frames) check(frame.began.ps >= 0, "never leaves");
  RC_ASSERT(wrong == "");
  RC_ASSERT(bench.port.frames() == 0u);
  RC_ASSERT(held == 0u);
}

int priority_of(const PriorityMap& map, int dscp, VlanTag tag = {}) {
  return map.of(static_cast<std::uint8_t>(dscp << 2), tag);
}
VlanTag tag_of(int pcp) { return VlanTag(static_cast<std::uint16_t>(pcp << 13 | 100)); }

TEST(PriorityMap, ByPcpIfThatIsTrusted) {
  using Trust = PriorityMap::Trust;
  const auto map = PriorityMap::parse("26:1", "3:4 6-7:0", Trust::pcp);
  ASSERT_TRUE(map);
  for (const auto& [pcp, priority] : {std::pair(0, 0), {2, 2}, {3, 4}, {5, 5}, {6, 0}, {7, 0}})
    EXPECT_EQ(priority_of(*map, 26, tag_of(pcp)), priority) << pcp;
  EXPECT_EQ(priority_of(*map, 26), 0) << "without a tag";
  EXPECT_EQ(map->used(), 0b111111u & ~(1u << 3));
  EXPECT_EQ(priority_of(PriorityMap(), 26, tag_of(5)), 3) << "the DSCP is trusted";
  for (const char* bad : {"8:1", "3:8", "3", "5-4:1"}) EXPECT_FALSE(PriorityMap::parse("", bad, Trust::pcp)) << bad;
}

TEST(PriorityMap, ByClassSelectorAndAsSaid) {
  const PriorityMap map;
  for (int dscp = 0; dscp < 64; ++dscp) EXPECT_EQ(priority_of(map, dscp), dscp / 8);
  const auto said = PriorityMap::parse("26:1 40-47:5  0:7");
  ASSERT_TRUE(said);
  for (const auto& [dscp, priority] : {std::pair(26, 1), {25, 3}, {40, 5}, {47, 5}, {48, 6}, {0, 7}})
    EXPECT_EQ(priority_of(*said, dscp), priority) << dscp;
  EXPECT_TRUE(PriorityMap::parse(""));
  for (const char* bad :
       {"26", "64:1", "1:8", "5-4:1", "a:1", "1:1,2:2", "1:", "-1:1", "1-:1", "99999999999999999999:1"})
    EXPECT_FALSE(PriorityMap::parse(bad)) << bad;
}

Frame of_bytes(std::vector<std::uint8_t> bytes) { return Frame::of(Payload::copy_of(std::as_bytes(std::span(bytes)))); }

TEST(TrafficClass, OfBytes) {
  std::vector<std::uint8_t> bytes(34);
  bytes[12] = 0x08;
  bytes[15] = 0x6a;
  EXPECT_EQ(of_bytes(bytes).traffic_class(), 0x6a);
  EXPECT_EQ(PriorityMap().of(of_bytes(bytes)), 3);
  bytes[12] = 0x86;
  bytes[13] = 0xdd;
  bytes[14] = 0x66;
  bytes[15] = 0xaf;
  EXPECT_EQ(of_bytes(bytes).traffic_class(), 0x6a);
  bytes[12] = 0x89;
  EXPECT_EQ(of_bytes(bytes).traffic_class(), 0);
  bytes.resize(15);
  bytes[12] = 0x08;
  EXPECT_EQ(of_bytes(bytes).traffic_class(), 0);
}

// The tag precedes the frame's type.
TEST(TrafficClass, AfterATag) {
  std::vector<std::uint8_t> bytes(38);
  bytes[12] = 0x81;
  bytes[14] = 0x60;
  bytes[15] = 0x64;
  bytes[16] = 0x08;
  bytes[18] = 0x45;
  bytes[19] = 0x6a;
  auto frame = of_bytes(bytes);
  EXPECT_EQ(frame.tag().bits(), 0x6064);
  EXPECT_EQ(frame.tag().pcp(), 3);
  EXPECT_EQ(frame.traffic_class(), 0x6a);
  frame.mark();
  EXPECT_EQ(frame.traffic_class(), 0x6b);
  EXPECT_EQ(frame.header_span()[19], std::byte{0x6b});
  EXPECT_EQ(frame.header_span()[15], std::byte{0x64});
  bytes.resize(15);
  EXPECT_FALSE(of_bytes(bytes).tag());
  bytes[12] = 0x08;
  bytes.resize(34);
  EXPECT_FALSE(of_bytes(bytes).tag());
  EXPECT_EQ(of_bytes(bytes).tag().pcp(), 0);
}

TEST(PauseFrame, AsTheStandardHasIt) {
  PriorityPause pause{.enabled = 0x81};
  pause.quanta[0] = 0x1234;
  pause.quanta[7] = 1;
  const auto frame = to_frame(pause, {6, 0, 0, 1, 0, 2});
  std::vector<std::byte> bytes;
  frame.append_to(bytes);
  const std::vector<std::uint8_t> wanted{0x01, 0x80, 0xc2, 0, 0, 1, 6, 0, 0, 1, 0, 2, 0x88, 0x08, 0x01, 0x01, 0,
                                         0x81, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    1};
  ASSERT_EQ(bytes.size(), 60u);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[i]), i < wanted.size() ? wanted[i] : 0) << i;
  EXPECT_TRUE(is_mac_control(frame));
  EXPECT_EQ(priority_pause_of(frame), pause);
  EXPECT_EQ(pause.time(0, 100_Gbps), Duration{0x1234 * 5120});  // one quantum is 512 bits
}

TEST(PauseFrame, OthersAreNone) {
  const std::vector<std::uint8_t> good{0x01, 0x80, 0xc2, 0, 0, 1, 6, 0, 0, 1, 0, 2, 0x88, 0x08, 0x01, 0x01, 0,
                                       1,    0,    1,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0};
  EXPECT_TRUE(priority_pause_of(of_bytes(good)));
  for (const std::size_t changed : {5, 12, 15}) {  // address, type, opcode
    auto bytes = good;
    bytes[changed] ^= 2;
    EXPECT_FALSE(priority_pause_of(of_bytes(bytes))) << changed;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(priority_pause_of(of_bytes({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)})));
}

}  // namespace
}  // namespace rnicsim::transmit_port_test
