// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/simulated_sockets.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "sim/host/kernel/sockets/inet_address.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace

std::optional<KnownDescriptor> find_socket(int fd) {
  const auto descriptor = known(fd);
  return descriptor && descriptor->socket != 0 ? descriptor : std::nullopt;
}

std::optional<KnownDescriptor> find_stream(int fd) {
  const auto descriptor = find_socket(fd);
  return descriptor && !descriptor->datagrams ? descriptor : std::nullopt;
}

bool is_stream(int fd) { return find_stream(fd).has_value(); }

abi::ThreadSlot* network_slot() {
  if (session() == nullptr) return nullptr;
  return simulated() ? simulated_slot() : own_slot();
}

int name_of(const KnownDescriptor& socket, End end, sockaddr* address, socklen_t* length) {
  abi::ThreadSlot* slot = network_slot();
  const auto code = socket.datagrams ? abi::Call::dgram_name : abi::Call::net_name;
  if (const int error = call(*slot, code, {socket.socket}); error != 0) return fail(error);
  abi::NetAddress names[2];
  memcpy(names, slot->output, sizeof names);
  if (end == End::peer && names[1].port == 0) return fail(ENOTCONN);
  from_net(names[end == End::peer ? 1 : 0], socket.family, address, length);
  return 0;
}

int refusal_of_stream(int fd, short events) {
  auto stream = find_stream(fd);
  if (!stream || stream->connected || network_slot() == nullptr) return 0;
  sockaddr_storage peer;
  socklen_t length = sizeof peer;
  if (name_of(*stream, End::peer, reinterpret_cast<sockaddr*>(&peer), &length) != 0)
    return events == POLLIN ? ENOTCONN : EPIPE;
  stream->connected = true;
  remember(fd, *stream);
  return 0;
}

ssize_t settle_write(int fd, ssize_t result) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot != nullptr && result > 0 && is_stream(fd)) call(*slot, abi::Call::net_flush);
  return result;
}

int take_error(int fd) {
  const auto stream = find_stream(fd);
  abi::ThreadSlot* slot = stream ? network_slot() : nullptr;
  return slot != nullptr && call(*slot, abi::Call::net_error, {stream->socket}) == 0 ? int(slot->value) : 0;
}

ssize_t settle_end(int fd, std::size_t wanted, ssize_t found) {
  const int error = found == 0 && wanted != 0 ? take_error(fd) : 0;
  return error != 0 ? fail(error) : found;
}

}  // namespace rnicsim::clock
