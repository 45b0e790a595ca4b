// SPDX-License-Identifier: Apache-2.0
// Base class of streams and datagrams: the calls of <rdma/rsocket.h>.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "verbs/rsockets/waiter.h"
#include "verbs/rsockets/wire.h"

namespace rnicsim::rsockets {

// Result of a call: a value >= 0, such as a number of bytes, or a negated errno.
using Answer = std::int64_t;

struct AddressOut {
  sockaddr* address = nullptr;
  socklen_t* length = nullptr;
};
// Copies as much of the address as fits, and sets the full length.
void put_address(const sockaddr& address, AddressOut out);

// Sizes of a socket. Options may change them until the QP exists.
struct Sizes {
  std::uint32_t receive_bytes;
  std::uint32_t send_bytes;
  std::uint16_t send_queue;
  std::uint16_t receive_queue;
  std::uint16_t inline_bytes;
  std::uint16_t iomap_entries;
  static Sizes defaults();
};

class Socket;
using SocketRef = std::shared_ptr<Socket>;

class Socket {
 public:
  Socket(int domain, int type) : domain(domain), type(type) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  virtual ~Socket() = default;

  const int domain;
  const int type;

  // The socket's number for the program is that of this descriptor.
  virtual int fd() const = 0;

  virtual Answer bind(const sockaddr& address, socklen_t length) = 0;
  virtual Answer listen(int backlog) = 0;
  virtual Answer accept(SocketRef& accepted) = 0;
  virtual Answer connect(const sockaddr& address, socklen_t length) = 0;
  virtual Answer shutdown(int how) = 0;
  // The last call. Waits until sent data has arrived.
  virtual void close() = 0;

  virtual Answer receive(std::span<const iovec> into, int flags, AddressOut source) = 0;
  virtual Answer send(std::span<const iovec> from, int flags, const sockaddr* destination, socklen_t length) = 0;

  virtual Answer local_address(AddressOut out) = 0;
  virtual Answer peer_address(AddressOut out) = 0;
  virtual Answer set_option(int level, int name, const void* value, socklen_t length) = 0;
  virtual Answer get_option(int level, int name, void* value, socklen_t* length) = 0;

  virtual Answer map(void* buffer, std::size_t length, int protection, std::int64_t offset) = 0;
  virtual Answer unmap(void* buffer, std::size_t length) = 0;
  virtual Answer write_mapped(const void* buffer, std::size_t length, std::int64_t offset, int flags) = 0;

  // Makes all progress that is possible without waiting. Returns those of `events` that are true, and POLLERR and
  // POLLHUP.
  virtual short look(short events) = 0;
  // From now on a descriptor becomes readable, or `waiter` is woken, when look() may return more.
  void begin_wait(Waiter& waiter, std::vector<pollfd>& descriptors);
  // Ends the wait. `descriptors`: those of begin_wait(); takes the events that made them readable.
  void end_wait(Waiter& waiter, std::span<const pollfd> descriptors);

  int flags() const { return flags_; }
  void set_flags(int flags) { flags_ = flags; }

 protected:
  using Lock = std::unique_lock<std::mutex>;

  bool waits(int call_flags) const;

  // The functions below are called with mutex_ held.
  // Handles completions.
  virtual void process() = 0;
  // The next completion makes a descriptor readable.
  virtual void arm() = 0;
  virtual void watch(std::vector<pollfd>& descriptors) = 0;
  // `descriptors`: those that watch() added.
  virtual void take_events(std::span<const pollfd> descriptors) = 0;

  // Waits until ready() is true. Returns 0, EAGAIN (`waits` is false) or EINTR. The mutex is free during sleeps.
  template <class Ready>
  int wait_until(Lock& lock, bool waits, Ready ready);

  std::mutex mutex_;
  Waiters waiters_;

 private:
  int sleep(Lock& lock);

  std::atomic<int> flags_{0};  // flags of F_SETFL
};

template <class Ready>
int Socket::wait_until(Lock& lock, bool waits, Ready ready) {
  process();
  if (ready()) return 0;
  if (!waits) return EAGAIN;
  for (const PollingTime polling; !polling.over();) {
    lock.unlock();
    lock.lock();
    process();
    if (ready()) return 0;
  }
  for (;;) {
    arm();
    process();
    if (ready()) return 0;
    const int error = sleep(lock);
    process();
    if (ready()) return 0;
    if (error != 0) return error;
  }
}

std::size_t bytes_of(std::span<const iovec> pieces);

}  // namespace rnicsim::rsockets
