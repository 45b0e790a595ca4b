// SPDX-License-Identifier: Apache-2.0
// Random stories of scripted programs: the rules of docs/virtual-time.md hold whatever they do, and however fast or
// slow the real world is. scripted_programs.h checks the rules of each turn, this file those of each call.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <ostream>
#include <random>

#include "tests/unit/attached/scripted_programs.h"
#include "tests/unit/attached/signal_model.h"

namespace rnicsim::sim::test {

using namespace literals;

enum class Move {
  act,
  read_clock,
  post,
  sleep,
  spin,
  poll,
  wait,
  wake,
  command,
  thread,
  fork,
  die,
  signal,
  await,
  mask
};
enum class Happening { ring_write, write, interrupt, signal, kill };

// Times are multiples of this step, so that many are equal.
constexpr Duration kStep = 500_ns;
// Two signals that merge, two that queue, and one that is ignored.
constexpr std::uint32_t kSignals[] = {SIGUSR1, SIGUSR2, 40, 41, SIGWINCH};
constexpr std::uint32_t kSignalCount = std::size(kSignals);

struct Step {
  Move move;
  std::uint32_t steps;
  std::uint32_t which;  // address, body, or receiver of a signal
};
struct Event {
  Happening happening;
  std::uint32_t steps;
  std::uint32_t program;
};
struct Start {
  std::uint32_t host;
  std::uint32_t steps;
};
struct Story {
  std::vector<Start> programs;            // program i runs body i
  std::vector<std::vector<Step>> bodies;  // a thread or child runs a later body than its creator, so that stories end
  std::vector<Event> events;
};

void showValue(const Story& story, std::ostream& out) {
  for (const Start& start : story.programs) out << "h" << start.host << " from " << start.steps << "\n";
  for (const auto& body : story.bodies) {
    out << "body:";
    for (const Step& step : body) out << " " << int(step.move) << "(" << step.steps << "," << step.which << ")";
    out << "\n";
  }
  for (const Event& event : story.events)
    out << "event " << int(event.happening) << " at " << event.steps << " for " << event.program << "\n";
}

}  // namespace rnicsim::sim::test

namespace rc {
template <>
struct Arbitrary<rnicsim::sim::test::Story> {
  static Gen<rnicsim::sim::test::Story> arbitrary() {
    using namespace rnicsim::sim::test;
    const auto number = [](std::uint32_t below) { return gen::inRange<std::uint32_t>(0, below); };
    // Many threads that wait for each other; few deaths, which would make the stories short.
    const auto move = gen::weightedElement<Move>({{3, Move::act},
                                                  {1, Move::read_clock},
                                                  {2, Move::post},
                                                  {2, Move::sleep},
                                                  {1, Move::spin},
                                                  {2, Move::poll},
                                                  {4, Move::wait},
                                                  {4, Move::wake},
                                                  {1, Move::command},
                                                  {4, Move::thread},
                                                  {1, Move::fork},
                                                  {1, Move::die},
                                                  {4, Move::signal},
                                                  {2, Move::await},
                                                  {2, Move::mask}});
    const auto happening = gen::weightedElement<Happening>({{8, Happening::ring_write},
                                                            {8, Happening::write},
                                                            {4, Happening::interrupt},
                                                            {6, Happening::signal},
                                                            {1, Happening::kill}});
    const auto step = gen::build<Step>(gen::set(&Step::move, move), gen::set(&Step::steps, number(12)),
                                       gen::set(&Step::which, number(3)));
    const auto event = gen::build<Event>(gen::set(&Event::happening, happening), gen::set(&Event::steps, number(80)),
                                         gen::set(&Event::program, number(4)));
    const auto start = gen::build<Start>(gen::set(&Start::host, number(3)), gen::set(&Start::steps, number(3)));
    return gen::build<Story>(gen::set(&Story::programs, gen::container<std::vector<Start>>(4, start)),
                             gen::set(&Story::bodies, gen::container<std::vector<std::vector<Step>>>(
                                                          7, gen::container<std::vector<Step>>(step))),
                             gen::set(&Story::events, gen::container<std::vector<Event>>(event)));
  }
};
}  // namespace rc

namespace rnicsim::sim::test {
namespace {

// One run of a story. A simple model checks the waits after they have ended.
class Telling {
 public:
  Telling(World& world, const Story& story, std::uint32_t haste) : world_(world), story_(story), real_world_(haste) {
    begin_ = now() + 1_us;
    world.on_turn = [this](Program& me, const ThreadSlot& slot) {
      if (std::erase(let_through_, &me) != 0) signals_.let_through(me);
      signals_.check_turn(me, slot);
    };
    world.on_thread = [this](const Process& process, std::uint32_t index) { signals_.begin_thread(process, index); };
    world.on_signal = [this](Thread& sender, const ThreadSlot& slot) { send(sender, slot); };
    std::vector<std::uint32_t> order(story.programs.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), real_world_);
    programs_.resize(order.size());
    for (const std::uint32_t i : order) {
      const Start& start = story.programs[i];
      programs_[i] = &world.attach(start.host, i, begin_ + kStep * start.steps, body(i));
    }
    auto events = story.events;
    std::shuffle(events.begin(), events.end(), real_world_);
    // Signals come in their order, and after other events of the same time: a signal wakes at once, other wake-ups
    // later.
    std::erase_if(events, is_signal);
    std::ranges::copy_if(story.events, std::back_inserter(events), is_signal);
    for (const Event& event : events)
      world.keeper.threads().at(begin_ + kStep * event.steps, [this, event] { happen(event); });
    world.disturb = [this] {
      if (real_world_() % 4 == 0) world_.keeper.threads().descriptors_may_be_ready();
    };
  }

