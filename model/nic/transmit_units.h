// The transmit units and who waits for them: each serves its turns in order, and the units take turns among themselves.
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
  };

  explicit TransmitUnits(std::uint32_t units) : units_(units) {}

  void enqueue(const Turn& turn) {
    const auto number = unit_of(turn.qpn, static_cast<std::uint32_t>(units_.size()));
    units_[number].turns.push_back(Turn{turn});
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
    const auto behind = servable_ >> first_ << first_;
    Next next{static_cast<std::uint32_t>(std::countr_zero(behind != 0 ? behind : servable_)), std::nullopt};
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
  // The turn has sent a packet: the next to be served is looked for behind this unit.
  void took(std::uint32_t number) {
    units_[number].busy = true;
    first_ = number + 1 == units_.size() ? 0 : number + 1;
  }
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

  // A busy unit is asked once when it will be free; until then there is nothing to do for it.
  void note_servable(std::uint32_t number) {
    const auto& unit = units_[number];
    const auto bit = std::uint64_t{1} << number;
    servable_ = !unit.turns.empty() && !unit.asked ? servable_ | bit : servable_ & ~bit;
  }

  std::vector<Unit> units_;
  std::uint64_t servable_ = 0;           // a bit a unit: something waits, and it was not asked
  std::uint32_t first_ = 0;
};

}  // namespace rnicsim::nic
