// What is known of descriptors beyond what the kernel tells. It is known of the file behind a number: a number that was
// closed and given out anew, by whatever call, is a stranger's.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

// Of a socket of netlink, which the host answers itself.
struct KnownNetlink {
  int protocol = 0;           // NETLINK_
  int type = 0;               // SOCK_RAW or SOCK_DGRAM, between which there is no difference
  std::uint32_t options = 0;  // a bit for each of SOL_NETLINK's that is on

  bool has(int option) const { return (options >> option & 1) != 0; }
};

// A file of a port's counter in sysfs.
struct PortCounter {
  std::uint16_t device = 0;   // of the host
  std::uint16_t number = 0;   // 1 + place in abi::kPortCounterFiles; 0: it is none

  explicit operator bool() const { return number != 0; }
};

struct KnownDescriptor {
  std::uint32_t socket = 0;  // the simulator's number of a socket of the simulated network; 0: it is none
  int family = 0;            // of the socket's addresses
  bool datagrams = false;    // it is UDP's, with numbers of their own
  bool v6_only = false;      // a stream's, as IPV6_V6ONLY was set
  bool listening = false;
  bool connected = false;    // a stream has its other end; false: it may have, by another number or process
  std::uint32_t timer = 0;   // the simulator's number of a timer (timerfd)
  clockid_t timer_clock = 0;
  std::uint32_t signals = 0; // the simulator's number of a watch of signals (signalfd)
  bool is_random = false;    // /dev/random or /dev/urandom: what is read is drawn as getrandom() draws
  std::optional<KnownNetlink> netlink{};
  PortCounter port_counter{};
};

// Nothing: it is the real kernel's alone.
std::optional<KnownDescriptor> known(int fd);
inline bool is_random(int fd) {
  const auto descriptor = known(fd);
  return descriptor && descriptor->is_random;
}

// False: the number is too great to be known.
bool remember(int fd, const KnownDescriptor& descriptor);
void copy_knowledge(int from, int to);  // dup
void forget(int fd);                    // close

bool is_known_event(std::uint32_t number);  // of a timer, or a watch of signals
// The first from `fd` on of which something is known; -1: there is none.
int next_known(int fd);
bool is_event_descriptor(int fd);  // eventfd, and what the simulator made of one
bool is_epoll(int fd);

// In a new image: what it can tell of those that it was given. Sockets are for `know_socket` to know, event descriptors
// for `know_event`.
void know_inherited(void (*know_socket)(int fd), void (*know_event)(int fd));

}  // namespace rnicsim::clock
