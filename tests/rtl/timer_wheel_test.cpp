// SPDX-License-Identifier: Apache-2.0
#include <Vtimer_wheel.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "tests/rtl/clocked.h"

namespace rnicsim::rtl::test {
namespace {

constexpr unsigned kTimers = 512;
constexpr std::uint64_t kRows = 64;

// Model of the module's function, without its structure.
class Reference {
 public:
  bool armed(unsigned timer) const { return deadlines_[timer].has_value(); }
  std::optional<std::uint64_t> earliest() const {
    return in_order_.empty() ? std::nullopt : std::optional(in_order_.begin()->first);
  }
  bool is_due(unsigned timer, std::uint64_t now) const { return deadlines_[timer] && *deadlines_[timer] <= now; }
  void cancel(unsigned timer) {
    if (deadlines_[timer]) in_order_.erase({*deadlines_[timer], timer});
    deadlines_[timer].reset();
  }
  void set(unsigned timer, std::uint64_t deadline) {
    cancel(timer);
    deadlines_[timer] = deadline;
    in_order_.insert({deadline, timer});
  }
  // Calls `due` for every timer that becomes due.
  template <class Function>
  void advance(std::uint64_t from, std::uint64_t to, Function due) const {
    for (auto i = in_order_.lower_bound({from + 1, 0}); i != in_order_.end() && i->first <= to; ++i) due(i->second);
  }

 private:
  std::array<std::optional<std::uint64_t>, kTimers> deadlines_;
  std::set<std::pair<std::uint64_t, unsigned>> in_order_;
};

// The wheel, clocked as a shell would clock it, and the model, compared at every cycle.
class Bench {
 public:
  explicit Bench(bool gated) : gated_(gated) {}

  std::uint64_t now() const { return now_; }
  // Most cycles without back-pressure from a timer's deadline to its delivery.
  std::uint64_t latest() const { return latest_; }
  std::uint64_t cycles() const { return cycles_; }
  unsigned fired() const { return fired_; }
  unsigned withdrawn() const { return withdrawn_; }
  bool busy() { return wheel_->busy_o; }
  bool armed() { return wheel_->armed_o; }
  std::uint64_t wake() { return wheel_->wake_o; }
  std::optional<std::uint64_t> earliest() const { return reference_.earliest(); }
  bool setting() { return wheel_->set_valid_i; }

  void advance(std::uint64_t ticks) {
    reference_.advance(now_, now_ + ticks, [this](unsigned timer) { due_since_[timer] = free_cycles_; });
    now_ += ticks;
    wheel_->now_i = now_;
    wheel_.settle();
  }
  void set(unsigned timer, std::uint64_t after) { offer(timer, false, after); }
  void cancel(unsigned timer) { offer(timer, true, 77); }
  // One cycle, if the clock runs.
  void cycle(bool takes) {
    wheel_->expired_ready_i = takes;
    wheel_.settle();
    check();
    if (gated_ && !wheel_->busy_o && !wheel_->set_valid_i) return;
    const unsigned timer = wheel_->set_timer_i;
    const bool sets = wheel_->set_valid_i && wheel_->set_ready_o, expired = wheel_->expired_valid_o;
    if (expired && takes) {
      ++fired_;
      latest_ = std::max(latest_, free_cycles_ - due_since_[wheel_->expired_timer_o]);
      reference_.cancel(wheel_->expired_timer_o);
    }
    if (sets) {
      withdrawn_ += expired && !takes && wheel_->expired_timer_o == timer;
      if (wheel_->set_cancel_i) reference_.cancel(timer);
      if (!wheel_->set_cancel_i) reference_.set(timer, now_ + wheel_->set_after_i + 1);
    }
    wheel_.tick();
    ++cycles_;
    free_cycles_ += !expired || takes;
    if (sets) wheel_->set_valid_i = false;
    wheel_.settle();
  }
  void reset() {
    wheel_->rst_ni = 0;
    wheel_.tick();
    wheel_->rst_ni = 1;
    wheel_.settle();
    for (unsigned i = 0; i < kTimers; ++i) reference_.cancel(i);
  }
  // Runs until the offered input is accepted and no work is left at the present time.
  void settle() {
    int left = 100'000;
    do cycle(true);
    while ((busy() || setting()) && --left != 0 && !::testing::Test::HasFatalFailure());
    ASSERT_NE(left, 0) << "busy for ever";
  }

 private:
  void offer(unsigned timer, bool cancels, std::uint64_t after) {
    wheel_->set_valid_i = true;
    wheel_->set_timer_i = static_cast<std::uint16_t>(timer);
    wheel_->set_cancel_i = cancels;
    wheel_->set_after_i = after;
    wheel_.settle();
  }
  void check() {
    if (wheel_->expired_valid_o) {
      ASSERT_TRUE(reference_.is_due(wheel_->expired_timer_o, now_))
          << "timer " << wheel_->expired_timer_o
          << (reference_.armed(wheel_->expired_timer_o) ? " early" : " not armed");
    }
    if (!wheel_->busy_o && reference_.earliest()) {
      ASSERT_GT(*reference_.earliest(), now_) << "it sleeps while a timer is due";
      ASSERT_TRUE(wheel_->armed_o);
      ASSERT_LE(wheel_->wake_o, *reference_.earliest()) << "it sleeps too long";
    }
    if (!wheel_->busy_o && wheel_->armed_o) {
      ASSERT_GT(wheel_->wake_o, now_);
    }
    ASSERT_FALSE(wheel_.failed());
  }