  std::vector<World::Turn> tell() {
    world_.run();
    auto turns = std::move(world_.turns);
    // Times relative to the start of this run.
    for (World::Turn& turn : turns) turn.clock -= begin_;
    return turns;
  }

 private:
  struct Waiter {
    const Program* program;
    std::uint64_t address;
    std::optional<Duration> deadline;
    std::optional<Duration> woken;  // time of the wake-up by a waker
  };

  static bool is_signal(const Event& event) { return event.happening == Happening::signal; }
  void happen(const Event& event) {
    Process& process = *programs_[event.program];
    if (!process.alive) return;
    switch (event.happening) {
      case Happening::ring_write: ring_writes_.emplace_back(&process, now()); [[fallthrough]];
      case Happening::write:
        writes_.emplace_back(&process, now());
        return world_.keeper.memory_waits().written(
            process, event.happening == Happening::ring_write ? abi::kMemoryAddress : 0x7000'0000, 64);
      case Happening::interrupt:
        writes_.emplace_back(&process, now());
        return world_.keeper.memory_waits().interrupted(process);
      case Happening::signal:
        return raise(process, {.number = kSignals[event.steps % kSignalCount], .value = ++last_value_}, nullptr);
      case Happening::kill: return world_.kill(process);
    }
  }

  void raise(Process& process, const abi::SignalRecord& signal, Thread* only) {
    // Waits that a signal ends have no waker.
    signals_.send(process, signal, only);
    std::erase_if(waiters_, [&](const Waiter& waiter) { return signals_.is_due(*waiter.program) && !waiter.woken; });
    world_.keeper.signals().raise(process, signal, only);
  }
  // The receiver is the first process, the sender's process, or a thread of it.
  void send(Thread& sender, const ThreadSlot& slot) {
    Process& process = slot.argument[0] == 0 ? *programs_[0] : *sender.process;
    if (!process.alive) return;
    Thread* only = slot.argument[0] == 2 ? &process.threads[slot.argument[1] % process.threads.size()] : nullptr;
    if (only != nullptr && (only->state == ThreadState::free || only->state == ThreadState::starting)) return;
    raise(process, {.number = kSignals[slot.argument[1] % kSignalCount], .value = ++last_value_}, only);
  }
  static SignalSet some_of(std::uint32_t number) {
    SignalSet set = 0;
    for (std::uint32_t i = 0; i < kSignalCount; ++i)
      if ((number + 1) >> (i % 4) & 1) set |= set_of(kSignals[i]);
    return set;
  }

  using Writes = std::vector<std::pair<const Process*, Duration>>;
  static std::optional<Duration> first_write(const Writes& writes, const Program& me, Duration since) {
    for (const auto& [process, when] : writes)
      if (process == &me.process() && when > since) return when;  // a write at the same time counts as earlier
    return {};
  }

  Program::Body body(std::uint32_t number) {
    return [this, number](Program& me) -> Script {
      for (const Step& step : story_.bodies[number]) {
        const Duration span = kStep * step.steps;
        const std::uint64_t address = 0x1000 + 64 * step.which;
        const std::uint32_t later = number + 1 + step.which;
        const Duration turn = now();
        const Duration called = me.clock();
        switch (step.move) {
          case Move::act:
            for (std::uint32_t i = 0; i < step.steps; ++i) co_await me.act(kStep);
            break;
          case Move::read_clock:
            for (std::uint32_t i = 0; i < step.steps; ++i) co_await me.read_clock(kStep);
            break;
          case Move::post: me.post(step.which); break;
          case Move::sleep: {
            const Duration deadline = called + span;
            if (co_await me.sleep_until(deadline) == EINTR)
              world_.expect(signals_.interrupted(me) && me.clock() <= deadline, me, "a sleep ends without a signal");
            else
              world_.expect(me.clock() == std::max(deadline, called), me, "a sleep ends at its deadline");
            break;
          }
          case Move::spin: {
            Duration asked = called;
            do {
              asked = me.clock();
              co_await me.spin();
            } while (me.looks_again() && !signals_.interrupted(me));
            if (signals_.interrupted(me)) break;
            const auto write = first_write(writes_, me, turn);
            const Duration seen = std::max(asked, write.value_or(me.clock()) + world_.params_.times.detect);
            if (write) world_.expect(me.clock() <= seen, me, "it spins past a write");
            if (me.process().threads.size() == 1)
              world_.expect(write && (me.clock() == asked || me.clock() == seen), me, "it saw what was not there");
            break;
          }
          case Move::poll: {
            for (std::uint32_t i = 0; i <= step.steps; ++i) {
              const Duration before = me.clock();
              co_await me.look(kStep);
              world_.expect(me.clock() == before + kStep, me, "a look takes its time");
            }
            break;
          }
          case Move::wait: {
            const auto deadline = step.steps == 0 ? std::nullopt : std::optional(called + span);
            if (!signals_.is_due(me)) waiters_.push_back({&me, address, deadline, {}});
            const int error =
                co_await me.call(Call::wait_address, address, deadline ? std::uint64_t(deadline->ps) : abi::kForever);
            const auto waiter = std::ranges::find(waiters_, &me, &Waiter::program);
            if (error == EINTR) {
              world_.expect(signals_.interrupted(me) && waiter == waiters_.end(), me, "a wait ends without a signal");
              break;
            }
            if (error == ETIMEDOUT) {
              world_.expect(deadline && me.clock() == *deadline && !waiter->woken, me, "a wait ends at its deadline");
            } else {
              world_.expect(waiter->woken && me.clock() == *waiter->woken + world_.params_.times.wakeup, me,
                            "a wait ends when it is its turn to be woken");
            }
            waiters_.erase(waiter);
            break;
          }
          case Move::wake: {
            wake(me, address, step.steps);
            co_await me.call(Call::wake_address, address, step.steps);
            world_.expect(me.clock() == called, me, "a waker goes on at once");
            break;
          }
          case Move::command:
            co_await me.call(Call::command);
            world_.expect(me.clock() == called + world_.device_time, me, "an answer comes when the device gives it");
            break;
          case Move::thread:
            if (later >= story_.bodies.size()) break;
            co_await me.new_thread(body(later));
            co_await me.call(Call::thread_start, me.value());
            world_.expect(me.clock() == called, me, "a new thread begins at its creator's time");
            break;
          case Move::fork:
            if (later >= story_.bodies.size()) break;
            co_await me.fork(body(later));
            co_await me.call(Call::wait_child);
            break;
          case Move::signal: co_await me.call(Call::send_signal, step.which, step.steps); break;
          case Move::await: {
            const SignalSet wanted = some_of(step.steps + step.which);
            const auto deadline = called + span;
            const int error = co_await me.call(Call::await_signal, wanted, std::uint64_t(deadline.ps));
            signals_.check_answer(me, wanted, error, me.signal(), deadline);
            break;
          }
          case Move::mask: {
            const SignalSet blocked = step.steps < 4 ? 0 : some_of(step.steps);
            if (!signals_.set_mask(me, blocked)) break;
            let_through_.push_back(&me);
            co_await me.call(Call::take_signals, blocked);
            break;
          }
          case Move::die:
            if (step.steps == 0) co_await me.die();  // not always: otherwise stories would be short
            break;
        }
      }
    };
  }

  // Wakes waiters in order of arrival, without those whose wait has ended.
  void wake(const Program& me, std::uint64_t address, std::uint32_t most) {
    for (Waiter& waiter : waiters_) {
      if (most == 0) return;
      const bool waits = &waiter.program->process() == &me.process() && waiter.address == address && !waiter.woken &&
                         (!waiter.deadline || *waiter.deadline >= me.clock());
      if (!waits) continue;
      waiter.woken = std::max(me.clock(), waiter.program->clock());
      --most;
    }
  }

  World& world_;
  const Story& story_;
  std::mt19937 real_world_;
  Duration begin_;
  std::vector<Process*> programs_;
  Writes writes_;
  Writes ring_writes_;
  std::vector<Waiter> waiters_;
  SignalModel signals_{world_};
  std::vector<const Program*> let_through_;  // programs whose unblocking call is in progress
  std::uint64_t last_value_ = 0;
};

TEST(TimeKeeperWalk, EveryStoryKeepsTheRulesAndIsToldTheSameWayTwice) {
  ::setenv("RC_PARAMS", "seed=1 max_success=100 max_size=30", 0);
  World world;
  const auto told = [&world](const Story& story, std::uint32_t haste) {
    Telling telling(world, story, haste);
    auto turns = telling.tell();
    auto posted = world.posted.size();
    auto faults = world.faults;
    world.clear();
    world.disturb = nullptr;
    world.on_turn = nullptr;
    world.on_thread = nullptr;
    world.on_signal = nullptr;
    if (!faults.empty()) RC_FAIL(faults.front());
    return std::pair(turns, posted);
  };
  std::size_t turns = 0;
  EXPECT_TRUE(rc::check("the rules hold, and real time does not matter", [&](const Story& story) {
    const auto first = told(story, 1);
    turns += first.first.size();
    RC_ASSERT(told(story, 2) == first);
  }));
  EXPECT_GT(turns, 2'000u);
}

}  // namespace
}  // namespace rnicsim::sim::test
