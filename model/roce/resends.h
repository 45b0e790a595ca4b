// The sender's record of packets beyond the oldest unanswered one: which packets have arrived, and which to send again.
// Used where packets may overtake each other, or where only missing packets are sent again (IRN, SIGCOMM 2018).
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
  // --- What has arrived: a request at the responder, or the response that is expected under that PSN.
  bool has_arrived(Psn psn) const { return arrived_.contains(psn); }
  void arrived(Psn psn) {
    arrived_.insert(psn);
    skip();
  }
  // A request is not there, whatever was known: a receiver gives up a packet that it has kept, if the packet finds no
  // receive at its turn.
  void is_missing(Psn psn) { arrived_.erase(psn); }
  // One past the newest request that was acknowledged, though responses of earlier READs and atomics are missing.
  Psn acknowledged() const { return acknowledged_; }
  void acknowledge_before(Psn psn) {
    if (before(acknowledged_, psn)) acknowledged_ = psn;
  }
  // Nothing before `oldest` counts any more.
  void move_to(Psn oldest) {
    arrived_.move_to(oldest);
    acknowledge_before(oldest);
    if (recovering_ && !before(oldest, recovery_end_)) recovering_ = false;
    if (before(next_, oldest)) next_ = oldest;
    if (before(end_, next_)) end_ = next_;
    skip();
  }

  // --- What is to be sent again.
  bool pending() const { return next_ != end_; }  // next_ is never behind end_
  Psn next() const { return next_; }     // if pending()
  Psn end() const { return end_; }
  // Some packets that were sent before the loss was known are still unanswered.
  bool recovering() const { return recovering_; }
  // Packets from `first` to `end` that have not arrived are to be sent again, but for those that this recovery has sent
  // again. `unsent`: one past the last packet that was ever sent. True: that brings new packets to send.
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
  // Every packet that has not arrived is sent again, even one that was sent again before.
  void lose_all(Psn oldest, Psn unsent) {
    cease(oldest);
    is_missing(oldest);
    lose(oldest, unsent, unsent);
  }
  void sent_before(Psn psn) {
    next_ = psn;
    skip();
  }
  // The caller rewinds: nothing is left to send again here.
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
  Psn begin_;                            // of the recovery
  Psn next_, end_;                       // to send again, but for those that have arrived
  Psn recovery_end_;                     // one past the last packet that had been sent when the loss was known
  bool recovering_ = false;
};

}  // namespace rnicsim::roce
