// The QP engine (rtl/qp_engine.sv) Verilated: inputs that are offered until they are taken, cycles of its clock, and what
// it puts out in them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "rtl/cosim/transactions.h"

namespace rnicsim::rtl {

class VerilatedEngine {
 public:
  // `waves`: where its signals are written (FST); empty: nowhere.
  explicit VerilatedEngine(const std::string& waves = {});
  ~VerilatedEngine();

  // What each stream offers, from the next cycle to the one that takes it.
  template <class Input>
  void offer(const Input& input);
  template <class Input>
  const std::optional<Input>& offered() const { return std::get<std::optional<Input>>(offered_); }

  bool offering() const {
    return std::apply([](const auto&... offers) { return (offers.has_value() || ...); }, offered_);
  }

  struct Outputs {
    std::optional<SendRecord> send;
    std::optional<AnswerRecord> answer;
  };
  // A cycle at that time, in ticks (kTickPs): what is put out in it, if records are taken; and its end, with which the
  // inputs that were taken are offered no more.
  Outputs begin_cycle(std::uint64_t now, bool take_sends = true, bool take_answers = true);
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
  struct Impl;
  const std::unique_ptr<Impl> impl_;
  std::tuple<std::optional<SendControl>, std::optional<Post>, std::optional<Response>, std::optional<SendEvent>,
             std::optional<AnswerControl>, std::optional<Request>, std::optional<AnswerEvent>>
      offered_;
  std::uint64_t cycles_ = 0;
};

}  // namespace rnicsim::rtl
