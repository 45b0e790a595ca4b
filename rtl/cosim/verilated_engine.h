// The QP engine (rtl/qp_engine.sv) Verilated: inputs that are offered until they are taken, cycles of its clock, and
// what it puts out in them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "model/base/fifo.h"
#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

class VerilatedTop;

class VerilatedEngine {
 public:
  struct Options {
    bool checked = true;                 // its assertions are looked at, which costs a tenth of the speed
    std::string waves;                   // where its signals are written (FST); empty: nowhere
  };
  explicit VerilatedEngine(const Options& options);
  VerilatedEngine() : VerilatedEngine(Options{}) {}
  ~VerilatedEngine();

  // What each stream offers, from the next cycle to the one that takes it.
  template <class Input>
  void offer(const Input& input);
  template <class Input>
  bool offers() const { return std::get<Stream<Input>>(streams_).offered; }
  // It offers or has taken something of which there was no record yet.
  template <class Input>
  bool awaits() const { return !std::get<Stream<Input>>(streams_).taken.empty(); }
  // In this cycle there is a record of what this input has brought about.
  template <class Input>
  const Input& input() const { return std::get<Stream<Input>>(streams_).taken.front(); }

  bool offering() const {
    return std::apply([](const auto&... streams) { return (streams.offered || ...); }, streams_);
  }

  struct Outputs {
    std::optional<SendRecord> send;
    std::optional<AnswerRecord> answer;
  };
  // For the waves: the clock rises at the end of a cycle, and falls a picosecond later.
  void set_time(std::uint64_t ps) { time_ps_ = ps; }
  // A cycle at that time, in ticks (kTickPs): what is put out in it, if records are taken; and its end, with which the
  // inputs that were taken are offered no more.
  const Outputs& begin_cycle(std::uint64_t now, bool take_sends = true, bool take_answers = true);
  void end_cycle();
  // Something to do in the next cycle, though nothing is offered.
  bool busy() const;
  // When not busy: the time at which a timer wants the clock.
  std::optional<std::uint64_t> wake() const;
  void reset();
  // Assertions of the RTL that failed.
  int failures() const;
  std::uint64_t cycles() const { return cycles_; }

 private:
  template <class Input>
  struct Stream {
    Fifo<Input> taken;                   // whose records have not come; then what is offered
    bool offered = false;
  };

  template <class Input>
  void forget();
  void forget_input(const SendRecord& record);
  void forget_input(const AnswerRecord& record);

  void clock_edge();

  const std::unique_ptr<VerilatedTop> top_;
  std::tuple<Stream<SendControl>, Stream<Post>, Stream<Response>, Stream<SendEvent>, Stream<AnswerControl>,
             Stream<Request>, Stream<AnswerEvent>>
      streams_;
  Outputs outputs_;
  std::uint64_t cycles_ = 0;
  std::uint64_t time_ps_ = 0;
};

}  // namespace rnicsim::rtl
