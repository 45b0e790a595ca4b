// What a sender knows of packets beyond the oldest unanswered one, where packets may overtake each other or where the
// missing ones alone are sent again (IRN, SIGCOMM 2018): which have arrived, and which to send again.
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
  bool pending() const { return before(next_, end_); }
  Psn next() const { return next_; }     // if pending()
  Psn end() const { return end_; }
  // Since the first loss, packets have not all been answered that were sent before it was known.
  bool recovering() const { return recovering_; }
  // Packets from `first` to `end` that have not arrived are lost; those that were sent again since are not lost once
  // more. `unsent`: one past the last packet that was ever sent.
  void lose(Psn first, Psn end, Psn unsent) {
    if (!recovering_) {
      recovering_ = true;
      recovery_end_ = unsent;
      if (!pending()) next_ = end_ = first;
    }
    if (before(end_, end)) end_ = end;
    skip();
  }
  // All packets that have not arrived are lost, once more if need be.
  void lose_all(Psn oldest, Psn unsent) {
    cease(oldest);
    is_missing(oldest);
    lose(oldest, unsent, unsent);
  }
  void sent_before(Psn psn) {
    next_ = psn;
    skip();
  }
  // All is sent again in another way.
  void cease(Psn oldest) {
    recovering_ = false;
    next_ = end_ = oldest;
  }

 private:
  void skip() {
    while (before(next_, end_) && arrived_.contains(next_)) next_ = next_ + 1;
  }

  PsnSet arrived_;
  Psn acknowledged_;
  Psn next_, end_;                       // to send again, but for those that have arrived
  Psn recovery_end_;                     // one past the last packet that had been sent when the loss was known
  bool recovering_ = false;
};

}  // namespace rnicsim::roce
