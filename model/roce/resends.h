// SPDX-License-Identifier: Apache-2.0
// The sender's record of packets after the oldest unacknowledged one: packets that have arrived, and packets to resend.
// Used if packets may be reordered, or if only missing packets are resent (IRN, SIGCOMM 2018).
#pragma once

#include <algorithm>

#include "model/roce/psn_set.h"

namespace rnicsim::roce {

class Resends {
 public:
  void start(Psn oldest) {
    *this = {};
    cease(oldest);
    acknowledged_ = oldest;
    arrived_.move_to(oldest);
  }
  // --- Arrived packets: a request at the responder, or the response that is expected with this PSN.
  bool has_arrived(Psn psn) const { return arrived_.contains(psn); }
  void arrived(Psn psn) {
    arrived_.insert(psn);
    skip();
  }
  // Marks a request as missing again: a receiver drops a packet that it has kept, if the packet finds no receive WQE at
  // its turn.
  void is_missing(Psn psn) { arrived_.erase(psn); }
  // One past the newest acknowledged request, even if responses of earlier READs and atomics are missing.
  Psn acknowledged() const { return acknowledged_; }
  void acknowledge_before(Psn psn) {
    if (before(acknowledged_, psn)) acknowledged_ = psn;
  }
  // Packets before `oldest` are complete.
  void move_to(Psn oldest) {
    arrived_.move_to(oldest);
    acknowledge_before(oldest);
    if (recovering_ && !before(oldest, recovery_end_)) recovering_ = false;
    if (before(next_, oldest)) next_ = oldest;
    if (before(end_, next_)) end_ = next_;
    skip();
  }

  // --- Packets to resend.
  bool pending() const { return next_ != end_; }  // next_ is never after end_
  Psn next() const { return next_; }              // valid if pending()
  Psn end() const { return end_; }
  // Some packets that were sent before the loss was known are still unacknowledged.
  bool recovering() const { return recovering_; }
  // Schedules a resend of the packets from `first` to `end` that have not arrived, except those that this recovery has
  // resent. `unsent`: one past the last PSN ever sent. True: there are new packets to resend.
  bool lose(Psn first, Psn end, Psn unsent) {
    const bool earlier = !recovering_ || before(first, begin_);
    if (earlier) {
      begin_ = first;
      if (!recovering_) recovery_end_ = unsent;
      if (!pending() || before(first, next_)) next_ = first;
      if (before(end_, next_)) end_ = next_;
      recovering_ = true;
    }
    auto next = earlier ? next_ : end_;
    if (before(end_, end)) end_ = end;
    skip();
    while (before(next, end_) && arrived_.contains(next)) next = next + 1;
    return before(next, end_);
  }
  // Schedules a resend of every packet that has not arrived, including those that were resent before.
  void lose_all(Psn oldest, Psn unsent) {
    cease(oldest);
    is_missing(oldest);
    lose(oldest, unsent, unsent);
  }
  void sent_before(Psn psn) {
    next_ = psn;
    skip();
  }
  // The caller rewinds: cancels all resends.
  void cease(Psn oldest) {
    recovering_ = false;
    begin_ = next_ = end_ = oldest;
  }

 private:
  void skip() {
    while (before(next_, end_) && arrived_.contains(next_)) next_ = next_ + 1;
  }

  PsnSet arrived_;
  Psn acknowledged_;
  Psn begin_;         // start of the recovery
  Psn next_, end_;    // to resend, except packets that have arrived
  Psn recovery_end_;  // one past the last packet sent when the loss became known
  bool recovering_ = false;
};

}  // namespace rnicsim::roce
