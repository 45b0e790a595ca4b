// The receiving side of a raw queue pair: every frame is a message of its own, which fits a receive or comes to
// nothing.
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
  std::uint32_t msn_ = 0;                // frames; nobody is told
};

}  // namespace rnicsim::roce
