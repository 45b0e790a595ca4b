// SPDX-License-Identifier: Apache-2.0
// The responder of UD (IBTA vol 1, 9.8.3): every packet is a message, which is placed in a receive WQE or dropped.
#pragma once

#include <cstdint>

#include "model/roce/verdict.h"

namespace rnicsim::roce {

class UdResponder {
 public:
  void start(const ResponderAttributes& attributes) {
    *this = {};
    attributes_ = attributes;
  }
  void update(const ResponderAttributes& attributes) { attributes_ = attributes; }

  // `payload`: bytes without the GRH, which takes the first kGrhBytes of the receive buffer.
  [[gnu::noinline]] Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer);

  std::uint32_t msn() const { return msn_; }

 private:
  ResponderAttributes attributes_;
  std::uint32_t msn_ = 0;  // messages; not reported to the peer
};

}  // namespace rnicsim::roce
