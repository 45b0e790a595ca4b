// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/reports.h"

#include "model/base/kernel.h"

namespace rnicsim::driver_check {

void Reports::add(FindingKind kind, const Subject& subject, std::string text) {
  if (findings_.size() >= kMost) {
    left_out_ += !has(kind, subject);
    return;
  }
  if (!told_.emplace(kind, subject).second) return;
  findings_.push_back({kind, now(), std::move(text), log_.lines()});
  // Pass a copy: the listener may cause more findings, which reallocate the vector.
  if (found) found(Finding(findings_.back()));
}

}  // namespace rnicsim::driver_check
