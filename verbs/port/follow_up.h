// Whether somebody follows work requests, and is to be told of them. That costs no time.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim {

class FollowUp {
 public:
  bool followed() const { return followed_; }
  virtual std::uint64_t time() { return 0; }  // the caller's clock, in picoseconds
  virtual void tell(const abi::Milestone&) {}

 protected:
  ~FollowUp() = default;

  bool followed_ = false;
};

}  // namespace rnicsim
