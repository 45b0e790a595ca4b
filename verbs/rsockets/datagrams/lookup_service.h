// SPDX-License-Identifier: Apache-2.0
// A thread that reads the UDP sockets of all datagram sockets; it ends when there are none.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/rsockets/waiter.h"

namespace rnicsim::rsockets {

// A datagram socket: its UDP socket, and the lookups that arrive there.
class LookupSocket {
 public:
  virtual int fd() const = 0;
  virtual void take_lookup() = 0;

 protected:
  ~LookupSocket() = default;
};

class LookupService {
 public:
  static LookupService& service();

  // Returns 0 or a positive errno.
  int add(const std::shared_ptr<LookupSocket>& socket);
  // After the return the thread does not use the socket any more.
  void remove(const LookupSocket& socket);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable rounds_changed_;
  std::uint64_t rounds_ = 0;  // rounds of the thread's loop
  std::vector<std::shared_ptr<LookupSocket>> sockets_;
  std::unique_ptr<Waiter> news_;
  bool running_ = false;  // the thread runs
};

}  // namespace rnicsim::rsockets
