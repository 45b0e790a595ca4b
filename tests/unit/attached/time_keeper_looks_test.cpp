// SPDX-License-Identifier: Apache-2.0
// Reads of memory by polling threads. A program finds the same things at the same times as if each read took a turn,
// however few reads take one, and whichever threads are parked.
#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "tests/unit/attached/time_keeper_story.h"

namespace rnicsim::sim::test::time_keeper {
namespace {

constexpr Duration kPoll = 20_ns;
constexpr Duration kYield = 300_ns;

TEST_F(TimeKeeperTest, ALookSeesWhatWasWrittenSomeTimeBeforeItsEnd) {
  bool written = false;
  Process& process = world.attach(0, [&](Program& me) -> Script {
    while (!written) co_await me.look(kPoll);
    tell("written", me);
  });
  world.keeper.threads().at(1005_ns, [&] {
    written = true;
    world.keeper.memory_waits().written(process, kRing, 64);
  });
  world.run();
  EXPECT_THAT(story, testing::ElementsAre(std::pair("written", 1100_ns)));
}

TEST_F(TimeKeeperTest, LooksThatNothingCanChangeTakeNoTurn) {
  world.attach(0, [&](Program& me) -> Script {
    while (me.clock() < 100_us) co_await me.look(kPoll);
    tell("looked", me);
  });
  world.run();
  EXPECT_THAT(story, testing::ElementsAre(std::pair("looked", 100_us)));
  EXPECT_LT(world.turns.size(), 5u);
}

TEST_F(TimeKeeperTest, EachLookTakesATurnIfAsked) {
  World each({.each_look = true});
  std::size_t turns = 0;
  each.attach(0, [&](Program& me) -> Script {
    for (int i = 0; i < 100; ++i) co_await me.look(kPoll);
    turns = each.turns.size();
  });
  each.run();
  EXPECT_GE(turns, 90u);
}

// --- Random loops.

constexpr Duration kEnd = 60_us;  // after the last write
constexpr int kQueues = 5, kSlots = 3, kFlags = 2;

// One object that a thread reads in a round.
struct Step {
  enum class Kind { queue, slot, flag, yield, clock } kind;
  int which = 0;
};
struct Loop {
  std::uint32_t host = 0;
  bool thread_of_last = false;
  std::vector<Step> steps;
  int gives_up_after = 0;    // failed reads; 0: never gives up
  bool raises_flag = false;  // after it found something
  int finds = 0;             // number of finds after which the loop ends
};
struct Write {
  std::size_t loop;  // index of the loop whose process gets the write
  bool queue;
  int which;
  Duration at;
};
struct Tale {
  std::vector<Loop> loops;
  std::vector<Write> writes;
};

Tale random_tale(std::mt19937& random) {
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  Tale tale;
  const int loops = 1 + below(4);
  for (int i = 0; i < loops; ++i) {
    Loop loop;
    loop.host = std::uint32_t(below(2));
    loop.thread_of_last = i > 0 && below(2) == 0;
    if (loop.thread_of_last) loop.host = tale.loops.back().host;
    const int steps = 1 + below(8);
    for (int k = 0; k < steps; ++k) {
      constexpr Step::Kind kKinds[] = {Step::Kind::queue, Step::Kind::queue, Step::Kind::queue,
                                       Step::Kind::slot,  Step::Kind::flag,  Step::Kind::yield};
      loop.steps.push_back({kKinds[below(6)], below(kQueues)});
    }
    loop.steps.push_back({Step::Kind::queue, below(kQueues)});
    if (below(4) == 0) loop.steps.insert(loop.steps.begin() + below(int(loop.steps.size())), {Step::Kind::clock, 0});
    if (below(4) == 0) loop.gives_up_after = 1 + below(400);
    loop.raises_flag = below(2) == 0;
    loop.finds = 1 + below(6);
    tale.loops.push_back(loop);
  }
  const int writes = 5 + below(40);
  for (int i = 0; i < writes; ++i)
    tale.writes.push_back({std::size_t(below(loops)), below(3) != 0, below(kQueues), 10_ns * (100 + below(3000))});
  return tale;
}

// Runs a tale and logs what its loops found, and when. `parks`: loops are parked, as followed loops of real programs.
class RandomTelling {
 public:
  RandomTelling(World& world, const Tale& tale, bool parks, std::mt19937 whims)
      : world_(world), tale_(tale), parks_(parks), whims_(whims), memory_(tale.loops.size()) {
    begin_ = now() + 1_us;
    for (std::size_t i = 0; i < tale.loops.size(); ++i) {
      if (tale.loops[i].thread_of_last) continue;
      Process& process = world.attach(tale.loops[i].host, std::uint32_t(i), begin_, body_of(i, true));
      for (std::size_t k = i; k < tale.loops.size() && (k == i || tale.loops[k].thread_of_last); ++k)
        processes_[k] = &process;
    }
    for (const Write& write : tale.writes)
      world.keeper.threads().at(begin_ + write.at, [this, write] {
        Memory& memory = memory_of(write.loop);
        const int which = write.which % kSlots;
        ++(write.queue ? memory.queues[write.which] : memory.slots[which]);
        if (!processes_[write.loop]->alive) return;
        world_.keeper.memory_waits().written(*processes_[write.loop], write.queue ? kRing : page_of(which), 64);
      });
  }

