// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/socket.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "verbs/rsockets/settings.h"

namespace rnicsim::rsockets {

void put_address(const sockaddr& address, AddressOut out) {
  if (out.length == nullptr) return;
  const socklen_t full = length_of(address);
  if (out.address != nullptr) std::memcpy(out.address, &address, std::min(*out.length, full));
  *out.length = full;
}

Sizes Sizes::defaults() {
  const Settings& set = settings();
  return {.receive_bytes = set.receive_bytes,
          .send_bytes = set.send_bytes,
          .send_queue = set.send_queue,
          .receive_queue = set.receive_queue,
          .inline_bytes = set.inline_bytes,
          .iomap_entries = set.iomap_entries};
}

bool Socket::waits(int call_flags) const { return (flags_ & O_NONBLOCK) == 0 && (call_flags & MSG_DONTWAIT) == 0; }

void Socket::begin_wait(Waiter& waiter, std::vector<pollfd>& descriptors) {
  const Lock lock(mutex_);
  arm();
  waiters_.add(waiter);
  watch(descriptors);
}

void Socket::end_wait(Waiter& waiter, std::span<const pollfd> descriptors) {
  const Lock lock(mutex_);
  waiters_.remove(waiter);
  take_events(descriptors);
}

int Socket::sleep(Lock& lock) {
  Waiter* waiter = Waiter::of_this_thread();
  if (waiter == nullptr) return errno;
  std::vector<pollfd> descriptors;
  waiters_.add(*waiter);
  watch(descriptors);
  const std::size_t own = descriptors.size();
  descriptors.push_back({waiter->fd(), POLLIN, 0});
  lock.unlock();
  int error;
  try {
    error = sleep_on(descriptors, -1);
  } catch (...) {  // the thread is cancelled
    lock.lock();
    waiters_.remove(*waiter);
    throw;
  }
  if (error == 0 && descriptors[own].revents != 0) waiter->quiet();
  lock.lock();
  waiters_.remove(*waiter);
  if (error == 0) take_events(std::span(descriptors).first(own));
  return error;
}

std::size_t bytes_of(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces) bytes += piece.iov_len;
  return bytes;
}

}  // namespace rnicsim::rsockets
