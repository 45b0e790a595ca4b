// Where two recorded traces first differ by more than their times may.
#pragma once

#include "model/base/units.h"
#include "sim/recording/trace_diff.h"

namespace rnicsim::sim {

// How far a time may be from the expected one: by the greater of the two.
struct TimeTolerance {
  Duration absolute;
  double relative = 0;  // of 1

  bool exact() const { return absolute == Duration{} && relative == 0; }
  Duration allowed(Duration expected) const;
};

// Order and contents are compared in each stream: the events of one kind of one QP; of those without a QP, the equal
// ones of a host. A time is that since the event before, in A, of the same QP (of its first: since the start), so that
// a delay shows once, where it arises, and events of a QP may change places as far as their times may. Events without
// a QP are compared without their times. TraceError as compare_traces().
TraceDifference compare_traces_loosely(TraceReader& a, TraceReader& b, const TimeTolerance& tolerance);

// The order alone: the events of each QP of a host are the same in the same order, of whichever kinds; those without a
// QP are compared as above. No time counts, neither of an event nor within one.
TraceDifference compare_order(TraceReader& a, TraceReader& b);

}  // namespace rnicsim::sim