  std::map<std::size_t, std::vector<std::pair<std::string, Duration>>> tell() {
    world_.run();
    world_.clear();
    return found_;
  }

 private:
  struct Memory {
    int queues[kQueues] = {}, slots[kSlots] = {}, flags[kFlags] = {};
  };
  static std::uint64_t page_of(int slot) { return kBuffer + abi::kLoopPage * std::uint64_t(slot); }
  Memory& memory_of(std::size_t loop) {
    while (tale_.loops[loop].thread_of_last) --loop;
    return memory_[loop];
  }

  // The first loop of a process starts the process's other threads.
  Program::Body body_of(std::size_t i, bool first) {
    return [this, i, first](Program& me) -> Script {
      for (std::size_t k = i + 1; first && k < tale_.loops.size() && tale_.loops[k].thread_of_last; ++k) {
        co_await me.new_thread(body_of(k, false));
        co_await me.call(Call::thread_start, me.value());
      }
      LoopState state{*this, i};
      while (!state.ended() && me.clock() < begin_ + kEnd) {
        const Step& step = state.next();
        if (state.may_park()) {
          if (co_await state.park(me) == 0)
            state.continue_at(me);
          else
            state.quiet = 0;
          continue;
        }
        state.begin(step, me);
        if (step.kind == Step::Kind::clock) co_await me.read_clock(25_ns);
        if (step.kind == Step::Kind::queue) co_await me.look(kPoll);
        if (step.kind == Step::Kind::yield) co_await me.look(kYield);
        if (state.end(me, step)) co_await me.act(100_ns);
      }
    };
  }

  // State of one thread's loop.
  struct LoopState {
    RandomTelling& telling;
    std::size_t index;
    std::size_t at = 0;
    int looks = 0, finds = 0;
    std::size_t quiet = 0;  // failed steps since the last find, store or clock read
    bool unmoved = false;
    std::vector<std::pair<std::size_t, abi::LoopLook>> round;  // steps of the last round, and the time of each read
    std::uint64_t round_changes = 0;

    const Loop& loop() const { return telling.tale_.loops[index]; }
    const Step& next() const { return loop().steps[at]; }
    bool ended() const {
      return finds >= loop().finds || (loop().gives_up_after != 0 && looks >= loop().gives_up_after);
    }
    static bool takes_time(const Step& step) {
      return step.kind == Step::Kind::queue || step.kind == Step::Kind::yield;
    }
    std::size_t first_look() const {
      return std::size_t(std::ranges::find_if(loop().steps, takes_time) - loop().steps.begin());
    }

