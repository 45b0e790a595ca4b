// SPDX-License-Identifier: Apache-2.0
#include "verbs/rsockets/preload/next_calls.h"

#include <dlfcn.h>

namespace rnicsim::rsockets::preload {

namespace {

template <class Call>
void find(Call& call, const char* name) {
  call = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, name));
}

NextCalls find_all() {
  NextCalls next{};
  find(next.socket, "socket");
  find(next.bind, "bind");
  find(next.listen, "listen");
  find(next.accept4, "accept4");
  find(next.connect, "connect");
  find(next.shutdown, "shutdown");
  find(next.close, "close");
  find(next.recv, "recv");
  find(next.recvfrom, "recvfrom");
  find(next.recvmsg, "recvmsg");
  find(next.read, "read");
  find(next.readv, "readv");
  find(next.send, "send");
  find(next.sendto, "sendto");
  find(next.sendmsg, "sendmsg");
  find(next.write, "write");
  find(next.writev, "writev");
  find(next.poll, "poll");
  find(next.select, "select");
  find(next.getpeername, "getpeername");
  find(next.getsockname, "getsockname");
  find(next.setsockopt, "setsockopt");
  find(next.getsockopt, "getsockopt");
  find(next.fcntl, "fcntl64");
  find(next.dup, "dup");
  find(next.dup2, "dup2");
  find(next.sendfile, "sendfile64");
  return next;
}

}  // namespace

const NextCalls& next_calls() {
  static const NextCalls found = find_all();
  return found;
}

}  // namespace rnicsim::rsockets::preload
