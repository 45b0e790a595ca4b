// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/waiter.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>

#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets {

Waiter::Waiter() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Waiter::~Waiter() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {
thread_local std::unique_ptr<Waiter> mine;
}

const Waiter* Waiter::known_of_this_thread() { return mine.get(); }

Waiter* Waiter::of_this_thread() {
  if (mine == nullptr) mine = std::make_unique<Waiter>();
  if (mine->fd() >= 0) return mine.get();
  const int error = errno;
  mine.reset();
  errno = error;
  return nullptr;
}

void Waiter::wake() const {
  const std::uint64_t one = 1;
  // A failed write means that the counter is full, so the thread wakes anyway.
  [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
}
void Waiter::quiet() const {
  std::uint64_t count;
  [[maybe_unused]] const auto read = ::read(fd_, &count, sizeof count);
}

PollingTime::PollingTime() : end_(std::chrono::steady_clock::now() + settings().polling_time) {}
bool PollingTime::over() const { return std::chrono::steady_clock::now() > end_; }

int sleep_on(std::vector<pollfd>& descriptors, int timeout_ms) {
  return ::poll(descriptors.data(), nfds_t(descriptors.size()), timeout_ms) < 0 ? errno : 0;
}

}  // namespace rnicsim::rsockets