    // True: the loop is at the first read of a round, after a complete round without a find.
    bool may_park() {
      const bool counts = loop().gives_up_after != 0;
      const bool reads = std::ranges::find(loop().steps, Step::Kind::clock, &Step::kind) != loop().steps.end();
      return telling.parks_ && !counts && !reads && at == first_look() && quiet >= loop().steps.size() &&
             telling.whims_() % 3 != 0;
    }
    Program::Answer park(Program& me) {
      std::vector<abi::LoopLook> times;
      Duration time;
      round.clear();
      for (std::size_t i = 0; i < loop().steps.size(); ++i) {
        const std::size_t step = (at + i) % loop().steps.size();
        if (!takes_time(loop().steps[step])) continue;
        const Duration cost = loop().steps[step].kind == Step::Kind::queue ? kPoll : kYield;
        times.push_back({std::uint64_t(time.ps), std::uint64_t((time + cost).ps)});
        round.push_back({step, times.back()});
        time += cost;
      }
      std::vector<std::uint64_t> pages;
      for (int i = 0; i < kSlots; ++i) pages.push_back(page_of(i));
      std::memcpy(me.input(), times.data(), times.size() * sizeof times[0]);
      std::memcpy(me.input() + times.size() * sizeof times[0], pages.data(), pages.size() * sizeof pages[0]);
      const auto proof = std::exchange(unmoved, false) ? abi::SpinProof::unmoved : abi::SpinProof::proved;
      return me.park(proof, time, times.size(), pages.size(), round_changes);
    }
    void continue_at(Program& me) {
      at = round[me.argument(2)].first;
      quiet = 0;
      unmoved = me.value() != 0;
    }
    void begin(const Step& step, const Program& me) {
      if (at == first_look()) round_changes = me.changes();
      if (takes_time(step)) ++looks;
      if (step.kind == Step::Kind::clock) quiet = 0;
    }
    // Returns true if the step found something.
    bool end(Program& me, const Step& step) {
      Memory& memory = telling.memory_of(index);
      const auto take = [&](int& count, const char* what) {
        if (count == 0) return false;
        --count;
        telling.found_[index].emplace_back(what + std::to_string(step.which), me.clock() - telling.begin_);
        return true;
      };
      bool found = false;
      if (step.kind == Step::Kind::queue) found = take(memory.queues[step.which], "queue ");
      if (step.kind == Step::Kind::slot) found = take(memory.slots[step.which % kSlots], "slot ");
      if (step.kind == Step::Kind::flag) found = take(memory.flags[step.which % kFlags], "flag ");
      at = (at + 1) % loop().steps.size();
      if (found) {
        ++finds;
        quiet = 0;
        unmoved = false;
        if (loop().raises_flag && step.kind != Step::Kind::flag) ++memory.flags[step.which % kFlags];
      } else {
        ++quiet;
      }
      return found;
    }
  };

  World& world_;
  const Tale& tale_;
  const bool parks_;
  std::mt19937 whims_;
  Duration begin_;
  std::vector<Memory> memory_;
  std::map<std::size_t, Process*> processes_;
  std::map<std::size_t, std::vector<std::pair<std::string, Duration>>> found_;
};

TEST(TimeKeeperLooks, RandomLoopsFindTheSameThingsAtTheSameTimes) {
  World each({.each_look = true});
  World free;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    std::mt19937 random(seed);
    const Tale tale = random_tale(random);
    const auto expected = RandomTelling(each, tale, false, random).tell();
    EXPECT_EQ(RandomTelling(free, tale, false, random).tell(), expected) << "not parked, seed " << seed;
    EXPECT_EQ(RandomTelling(free, tale, true, random).tell(), expected) << "parked, seed " << seed;
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace rnicsim::sim::test::time_keeper
