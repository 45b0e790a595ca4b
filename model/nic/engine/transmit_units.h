// The transmit units and who waits for them. A queue pair is at one unit at a time, with one packet; whoever waited
// longest is next at the first unit that is free. So queue pairs get equal shares of the units, and of a port that is
// full, however many there are.
#pragma once

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
  };

  explicit TransmitUnits(std::uint32_t units)
      : units_(units), unasked_(units == kMostUnits ? ~std::uint64_t{0} : (std::uint64_t{1} << units) - 1) {}

  // `last`: the unit that the QP had its last turn at. As long as it is busy with that, it waits there.
  void enqueue(const Turn& turn, std::uint32_t last) {
    if (!is_at(last, turn.qpn)) return void(turns_.push_back(Turn(turn)));
    auto& unit = units_[last];
    if (unit.waiting == 0 && is(unasked_, last)) to_ask_.push_back(std::uint32_t{last});
    unit.parked[parked_at(unit, turn)] = turn;
  }
  bool is_at(std::uint32_t number, Qpn qpn) const { return busy(number) && units_[number].qpn == qpn; }
  // transmit_free() came.
  void free(std::uint32_t number) {
    busy_ &= ~bit(number);
    unasked_ |= bit(number);
    auto& unit = units_[number];
    const auto waiting = std::exchange(unit.waiting, 0u);
    for (std::uint32_t i = 0; i < waiting; ++i) turns_.push_back(Turn(unit.parked[i]));
  }
  // It came while turns were given.
  void free_next(std::uint32_t number) { freed_ |= bit(number); }
  // True: there were such units.
  bool settle() {
    if (freed_ == 0) return false;
    for (auto rest = std::exchange(freed_, 0); rest != 0; rest &= rest - 1)
      free(static_cast<std::uint32_t>(std::countr_zero(rest)));
    return true;
  }
  // There is something to do, for next() or settle().
  bool waits() const { return freed_ != 0 || any(); }
  // Somebody waits for a unit that is free, or was not asked.
  bool any() const { return !to_ask_.empty() || (!turns_.empty() && unasked_ != 0); }
  // That one, if there is any: first those where somebody waits, so that these come behind who waits for any.
  std::uint32_t next() const {
    if (!to_ask_.empty()) return to_ask_.front();
    const auto free = unasked_ & ~busy_;
    return static_cast<std::uint32_t>(std::countr_zero(free != 0 ? free : unasked_));
  }
  bool busy(std::uint32_t number) const { return is(busy_, number); }
  // The engine asks when next() will be free: once, and until then there is nothing to do for it.
  void ask(std::uint32_t number) {
    unasked_ &= ~bit(number);
    if (!to_ask_.empty()) to_ask_.pop_front();
  }
  // The turn of who waited longest.
  Turn take() {
    const auto turn = turns_.front();
    turns_.pop_front();
    return turn;
  }
  // It has sent a packet there.
  void took(std::uint32_t number, Qpn qpn) {
    units_[number].qpn = qpn;
    busy_ |= bit(number);
  }
  void reset() {
    turns_.clear();
    to_ask_.clear();
    for (auto& unit : units_) unit = {};
    unasked_ |= busy_;
    busy_ = freed_ = 0;
  }

 private:
  struct Unit {
    Qpn qpn{};                           // that is at it, if it is busy
    std::uint32_t waiting = 0;           // turns of that one
    std::array<Turn, 2> parked{};        // of its requests, and of its answers
  };

  static std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << number; }
  static bool is(std::uint64_t bits, std::uint32_t number) { return (bits >> number & 1) != 0; }
  // One that waits already is of an earlier life of the number.
  static std::uint32_t parked_at(Unit& unit, const Turn& turn) {
    for (std::uint32_t i = 0; i < unit.waiting; ++i)
      if (unit.parked[i].answers == turn.answers) return i;
    return unit.waiting++;
  }

  std::vector<Unit> units_;
  Fifo<Turn> turns_;
  Fifo<std::uint32_t> to_ask_;           // units where somebody waits, in the order in which they came there
  // A bit a unit.
  std::uint64_t busy_ = 0;               // as far as is known
  std::uint64_t unasked_;                // when it will be free
  std::uint64_t freed_ = 0;
};

}  // namespace rnicsim::nic
