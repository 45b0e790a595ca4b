// SPDX-License-Identifier: Apache-2.0
// Reports milestones of work requests to a simulator that follows them. Reporting takes no simulated time.
#pragma once

#include <cstdint>

#include "model/abi/attach.h"

namespace rnicsim {

class FollowUp {
 public:
  bool followed() const { return followed_; }
  virtual std::uint64_t time() { return 0; }  // simulated time of the caller, in ps
  virtual void tell(const abi::Milestone&) {}

 protected:
  ~FollowUp() = default;

  bool followed_ = false;
};

}  // namespace rnicsim
