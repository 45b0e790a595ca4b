// SPDX-License-Identifier: Apache-2.0
// Options of TCP, UDP and IP on sockets of the simulated network. The network has no routers, no fragments and no lost
// segments, so that no option changes what a socket does. A value is checked against Linux's bounds and kept.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace rnicsim::clock {

// Properties of a socket that its options report.
struct InetSocket {
  std::uint32_t number = 0;  // the simulator's number of the socket; TCP and UDP are numbered separately
  int family = 0;
  bool datagrams = false;
  bool listening = false;
  bool connected = false;
  bool within_host = false;         // the peer is on the same host
  std::uint64_t round_trip_us = 0;  // to the peer and back
};

// Return 0 or errno; ENOPROTOOPT: no such option. A value holds for all descriptors of the socket in this process and
// in children that it forks.
int set_inet_option(const InetSocket& socket, int level, int name, const void* value, socklen_t length);
int get_inet_option(const InetSocket& socket, int level, int name, void* value, socklen_t* length);
// A new connection starts with the options of its listener.
void inherit_inet_options(std::uint32_t listener, std::uint32_t accepted);

}  // namespace rnicsim::clock
