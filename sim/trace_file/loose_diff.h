// SPDX-License-Identifier: Apache-2.0
// Finds the first difference of two recorded traces that exceeds a tolerance of time.
#pragma once

#include "model/base/units.h"
#include "sim/trace_file/trace_diff.h"

namespace rnicsim::sim {

// Allowed deviation of a time: the greater of the two values.
struct TimeTolerance {
  Duration absolute;
  double relative = 0;  // fraction of 1

  bool exact() const { return absolute == Duration{} && relative == 0; }
  Duration allowed(Duration expected) const;
};

// Compares order and contents in each stream: the events of one kind and one QP; without a QP, the equal events of a
// host. The time compared is the time since the preceding event of the same QP in A (for the QP's first event: since
// the start), so a delay is reported once, where it arises. Events of a QP may change places within the tolerance.
// Events without a QP are compared without their times. TraceError as compare_traces().
TraceDifference compare_traces_loosely(TraceReader& a, TraceReader& b, const TimeTolerance& tolerance);

// Compares the order alone: each QP must have the same events, of all kinds, in the same order. Events without a QP are
// compared as above. No time is compared, neither of events nor in fields.
TraceDifference compare_order(TraceReader& a, TraceReader& b);

}  // namespace rnicsim::sim
