// SPDX-License-Identifier: Apache-2.0
// Scripted programs for tests of the time keeper: coroutines that run while they hold the turn and return the turn with
// co_await. Everything runs in one real thread. Invariants are checked at every turn.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/attached/time/time_keeper.h"

namespace rnicsim::sim::test {

using abi::Call;
using abi::ThreadSlot;

class Script {
 public:
  struct promise_type {
    Script get_return_object() { return Script(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  Script() = default;
  explicit Script(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Script(Script&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Script& operator=(Script&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Script() {
    if (handle_) handle_.destroy();
  }
  // Returns false at the end of the script.
  bool go_on() {
    handle_.resume();
    return !handle_.done();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// Interface for a script: its thread's slot, used as sim/host uses the slot.
class Program {
 public:
  using Body = std::function<Script(Program&)>;

  Program(Process& process, std::uint32_t index, Body body)
      : process_(process), index_(index), body_(std::move(body)), script_(body_(*this)) {}

  Duration clock() const { return {std::int64_t(slot().now)}; }
  Process& process() const { return process_; }
  std::uint32_t index() const { return index_; }
  std::uint64_t value() const { return slot().value; }
  SignalSet pending() const { return slot().pending; }
  abi::SignalRecord signal() const {
    abi::SignalRecord taken;
    std::memcpy(static_cast<void*>(&taken), slot().output, sizeof taken);
    return taken;
  }

  struct Answer {
    Program& program;
    bool called;  // false: the script continues without returning the turn
    bool await_ready() const { return !called; }
    void await_suspend(std::coroutine_handle<>) const {}
    int await_resume() const { return called ? program.slot().error : 0; }
  };
  Answer call(Call code, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0) {
    ThreadSlot& slot = this->slot();
    if (code != Call::sync && code != Call::look) ++slot.acted;
    slot.call = code;
    slot.argument[0] = a;
    slot.argument[1] = b;
    slot.argument[2] = c;
    slot.turn = ThreadSlot::kKernel;
    return {*this, true};
  }
  // A loop that waits for memory. If it was woken only by stores of other threads, it reports that it has stored
  // nothing.
  bool looks_again() const { return slot().call == Call::spin && slot().value != 0; }
  Answer spin() {
    return call(Call::spin, std::uint64_t(looks_again() ? abi::SpinProof::unmoved : abi::SpinProof::proved));
  }
  // A read of memory; takes a turn if memory may have changed.
  Answer look(Duration cost) {
    slot().now += std::uint64_t(cost.ps);
    ++slot().acted;
    return slot().now >= slot().looks_until ? call(Call::look) : Answer{*this, false};
  }
  // A loop of reads that returned to its start; the loop's input is in the slot.
  Answer park(abi::SpinProof proof, Duration period, std::size_t looks, std::size_t pages, std::uint64_t changes) {
    slot().argument[3] = pages;
    slot().argument[4] = changes;
    slot().argument[5] = slot().now - std::uint64_t(period.ps);
    return call(Call::spin, std::uint64_t(proof), std::uint64_t(period.ps), looks);
  }
  std::uint64_t changes() const { return slot().changes; }
  void reads_only_clocks(bool only) { slot().only_clocks = only ? 1 : 0; }
  std::byte* input() { return slot().input; }
  std::uint64_t argument(int i) const { return slot().argument[i]; }
  Answer sleep_until(Duration deadline) { return call(Call::sleep, std::uint64_t(deadline.ps)); }
  Answer wait_address(std::uint64_t address) { return call(Call::wait_address, address, abi::kForever); }
  // Advances the thread's clock by `cost`. At the limit act_until, the turn is returned.
  Answer act(Duration cost) {
    slot().now += std::uint64_t(cost.ps);
    ++slot().acted;
    return slot().now >= slot().act_until ? call(Call::look, 1) : Answer{*this, false};
  }
  Answer read_clock(Duration cost) {
    slot().now += std::uint64_t(cost.ps);
    return slot().now >= slot().run_until ? call(Call::look, 1) : Answer{*this, false};
  }
  void post(std::uint32_t offset) {
    ThreadSlot& slot = this->slot();
    abi::MmioWrite& entry = slot.mmio[slot.mmio_produced % ThreadSlot::kMmioEntries];
    entry.time = slot.now;
    entry.offset = offset;
    ++slot.mmio_produced;
  }
  // thread_new. The script follows with thread_start and the new thread's index, which is the value of this call.
  Answer new_thread(Body body) {
    child_ = std::move(body);
    return call(Call::thread_new);
  }
  Answer fork(Body body) {
    child_ = std::move(body);
    return call(Call::forked);
  }
  // Not calls: the process dies within this turn; or the thread blocks in the real kernel.
  Answer die() { return leave(TurnEnd::died); }
  Answer block() { return leave(TurnEnd::blocked); }
  void come_back() { call(Call::sync); }

 private:
  friend class World;
  ThreadSlot& slot() const { return process_.slot(index_); }
  Answer leave(TurnEnd end) {
    end_ = end;
    return {*this, true};
  }

  Process& process_;
  const std::uint32_t index_;
  Body body_;  // keeps the script's captured variables alive
  Script script_;
  Body child_;  // body of the thread that the pending call creates
  TurnEnd end_ = TurnEnd::given_back;
  Duration seen_clock_;
};

// The kernel's side and the real world around one time keeper. A World runs any number of stories, one after the other.
class World : public Programs, public CallHandler {
 public:
  struct Turn {
    Duration clock;  // the thread's clock at the start of the turn
    std::uint32_t host;
    std::uint32_t order;
    std::uint32_t thread;
    bool operator==(const Turn&) const = default;
  };

  explicit World(const TimeKeeperParams& params = {}) : params_(params) {
    keeper.set_handler(*this);
    keeper.on_standstill = [] { return false; };
  }

  Process& attach(std::uint32_t host, std::uint32_t order, Duration start, Program::Body body,
                  Process* parent = nullptr, Descriptor socket = {}) {
    Process::Identity identity;
    identity.host = host;
    identity.order = order;
    next_order_ = std::max(next_order_, order + 1);
    identity.pid = ::getpid();
    identity.program = "script";
    Process& process = keeper.add(std::make_unique<Process>(std::move(identity), std::move(socket)), start);
    process.parent = parent;
    script(process, 0, std::move(body));
    return process;
  }
  // Attaches a program now; host and order of attaching determine the rank.
  Process& attach(std::uint32_t host, Program::Body body) { return attach(host, next_order_, now(), std::move(body)); }
  Process& attach(std::uint32_t host, Program::Body body, Descriptor socket) {
    return attach(host, next_order_, now(), std::move(body), nullptr, std::move(socket));
  }
  Program& program(const Process& process, std::uint32_t index = 0) { return *scripts_.at({&process, index}); }
  // Runs until no event is pending.
  void run() {
    do sc_core::sc_start();
    while (keeper.outlast_silence());
    check_standstill();
  }
  // Ends all programs before the next story.
  void clear() {
    for (const auto& process : keeper.threads().processes())
      if (process->alive) process_died(*process);
    scripts_.clear();
    ended_.clear();
    masks.clear();
    orphans_.clear();
    next_order_ = 0;
    last_turn_ = {};
    last_thread_ = nullptr;
    turns.clear();
    posted.clear();
    faults.clear();
  }
  // Kills a process from outside while it waits; the keeper gets no message.
  void kill(const Process& process) { ended_.insert(&process); }

  OutputRelay output;
  const TimeKeeperParams params_;
  TimeKeeper keeper{"keeper", params_, *this, output};
  std::vector<Turn> turns;
  std::vector<std::pair<Duration, std::uint32_t>> posted;  // time of arrival at the device, and the offset
  std::vector<std::string> faults;                         // violated invariants
  Duration device_time{2'000'000};                         // time until the device answers a command
  std::map<std::pair<const Process*, std::uint32_t>, SignalMasks> masks;  // by thread; default: all signals caught
  std::function<void()> disturb;                              // called at each turn, to delay the test in real time
  std::function<void(Program&, const ThreadSlot&)> on_turn;   // called at the start of a turn
  std::function<void(Thread&, const ThreadSlot&)> on_signal;  // called when a signal is sent; slot: the arguments
  std::function<void(const Process&, std::uint32_t)> on_thread;

  void fault(const Program& program, const std::string& what) {
    faults.push_back("h" + std::to_string(program.process_.identity().host) + " process " +
                     std::to_string(program.process_.identity().order) + " thread " + std::to_string(program.index_) +
                     " at " + to_string(now()) + ": " + what);
  }
  void expect(bool holds, const Program& program, const char* what) {
    if (!holds) fault(program, what);
  }

  // --- Interface Programs.
  void give_turn(Thread& thread) override {
    Program& program = this->program(*thread.process, thread.index);
    expect(holder_ == nullptr, program, "another thread has the turn");
    holder_ = &thread;
    slot_of(thread).turn = ThreadSlot::kProcess;
  }
  TurnEnd await_turn_end(Thread& thread, const Meanwhile& meanwhile) override {
    Program& program = this->program(*thread.process, thread.index);
    expect(holder_ == &thread, program, "not the thread that has the turn");
    check_turn(thread, program);
    const auto& identity = thread.process->identity();
    turns.push_back({program.clock(), identity.host, identity.order, thread.index});
    if (disturb) {
      disturb();
      meanwhile(std::chrono::microseconds(1'000));
    }
    const TurnEnd end = has_ended(*thread.process) ? TurnEnd::died : take_turn(program);
    holder_ = nullptr;
    return end;
  }
  void await_thread_end(const Thread&) override {}
  SignalMasks signal_masks(const Thread& thread) const override {
    const auto found = masks.find({thread.process, thread.index});
    return found != masks.end() ? found->second : SignalMasks{.caught = ~SignalSet{0}};
  }
  void interrupt(const Thread&, std::uint32_t) override {}
  bool has_ended(const Process& process) const override { return ended_.contains(&process); }
  bool is_stopped(const Thread&) const override { return false; }
  bool sleeps(const Thread&) const override { return false; }
  std::chrono::microseconds processor_time(const Process&) const override { return {}; }
  std::string activity(const Thread&) const override { return "a script's call"; }

  // --- Interface CallHandler.
  bool execute(Thread& thread) override {
    ThreadSlot& slot = slot_of(thread);
    Program& caller = program(*thread.process, thread.index);
    switch (slot.call) {
      case Call::command: {
        keeper.threads().wait(thread, ThreadState::awaiting_device, std::nullopt);
        keeper.threads().at(now() + device_time, [this, &process = *thread.process, index = thread.index] {
          if (process.alive && process.threads[index].state == ThreadState::awaiting_device)
            keeper.threads().resume(process.threads[index], now());
        });
        return false;
      }
      case Call::send_signal:
        if (on_signal) on_signal(thread, slot);
        // Threads woken at this time run after this thread, whatever their rank.
        last_thread_ = &thread;
        last_turn_ = now();
        return true;
      case Call::forked:
        slot.value = attach_child(*thread.process, std::move(caller.child_)).identity().order;
        return true;
      case Call::wait_child:
        if (std::erase(orphans_, thread.process) != 0) return true;
        keeper.threads().wait(thread, ThreadState::awaiting_child, std::nullopt);
        return false;
      case Call::process_exit: process_died(*thread.process); return false;
      default: return true;
    }
  }
  void collect_all(Duration) override {}
  int descriptor() const override { return -1; }
  void mmio_write(Process&, const abi::MmioWrite& write) override {
    posted.emplace_back(now(), write.offset);
    if (now().ps != std::int64_t(write.time)) faults.push_back("a posted write came at another time than its own");
  }
  void process_died(Process& process) override {
    if (!process.alive) return;
    keeper.end_process(process);
    process.release();
    process.forget_memory(process.image());  // no device has the memory mapped
    if (process.parent == nullptr || !process.parent->alive) return;
    for (Thread& waiting : process.parent->threads)
      if (waiting.state == ThreadState::awaiting_child)
        return keeper.threads().resume(waiting, now() + params_.times.wakeup);
    orphans_.push_back(process.parent);
  }

 private:
  void script(Process& process, std::uint32_t index, Program::Body body) {
    scripts_[{&process, index}] = std::make_unique<Program>(process, index, std::move(body));
    if (on_thread) on_thread(process, index);
  }
  Process& attach_child(Process& parent, Program::Body body) {
    return attach(parent.identity().host, next_order_, now(), std::move(body), &parent);
  }

  TurnEnd take_turn(Program& program) {
    ThreadSlot& slot = program.slot();
    const Duration limit{std::int64_t(std::max({slot.run_until, slot.act_until, slot.now}))};
    // The slot of the new thread is known now.
    if (slot.call == Call::thread_new && slot.error == 0 && program.child_)
      script(program.process_, std::uint32_t(slot.value), std::exchange(program.child_, {}));
    if (on_turn) on_turn(program, slot);
    slot.signal_count = 0;
    if (!program.script_.go_on()) program.call(program.index_ == 0 ? Call::process_exit : Call::thread_exit);
    expect(program.clock() <= limit + kMostCost, program, "it ran on past its limit");
    const TurnEnd end = std::exchange(program.end_, TurnEnd::given_back);
    if (end == TurnEnd::died) kill(program.process_);
    return end;
  }

  // Order of threads that run at the same time.
  static auto rank(const Thread& thread) {
    const auto& identity = thread.process->identity();
    return std::tuple(identity.host, identity.order, thread.index);
  }

  void check_turn(const Thread& thread, Program& program) {
    const ThreadSlot& slot = program.slot();
    const bool goes_on = last_thread_ == &thread && last_turn_ == now();
    expect(now() >= last_turn_, program, "the world's time ran backward");
    expect(program.clock() >= program.seen_clock_ || (slot.call == Call::spin && slot.argument[1] != 0), program,
           "its clock ran backward");
    const bool looks = slot.call == Call::look, loops = slot.call == Call::spin && slot.argument[1] != 0;
    const Duration ahead = looks ? params_.times.detect : Duration{};
    const bool in_step = program.clock() >= now() && (goes_on || program.clock() <= now() + ahead);
    expect(in_step || loops, program, "the world has not caught up with it");
    expect(slot.act_until == std::uint64_t((now() + params_.act_slack).ps), program, "it may act too far ahead");
    const Duration slack = std::max(params_.most_clock_slack, params_.most_unseen) + params_.times.detect;
    expect(slot.run_until <= std::uint64_t((now() + slack).ps), program, "it may run too far ahead");
    for (const auto& process : keeper.threads().processes()) {
      if (!process->alive || goes_on) continue;
      for (const Thread& other : process->threads)
        if (&other != &thread && other.at && std::pair(*other.at, rank(other)) < std::pair(now(), rank(thread)))
          fault(program, "another thread comes first");
    }
    last_turn_ = now();
    last_thread_ = &thread;
    program.seen_clock_ = program.clock();
  }

  // No event is pending: each remaining thread waits, and must not have missed a wake-up.
  void check_standstill() {
    for (const auto& process : keeper.threads().processes()) {
      if (!process->alive) continue;
      for (const Thread& thread : process->threads) {
        if (thread.state == ThreadState::free || thread.state == ThreadState::starting) continue;
        const Program& left = program(*process, thread.index);
        expect(!has_ended(*process), left, "its process has ended");
        expect(!thread.at && thread.state != ThreadState::due && thread.state != ThreadState::running, left,
               "the keeper forgot it");
        if (thread.state != ThreadState::spinning) continue;
        expect(thread.seen_memory_writes == process->memory_writes, left, "it spins on, though the device wrote");
        expect(thread.seen_stores == process->stores, left, "it spins on, though another thread may have stored");
      }
    }
  }

  // A script may exceed its limit by the cost of one call.
  static constexpr Duration kMostCost{1'000'000};

  std::map<std::pair<const Process*, std::uint32_t>, std::unique_ptr<Program>> scripts_;
  std::set<const Process*> ended_;
  std::vector<Process*> orphans_;  // parents with a child that ended before they waited for it
  std::uint32_t next_order_ = 0;
  const Thread* holder_ = nullptr;
  const Thread* last_thread_ = nullptr;
  Duration last_turn_;
};

}  // namespace rnicsim::sim::test
