// SPDX-License-Identifier: Apache-2.0
// Sends keepalives on idle streams, to detect dead peers. One thread serves all streams, and ends when there are none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

namespace rnicsim::rsockets {

class Stream;

class Keepalive {
 public:
  static Keepalive& service();

  // Adds the stream, or changes its interval. Returns 0 or a positive errno.
  int set(const std::shared_ptr<Stream>& stream, std::chrono::seconds interval);
  void remove(Stream& stream);

  static unsigned default_seconds();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::weak_ptr<Stream> stream;
    std::chrono::seconds interval;
    Clock::time_point due;
  };

  void run();
  void send_due(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Stream*, Entry> entries_;
  bool running_ = false;  // the thread runs
};

}  // namespace rnicsim::rsockets
