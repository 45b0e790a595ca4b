// SPDX-License-Identifier: Apache-2.0
// The transmit units and the waiting turns. A queue pair occupies one unit at a time, with one packet. The first free
// unit takes the turn that waited longest, among turns whose credit class has room before the port. So queue pairs get
// equal shares of the units and of a full port, however many there are.
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
  // A turn for one packet: a request or an answer of a QP.
  struct Turn {
    Qpn qpn;
    bool answers = false;
    std::uint8_t credit_class = 0;  // credit class of the packet (packet_streams.h)
    std::uint64_t epoch = 0;
  };

  explicit TransmitUnits(std::uint32_t units)
      : units_(units), unasked_(units == kMostUnits ? ~std::uint64_t{0} : (std::uint64_t{1} << units) - 1) {}

  // `last`: the unit of the QP's last turn. While it is busy with that packet, the turn waits there.
  void enqueue(const Turn& turn, std::uint32_t last) {
    used_ |= 1u << turn.credit_class;
    if (!is_at(last, turn.qpn)) return wait(turn);
    auto& unit = units_[last];
    if (unit.waiting == 0 && is(unasked_, last)) to_ask_.push_back(std::uint32_t{last});
    unit.parked[parked_at(unit, turn)] = turn;
  }
  bool is_at(std::uint32_t number, Qpn qpn) const { return busy(number) && units_[number].qpn == qpn; }
  // Call at transmit_free().
  void free(std::uint32_t number) {
    busy_ &= ~bit(number);
    unasked_ |= bit(number);
    auto& unit = units_[number];
    const auto waiting = std::exchange(unit.waiting, 0u);
    for (std::uint32_t i = 0; i < waiting; ++i) wait(unit.parked[i]);
  }
  // Call at transmit_free() while turns are being taken.
  void free_next(std::uint32_t number) { freed_ |= bit(number); }
  // Handles free_next(). True: there were such units.
  bool settle() {
    if (freed_ == 0) return false;
    for (auto rest = std::exchange(freed_, 0); rest != 0; rest &= rest - 1)
      free(static_cast<std::uint32_t>(std::countr_zero(rest)));
    return true;
  }
  // Credit classes of all turns since the last reset, a bit each.
  std::uint32_t used() const { return used_; }
  // --- `open`: credit classes with room before the port, a bit each.
  // True: next() or settle() has work.
  bool waits(std::uint32_t open) const { return freed_ != 0 || any(open); }
  // True: a turn waits for a unit that is free, or that was not asked.
  bool any(std::uint32_t open) const { return !to_ask_.empty() || ((filled_ & open) != 0 && unasked_ != 0); }
  // The unit to ask or to serve, if any(): first units with a parked turn, so that these turns queue behind earlier
  // ones.
  std::uint32_t next() const {
    if (!to_ask_.empty()) return to_ask_.front();
    const auto free = unasked_ & ~busy_;
    return static_cast<std::uint32_t>(std::countr_zero(free != 0 ? free : unasked_));
  }
  bool busy(std::uint32_t number) const { return is(busy_, number); }
  // The engine asks when the unit will be free; no further request until then.
  void ask(std::uint32_t number) {
    unasked_ &= ~bit(number);
    if (!to_ask_.empty()) to_ask_.pop_front();
  }
  // Takes the turn that waited longest.
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
  // The QP has sent a packet at the unit.
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
    Qpn qpn{};                     // QP at the unit, if it is busy
    std::uint32_t waiting = 0;     // parked turns of this QP
    std::array<Turn, 2> parked{};  // a turn for its requests and one for its answers
  };

  static std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << number; }
  static bool is(std::uint64_t bits, std::uint32_t number) { return (bits >> number & 1) != 0; }
  // A parked turn of the same kind belongs to an earlier QP with this number: it is replaced.
  static std::uint32_t parked_at(Unit& unit, const Turn& turn) {
    for (std::uint32_t i = 0; i < unit.waiting; ++i)
      if (unit.parked[i].answers == turn.answers) return i;
    return unit.waiting++;
  }

  struct Waiting {
    Turn turn;
    std::uint64_t number = 0;  // order of arrival
  };

  void wait(const Turn& turn) {
    turns_[turn.credit_class].push_back({turn, next_number_++});
    filled_ |= 1u << turn.credit_class;
  }

  std::vector<Unit> units_;
  std::array<Fifo<Waiting>, kCreditClasses> turns_;
  std::uint64_t next_number_ = 0;
  std::uint32_t filled_ = 0;  // credit classes with a waiting turn, a bit each
  std::uint32_t used_ = 0;
  Fifo<std::uint32_t> to_ask_;  // units with a parked turn, in the order of the first turn
  // A bit for each unit:
  std::uint64_t busy_ = 0;  // not known to be free
  std::uint64_t unasked_;   // not asked when it will be free
  std::uint64_t freed_ = 0;
};

}  // namespace rnicsim::nic
