// The transmit units and who waits for them. A queue pair is at one unit at a time, with one packet. At the first unit
// that is free, the turn is that of the queue pair that waited longest, of those whose credit class has room before the
// port. So queue pairs get equal shares of the units, and of a port that is full, however many there are.
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
    std::uint8_t credit_class = 0;         // of the packet (packet_streams.h)
    std::uint64_t epoch = 0;
  };

  explicit TransmitUnits(std::uint32_t units)
      : units_(units), unasked_(units == kMostUnits ? ~std::uint64_t{0} : (std::uint64_t{1} << units) - 1) {}

  // `last`: the unit that the QP had its last turn at. As long as it is busy with that, it waits there.
  void enqueue(const Turn& turn, std::uint32_t last) {
    used_ |= 1u << turn.credit_class;
    if (!is_at(last, turn.qpn)) return wait(turn);
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
    for (std::uint32_t i = 0; i < waiting; ++i) wait(unit.parked[i]);
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
  // The credit classes of all turns since the last reset, a bit each.
  std::uint32_t used() const { return used_; }
  // --- `open`: credit classes that have room before the port, a bit each.
  // There is something to do, for next() or settle().
  bool waits(std::uint32_t open) const { return freed_ != 0 || any(open); }
  // Somebody waits for a unit that is free, or was not asked.
  bool any(std::uint32_t open) const { return !to_ask_.empty() || ((filled_ & open) != 0 && unasked_ != 0); }
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
  Turn take(std::uint32_t open) {
    auto rest = filled_ & open;
    auto oldest = std::countr_zero(rest);
    while ((rest &= rest - 1) != 0)
      if (const auto other = std::countr_zero(rest); turns_[other].front().number < turns_[oldest].front().number)
        oldest = other;
    auto& queue = turns_[oldest];
    const auto turn = queue.front().turn;
    queue.pop_front();
    if (queue.empty()) filled_ &= ~(1u << oldest);
    return turn;
  }
  // It has sent a packet there.
  void took(std::uint32_t number, Qpn qpn) {
    units_[number].qpn = qpn;
    busy_ |= bit(number);
  }
  void reset() {
    for (auto& queue : turns_) queue.clear();
    filled_ = used_ = 0;
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

  struct Waiting {
    Turn turn;
    std::uint64_t number = 0;            // in the order in which they came
  };

  void wait(const Turn& turn) {
    turns_[turn.credit_class].push_back({turn, next_number_++});
    filled_ |= 1u << turn.credit_class;
  }

  std::vector<Unit> units_;
  std::array<Fifo<Waiting>, kCreditClasses> turns_;
  std::uint64_t next_number_ = 0;
  std::uint32_t filled_ = 0;             // credit classes with a waiting turn, a bit each
  std::uint32_t used_ = 0;
  Fifo<std::uint32_t> to_ask_;           // units where somebody waits, in the order in which they came there
  // A bit a unit.
  std::uint64_t busy_ = 0;               // as far as is known
  std::uint64_t unasked_;                // when it will be free
  std::uint64_t freed_ = 0;
};

}  // namespace rnicsim::nic
