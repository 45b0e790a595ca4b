// Names of UNIX sockets: those in the abstract space, and those below folders that are a host's own, are the host's.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "verbs/clock/path_walk.h"

namespace rnicsim::clock {

// Where an address that a program gives really leads. Other families stay as they are.
class UnixAddress {
 public:
  // `last`: what the call does with a link of that name.
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
  int folder_ = -1;  // of a path too long for an address
};

// An address that the kernel gave, as the program knows it. `room` bytes are at `address`; *length is what the
// kernel said.
void hide_unix_address(sockaddr* address, socklen_t room, socklen_t* length);

// A call that tells the address of a real socket's end there.
template <class Call>
auto with_unix_name(sockaddr* address, socklen_t* length, Call call) {
  const socklen_t room = length != nullptr ? *length : 0;
  const auto result = call();
  if (result >= 0) hide_unix_address(address, room, length);
  return result;
}

}  // namespace rnicsim::clock
