// SPDX-License-Identifier: Apache-2.0
// A connected virtual machine, and the protocol of its connection.
#pragma once

#include <poll.h>

#include <vector>

namespace rnicsim::sim {

class GuestClient {
 public:
  GuestClient() = default;
  GuestClient(const GuestClient&) = delete;
  GuestClient& operator=(const GuestClient&) = delete;
  virtual ~GuestClient() = default;

  // Adds the descriptors for poll().
  virtual void watch(std::vector<pollfd>& watched) const = 0;
  // Executes the requests that have arrived, up to a limit, and does not wait. ConnectionLost (guest_connection.h).
  virtual void serve() = 0;
};

}  // namespace rnicsim::sim
