// The transmit units and who waits for them. Whoever waited longest is next, of those whose unit is free: so queue
// pairs get equal shares of a port that is full, however many of them a unit has.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/base/fifo.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class TransmitUnits {
 public:
  // Of a QP's requests, or of its answers: one packet.
  struct Turn {
    Qpn qpn;
    bool answers = false;
    std::uint64_t epoch = 0;
    std::uint64_t number = 0;            // in the order in which they came, of all units
  };

  explicit TransmitUnits(std::uint32_t units) : units_(units) {}

  void enqueue(const Turn& turn) {
    const auto number = unit_of(turn.qpn, static_cast<std::uint32_t>(units_.size()));
    auto& unit = units_[number];
    if (unit.turns.empty()) first_[number] = turns_;
    auto& last = unit.turns.add_back();
    last = turn;
    last.number = turns_++;
    note_servable(number);
  }
  // transmit_free() came.
  void free(std::uint32_t number) {
    units_[number].busy = units_[number].asked = false;
    note_servable(number);
  }
  // It came while the others' turns were given: it is free behind these.
  void free_next(std::uint32_t number) { freed_ |= std::uint64_t{1} << number; }
  // True: there were such units.
  bool settle() {
    if (freed_ == 0) return false;
    for (auto rest = std::exchange(freed_, 0); rest != 0; rest &= rest - 1)
      free(static_cast<std::uint32_t>(std::countr_zero(rest)));
    return true;
  }
  // There is something to do, for next() or settle().
  bool waits() const { return (servable_ | freed_) != 0; }
  // Somebody waits for a unit that was not asked.
  bool any() const { return servable_ != 0; }
  // For that of whoever waited longest; if there is any.
  std::uint32_t next() const {
    auto next = std::countr_zero(servable_);
    auto first = first_[next];
    for (auto others = servable_ & (servable_ - 1); others != 0; others &= others - 1) {
      const auto other = std::countr_zero(others);
      if (first_[other] > first) continue;
      first = first_[other];
      next = other;
    }
    return static_cast<std::uint32_t>(next);
  }
  bool busy(std::uint32_t number) const { return units_[number].busy; }
  // The engine asks when it will be free: once, and until then there is nothing to do for it.
  void ask(std::uint32_t number) {
    units_[number].asked = true;
    note_servable(number);
  }
  // The turn of who waited longest for this one.
  Turn take(std::uint32_t number) {
    auto& unit = units_[number];
    const auto turn = unit.turns.front();
    unit.turns.pop_front();
    if (!unit.turns.empty()) first_[number] = unit.turns.front().number;
    note_servable(number);
    return turn;
  }
  // The turn has sent a packet.
  void took(std::uint32_t number) { units_[number].busy = true; }
  void reset() {
    for (auto& unit : units_) unit = {};
    servable_ = freed_ = 0;
  }

 private:
  struct Unit {
    Fifo<Turn> turns;
    bool busy = false;
    bool asked = false;                  // when it will be free
  };

  void note_servable(std::uint32_t number) {
    const auto& unit = units_[number];
    const auto bit = std::uint64_t{1} << number;
    servable_ = !unit.turns.empty() && !unit.asked ? servable_ | bit : servable_ & ~bit;
  }

  std::vector<Unit> units_;
  std::array<std::uint64_t, kMostUnits> first_{};  // by unit: the number of its first turn
  std::uint64_t servable_ = 0;           // a bit a unit: something waits, and it was not asked
  std::uint64_t freed_ = 0;              // a bit a unit
  std::uint64_t turns_ = 0;
};

}  // namespace rnicsim::nic
