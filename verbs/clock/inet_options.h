// Options of TCP, UDP and IP on sockets of the simulated network, which has no routers, no fragments and no lost
// segments: none changes what it does. Each keeps the value that it was given, in the bounds that Linux has.
#pragma once

#include <sys/socket.h>

#include <cstdint>

namespace rnicsim::clock {

// What the options tell of a socket.
struct InetSocket {
  std::uint32_t number = 0;  // the simulator's; those of datagrams have numbers of their own
  int family = 0;
  bool datagrams = false;
  bool listening = false;
  bool connected = false;
  bool within_host = false;         // its peer is
  std::uint64_t round_trip_us = 0;  // to its peer
};

// 0, or errno: ENOPROTOOPT if there is no such option. What was set is known of all descriptors of the socket in this
// process, and in those that it forks.
int set_inet_option(const InetSocket& socket, int level, int name, const void* value, socklen_t length);
int get_inet_option(const InetSocket& socket, int level, int name, void* value, socklen_t* length);
// A connection has what was set on its listener.
void inherit_inet_options(std::uint32_t listener, std::uint32_t accepted);

}  // namespace rnicsim::clock
