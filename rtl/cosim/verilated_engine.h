// SPDX-License-Identifier: Apache-2.0
// The Verilated QP engine (rtl/qp_engine.sv): offers inputs until they are accepted, runs clock cycles, and returns the
// outputs.
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
    bool checked = true;  // check the assertions, which costs a tenth of the speed
    std::string waves;    // FST file for the signals; empty: none
  };
  explicit VerilatedEngine(const Options& options);
  VerilatedEngine() : VerilatedEngine(Options{}) {}
  ~VerilatedEngine();

  // Offers an input on its stream, from the next cycle until it is accepted.
  template <class Input>
  void offer(const Input& input);
  template <class Input>
  bool offers() const {
    return std::get<Stream<Input>>(streams_).offered;
  }
  // True: an input of this kind is offered or accepted, and its record has not come yet.
  template <class Input>
  bool awaits() const {
    return !std::get<Stream<Input>>(streams_).taken.empty();
  }
  // The input that caused the present cycle's record.
  template <class Input>
  const Input& input() const {
    return std::get<Stream<Input>>(streams_).taken.front();
  }

  bool offering() const {
    return std::apply([](const auto&... streams) { return (streams.offered || ...); }, streams_);
  }

  struct Outputs {
    std::optional<SendRecord> send;
    std::optional<AnswerRecord> answer;
  };
  // Time for the waves: the clock rises at the end of a cycle, and falls one picosecond later.
  void set_time(std::uint64_t ps) { time_ps_ = ps; }
  // begin_cycle() starts a cycle at time `now`, in ticks (kTickPs), and returns its outputs, provided that records are
  // accepted. end_cycle() ends the cycle; inputs that were accepted are not offered any more.
  const Outputs& begin_cycle(std::uint64_t now, bool take_sends = true, bool take_answers = true);
  void end_cycle();
  // True: the next cycle has work, even without an offered input.
  bool busy() const;
  // When not busy: time at which a timer needs the clock; nullopt: no timer is armed.
  std::optional<std::uint64_t> wake() const;
  void reset();
  // Number of failed assertions of the RTL.
  int failures() const;
  std::uint64_t cycles() const { return cycles_; }

 private:
  template <class Input>
  struct Stream {
    Fifo<Input> taken;  // inputs without their record yet; the last one may still be offered
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
