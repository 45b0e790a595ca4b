// SPDX-License-Identifier: Apache-2.0
// Properties of descriptors that the kernel does not tell. An entry belongs to the file behind a number: if the number
// is closed and given to another file, the entry no longer counts.
#pragma once

#include <time.h>

#include <cstdint>
#include <optional>

namespace rnicsim::clock {

// A netlink socket, which this library answers for the host.
struct KnownNetlink {
  int protocol = 0;           // NETLINK_
  int type = 0;               // SOCK_RAW or SOCK_DGRAM; netlink treats them alike
  std::uint32_t options = 0;  // bit n: option n of SOL_NETLINK is on

  bool has(int option) const { return (options >> option & 1) != 0; }
};

// A counter of a port, as a file in sysfs.
struct PortCounter {
  std::uint16_t device = 0;  // number of the device on the host
  std::uint16_t number = 0;  // 1 + index in abi::kPortCounterFiles; 0: not such a file

  explicit operator bool() const { return number != 0; }
};

struct KnownDescriptor {
  std::uint32_t socket = 0;  // the simulator's number of a socket of the simulated network; 0: not such a socket
  int family = 0;            // address family of the socket
  bool datagrams = false;    // UDP; TCP and UDP sockets are numbered separately
  bool v6_only = false;      // TCP: IPV6_V6ONLY is set
  bool listening = false;
  bool connected = false;   // TCP: there is a connection; false: unknown, because another descriptor or process may
                            // have connected the socket
  std::uint32_t timer = 0;  // the simulator's number of a timer (timerfd); 0: none
  clockid_t timer_clock = 0;
  std::uint32_t signals = 0;  // the simulator's number of a signal watch (signalfd); 0: none
  bool is_random = false;     // /dev/random or /dev/urandom: reads return random bytes as getrandom() does
  std::optional<KnownNetlink> netlink{};
  PortCounter port_counter{};
};

// nullopt: no entry; the descriptor is the real kernel's alone.
std::optional<KnownDescriptor> known(int fd);
inline bool is_random(int fd) {
  const auto descriptor = known(fd);
  return descriptor && descriptor->is_random;
}

// False: the number is above the table's end, or not open.
bool remember(int fd, const KnownDescriptor& descriptor);
void copy_knowledge(int from, int to);  // dup
void forget(int fd);                    // close

bool is_known_event(std::uint32_t number);  // True: the timer or signal watch of a descriptor
// The first descriptor from `fd` on that has an entry; -1: none.
int next_known(int fd);
bool is_event_descriptor(int fd);  // eventfd, also that of a timer or a signal watch
bool is_epoll(int fd);

// In a new image: registers the descriptors that it inherited. Sockets are passed to `know_socket`, event descriptors
// to `know_event`.
void know_inherited(void (*know_socket)(int fd), void (*know_event)(int fd));

}  // namespace rnicsim::clock
