// SPDX-License-Identifier: Apache-2.0
// Names of UNIX sockets. Abstract names, and names below one of the host's own folders, belong to the host.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "sim/host/kernel/files/path_walk.h"

namespace rnicsim::clock {

// The real address for an address that a program gives. Addresses of other families stay.
class UnixAddress {
 public:
  // `last`: how the call treats a symbolic link of that name.
  UnixAddress(const sockaddr* given, socklen_t length, Last last);
  ~UnixAddress();
  UnixAddress(const UnixAddress&) = delete;
  UnixAddress& operator=(const UnixAddress&) = delete;

  const sockaddr* get() const { return address_; }
  socklen_t length() const { return length_; }

 private:
  void set_abstract(const sockaddr_un& given, socklen_t length);
  void set_path(const char* path);

  const sockaddr* address_;
  socklen_t length_;
  sockaddr_un own_{};
  int folder_ = -1;  // open folder of a path that is too long for an address
};

// Turns an address from the kernel into the address that the program knows, in place. `address` has `room` bytes;
// *length is the length that the kernel returned.
void hide_unix_address(sockaddr* address, socklen_t room, socklen_t* length);

// Makes a call that writes a real socket's address to `address`, and turns that into the address that the program
// knows.
template <class Call>
auto with_unix_name(sockaddr* address, socklen_t* length, Call call) {
  const socklen_t room = length != nullptr ? *length : 0;
  const auto result = call();
  if (result >= 0) hide_unix_address(address, room, length);
  return result;
}

}  // namespace rnicsim::clock
