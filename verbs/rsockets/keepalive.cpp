// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/keepalive.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "verbs/rsockets/stream.h"

namespace rnicsim::rsockets {

namespace {

constexpr const char* kDefaultFile = "/proc/sys/net/ipv4/tcp_keepalive_time";
constexpr unsigned kDefaultSeconds = 7200;

}  // namespace

// Never destroyed: the thread may outlive main().
Keepalive& Keepalive::service() {
  static Keepalive& only = *new Keepalive;
  return only;
}

unsigned Keepalive::default_seconds() {
  std::ifstream file(kDefaultFile);
  unsigned seconds = 0;
  return file >> seconds && seconds != 0 ? seconds : kDefaultSeconds;
}

int Keepalive::set(const std::shared_ptr<Stream>& stream, std::chrono::seconds interval) {
  const std::unique_lock lock(mutex_);
  entries_[stream.get()] = {stream, interval, Clock::now() + interval};
  changed_.notify_one();
  if (running_) return 0;
  try {
    std::thread([this] { run(); }).detach();
  } catch (const std::system_error&) {
    entries_.erase(stream.get());
    return EAGAIN;
  }
  running_ = true;
  return 0;
}

void Keepalive::remove(Stream& stream) {
  const std::unique_lock lock(mutex_);
  entries_.erase(&stream);
  changed_.notify_one();
}

void Keepalive::run() {
  std::unique_lock lock(mutex_);
  while (!entries_.empty()) {
    const auto next =
        std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.due; })->second.due;
    changed_.wait_until(lock, next);
    send_due(lock);
  }
  running_ = false;
}

// Releases the lock: other threads take a stream's mutex before this one.
void Keepalive::send_due(std::unique_lock<std::mutex>& lock) {
  std::vector<std::shared_ptr<Stream>> due;
  const Clock::time_point now = Clock::now();
  for (auto& [stream, entry] : entries_) {
    if (entry.due > now) continue;
    entry.due = now + entry.interval;
    if (auto kept = entry.stream.lock()) due.push_back(std::move(kept));
  }
  lock.unlock();
  for (const auto& stream : due) stream->send_keepalive();
  due.clear();
  lock.lock();
}

}  // namespace rnicsim::rsockets
