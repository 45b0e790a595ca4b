// A virtual machine that is connected, and the protocol that it speaks.
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

  // What poll() is to look for.
  virtual void watch(std::vector<pollfd>& watched) const = 0;
  // Does what the machine asks, as far as it has come, and no more than a few things. ConnectionLost
  // (guest_connection.h).
  virtual void serve() = 0;
};

}  // namespace rnicsim::sim
