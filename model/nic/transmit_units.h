// The transmit units and who waits for them. Whoever waited longest is next, of those whose unit is free: so queue
// pairs get equal shares of a port that is full, however many of them a unit has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/fifo.h"
#include "model/nic/qp_engine.h"

namespace rnicsim::nic {

class TransmitUnits {
 public:
  // Of a QP's requests, or of its answers: one packet.
  struct Turn {
    Qpn qpn;
    std::uint64_t epoch = 0;
    bool answers = false;
    std::uint64_t number = 0;            // in the order in which they came, of all units
  };

  explicit TransmitUnits(std::uint32_t units) : units_(units) {}

  void enqueue(const Turn& turn) {
    const auto number = unit_of(turn.qpn, static_cast<std::uint32_t>(units_.size()));
    auto& last = units_[number].turns.push_back(Turn{turn});
    last.number = turns_++;
    note_servable(number);
  }
  // transmit_free() came.
  void free(std::uint32_t number) {
    units_[number].busy = units_[number].asked = false;
    note_servable(number);
  }
  // What is next. Without a turn: the unit is busy, and the engine is to ask when it will be free.
  struct Next {
    std::uint32_t unit;
    std::optional<Turn> turn;
  };
  std::optional<Next> next() {
    if (servable_ == 0) return std::nullopt;
    Next next{longest_waiting(), std::nullopt};
    auto& unit = units_[next.unit];
    if (unit.busy) {
      unit.asked = true;
    } else {
      next.turn = unit.turns.front();
      unit.turns.pop_front();
    }
    note_servable(next.unit);
    return next;
  }
  // The turn has sent a packet.
  void took(std::uint32_t number) { units_[number].busy = true; }
  void reset() {
    std::ranges::fill(units_, Unit{});
    servable_ = 0;
  }

 private:
  struct Unit {
    Fifo<Turn> turns;
    bool busy = false;
    bool asked = false;                  // when it will be free
  };

  // Of the servable ones.
  std::uint32_t longest_waiting() const {
    auto first = static_cast<std::uint32_t>(std::countr_zero(servable_));
    for (auto others = servable_ & (servable_ - 1); others != 0; others &= others - 1) {
      const auto other = static_cast<std::uint32_t>(std::countr_zero(others));
      if (units_[other].turns.front().number < units_[first].turns.front().number) first = other;
    }
    return first;
  }

  // A busy unit is asked once when it will be free; until then there is nothing to do for it.
  void note_servable(std::uint32_t number) {
    const auto& unit = units_[number];
    const auto bit = std::uint64_t{1} << number;
    servable_ = !unit.turns.empty() && !unit.asked ? servable_ | bit : servable_ & ~bit;
  }

  std::vector<Unit> units_;
  std::uint64_t servable_ = 0;           // a bit a unit: something waits, and it was not asked
  std::uint64_t turns_ = 0;
};

}  // namespace rnicsim::nic