  const bool gated_;
  Clocked<Vtimer_wheel> wheel_;
  Reference reference_;
  std::uint64_t now_ = 0, cycles_ = 0, free_cycles_ = 0, latest_ = 0;
  std::array<std::uint64_t, kTimers> due_since_{};
  unsigned fired_ = 0, withdrawn_ = 0;
};

TEST(TimerWheel, FiresAtItsTickAndNotOneEarlier) {
  for (const std::uint64_t start : {0, 1, 63, 1000}) {
    for (const std::uint64_t after : {0, 1, 62, 63, 64, 126, 127, 128, 640}) {
      SCOPED_TRACE(std::to_string(start) + " + " + std::to_string(after));
      Bench wheel(true);
      wheel.advance(start);
      wheel.set(511, after);
      wheel.settle();
      for (std::uint64_t tick = 0; tick <= after; ++tick) {
        ASSERT_EQ(wheel.fired(), 0u);
        wheel.advance(1);
        wheel.settle();
      }
      EXPECT_EQ(wheel.fired(), 1u);
      EXPECT_LE(wheel.latest(), 6u);
      EXPECT_FALSE(wheel.armed());
    }
  }
}

TEST(TimerWheel, SleepsFromRevolutionToRevolution) {
  Bench wheel(true);
  wheel.set(3, 999);
  wheel.settle();
  int wakes = 0;
  for (; wheel.armed() && wakes < 50; ++wakes) {
    wheel.advance(wheel.wake() - wheel.now());
    ASSERT_TRUE(wheel.busy());
    wheel.settle();
  }
  EXPECT_EQ(wheel.now(), 1000u);
  EXPECT_EQ(wheel.fired(), 1u);
  EXPECT_EQ(wakes, 1000 / 64 + 1);
  EXPECT_LT(wheel.cycles(), 120u);
}

TEST(TimerWheel, WakesFromALongSleepInAFewCycles) {
  Bench wheel(true);
  wheel.set(1, 40);
  wheel.settle();
  wheel.set(2, 1u << 31);
  wheel.settle();
  const auto before = wheel.cycles();
  wheel.advance(1u << 30);
  wheel.settle();
  EXPECT_EQ(wheel.fired(), 1u);
  EXPECT_LT(wheel.cycles() - before, 20u);
}

// All timers at once, far beyond a revolution: each row has eight timers.
TEST(TimerWheel, FiresAllThatAreDueAfterAJump) {
  for (const std::uint64_t jump : {64, 65, 127, 128, 100'000}) {
    Bench wheel(true);
    for (unsigned i = 0; i < kTimers; ++i) {
      wheel.set(i, i % kRows);
      wheel.settle();
    }
    wheel.advance(jump);
    const auto before = wheel.cycles();
    wheel.settle();
    EXPECT_EQ(wheel.fired(), kTimers) << jump;
    EXPECT_FALSE(wheel.armed());
    // Per row: the row, eight groups, and a timer in each.
    EXPECT_LT(wheel.cycles() - before, 64u * (2 + 8 * 2 + 8 * 2) + 10u);
  }
}

TEST(TimerWheel, WithdrawsAnExpiryWhoseTimerIsSetOrCancelled) {
  for (const bool cancels : {false, true}) {
    Bench wheel(true);
    wheel.set(100, 9);
    wheel.settle();
    wheel.advance(10);
    for (int i = 0; i < 20; ++i) wheel.cycle(false);
    // Setting another timer leaves the expiry.
    wheel.set(101, 1000);
    for (int i = 0; i < 20; ++i) wheel.cycle(false);
    EXPECT_TRUE(wheel.busy());
    if (cancels) wheel.cancel(100);
    if (!cancels) wheel.set(100, 9);
    for (int i = 0; i < 4; ++i) wheel.cycle(false);
    EXPECT_EQ(wheel.withdrawn(), 1u);
    wheel.settle();
    EXPECT_EQ(wheel.fired(), 0u);
    wheel.advance(10);
    wheel.settle();
    EXPECT_EQ(wheel.fired(), cancels ? 0u : 1u);
  }
}

TEST(TimerWheel, ForgetsAllInReset) {
  Bench wheel(true);
  for (unsigned i = 0; i < kTimers; ++i) {
    wheel.set(i, i % kRows);
    wheel.settle();
  }
  wheel.reset();
  EXPECT_FALSE(wheel.busy());
  EXPECT_FALSE(wheel.armed());
  // The rows and words of these timers have their content from before the reset.
  for (const unsigned timer : {5u, 6u, 200u}) {
    wheel.set(timer, timer % kRows);
    wheel.settle();
  }
  wheel.advance(kRows);
  wheel.settle();
  EXPECT_EQ(wheel.fired(), 3u);
  EXPECT_FALSE(wheel.armed());
}

TEST(TimerWheel, TakesASetInTwoCyclesAndInFourWhileTheHandWorks) {
  Bench wheel(true);
  const auto set_all = [&wheel] {
    const auto before = wheel.cycles();
    for (unsigned i = 0; i < kTimers; ++i) {
      wheel.set(i, 200);
      for (int left = 10; wheel.setting() && left != 0; --left) wheel.cycle(true);
    }
    return wheel.cycles() - before;
  };
  EXPECT_EQ(set_all(), 2 * kTimers - 1);
  wheel.settle();
  wheel.advance(64 + 201 % 64);  // all expire in one row
  EXPECT_NEAR(static_cast<double>(set_all()), 4.0 * kTimers, 32);
}

// Movement of `now`.
enum class Time { creeps, jumps, sleeps };

struct Walk {
  const char* name;
  unsigned timers;  // number of timers used
  Inserter::Mode sets;
  unsigned every;  // one set in so many open cycles
  Inserter::Mode takes;
  Time time;
  bool gated;
  unsigned longest;   // longest deadline, in ticks
  unsigned patience;  // most cycles to a delivery: the measured number plus a quarter
};

class TimerWheelWalk : public ::testing::TestWithParam<Walk> {
 protected:
  unsigned random(unsigned below) { return static_cast<unsigned>(random_()) % below; }
  unsigned after() {
    if (random(100) == 0) return 1'000'000 + random(1'000'000);
    switch (random(4)) {
      case 0: return random(8);
      case 1: return kRows * (1 + random(1 + GetParam().longest / kRows)) - 1;  // a whole number of revolutions
      default: return random(GetParam().longest);
    }
  }
  unsigned ticks(Bench& wheel) {
    switch (GetParam().time) {
      case Time::creeps: return random(16) == 0;
      case Time::jumps:
        if (random(40) != 0) return 0;
        if (random(8) == 0) return kRows * random(4);
        return random(50) == 0 ? 100'000 + random(1000) : random(150);
      case Time::sleeps: break;
    }
    // As a shell does: to the time at which the clock is needed, or to an earlier external event.
    if (wheel.busy() || !wheel.armed()) return random(8) == 0;
    const auto wait = static_cast<unsigned>(wheel.wake() - wheel.now());
    return random(4) == 0 ? random(wait) : wait;
  }

 private:
  std::mt19937 random_{4};
};

TEST_P(TimerWheelWalk, FiresOnceForEachArming) {
  const auto& walk = GetParam();
  Bench wheel(walk.gated);
  Inserter sets(walk.sets, 1), takes(walk.takes, 2);
  for (int i = 0; i < 60'000 && !HasFatalFailure(); ++i) {
    wheel.advance(ticks(wheel));
    if (!wheel.setting() && sets.open() && random(walk.every) == 0) {
      // Neighbours share a word; the other timers share only a row.
      const auto timer = random(walk.timers) * (random(2) == 0 ? 1 : kTimers / walk.timers);
      if (random(5) == 0)
        wheel.cancel(timer);
      else
        wheel.set(timer, after());
    }
    wheel.cycle(takes.open());
  }
  for (int left = 100'000; wheel.earliest() && !HasFatalFailure(); --left) {
    ASSERT_NE(left, 0) << "something is never delivered";
    wheel.settle();
    if (wheel.earliest()) wheel.advance((random(2) == 0 ? wheel.wake() : *wheel.earliest()) - wheel.now());
  }
  EXPECT_GT(wheel.fired(), 150u);
  EXPECT_LE(wheel.latest(), walk.patience);
  RecordProperty("latest", std::to_string(wheel.latest()));
  if (walk.takes != Inserter::Mode::always) {
    EXPECT_GT(wheel.withdrawn(), 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Over, TimerWheelWalk,
    ::testing::Values(
        Walk{"one", 1, Inserter::Mode::often, 8, Inserter::Mode::bursts, Time::sleeps, true, 200, 13},
        Walk{"few_creeping", 8, Inserter::Mode::bursts, 20, Inserter::Mode::always, Time::creeps, false, 200, 46},
        Walk{"few_jumping", 8, Inserter::Mode::often, 16, Inserter::Mode::often, Time::jumps, true, 200, 150},
        Walk{"few_asleep", 4, Inserter::Mode::seldom, 4, Inserter::Mode::often, Time::sleeps, true, 1000, 46},
        Walk{"some_never_gated", 64, Inserter::Mode::bursts, 8, Inserter::Mode::often, Time::jumps, false, 300, 370},
        Walk{"some_short", 64, Inserter::Mode::often, 16, Inserter::Mode::bursts, Time::creeps, true, 20, 500},
        Walk{"all_creeping", 512, Inserter::Mode::bursts, 8, Inserter::Mode::seldom, Time::creeps, true, 500, 225},
        Walk{"all_jumping", 512, Inserter::Mode::always, 1, Inserter::Mode::often, Time::jumps, true, 100, 13600},
        Walk{"all_asleep", 512, Inserter::Mode::seldom, 8, Inserter::Mode::always, Time::sleeps, true, 2000, 3400}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rnicsim::rtl::test
