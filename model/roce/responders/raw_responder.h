// SPDX-License-Identifier: Apache-2.0
// The receiving side of a raw queue pair: every frame is a message, which is placed in a receive WQE or dropped.
#pragma once

#include <cstdint>

#include "model/roce/verdict.h"

namespace rnicsim::roce {

class RawResponder {
 public:
  void start(const ResponderAttributes& attributes) { update(attributes); }
  void update(const ResponderAttributes&) {}

  [[gnu::noinline]] Verdict receive(std::uint32_t bytes, const Offer& offer);

  std::uint32_t msn() const { return msn_; }

 private:
  std::uint32_t msn_ = 0;  // frames; not reported to the peer
};

}  // namespace rnicsim::roce
