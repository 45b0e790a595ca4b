// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/network/network_calls.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace rnicsim::sim {
namespace {

using abi::Call;
using abi::ThreadSlot;

abi::NetAddress address_in(const ThreadSlot& slot) {
  abi::NetAddress address;
  std::memcpy(&address, slot.input, sizeof address);
  return address;
}

// Any other file, for example an eventfd, could be readable without end.
bool is_socket(const Descriptor& descriptor) {
  struct stat kind {};
  return ::fstat(descriptor.get(), &kind) == 0 && S_ISSOCK(kind.st_mode);
}

// A stream would join messages.
bool keeps_messages(const Descriptor& descriptor) {
  int type = 0;
  socklen_t length = sizeof type;
  return ::getsockopt(descriptor.get(), SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

int set_stream_option(Network& network, Network::Number number, abi::DatagramOption option, bool on) {
  switch (option) {
    case abi::DatagramOption::v6_only: return network.set_v6_only(number, on);
    case abi::DatagramOption::reuse_port: network.set_reuse_port(number, on); return 0;
    default: return ENOPROTOOPT;
  }
}

}  // namespace

bool NetworkCalls::execute(Thread& thread, ThreadSlot& slot) {
  if (slot.call == Call::dgram_socket) return new_datagrams(thread, slot);
  if (slot.call > Call::dgram_socket) return datagram_call(slot, thread.process->identity().host);
  return stream_call(thread, slot);
}

// --- Streams.

bool NetworkCalls::stream_call(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  const std::uint32_t host = process.identity().host;
  if (slot.call == Call::net_flush) return true;  // the turn's end collects the bytes
  if (slot.call == Call::net_socket) {
    auto descriptors = process.receive_descriptors(thread.index);
    if (descriptors.empty()) return answer(slot, EBADF);
    if (!is_socket(descriptors.front())) return answer(slot, ENOTSOCK);
    if (descriptors_.lacks(process, "socket")) return answer(slot, EMFILE);
    const auto version = slot.argument[0] == 6 ? IpVersion::v6 : IpVersion::v4;
    slot.value = network_.open(host, std::move(descriptors.front()), version, slot.argument[1]);
    return true;
  }
  if (slot.call == Call::net_inherited) return answer(slot, find_inherited(slot, host));
  const auto number = Network::Number(slot.argument[0]);
  if (slot.call == Call::net_error) {
    slot.value = network_.take_reset(number, host) ? ECONNRESET : 0;
    return true;
  }
  // A connection that was reset is removed; its descriptor remains.
  if (!network_.belongs_to(number, host)) return answer(slot, slot.call == Call::net_name ? ENOTCONN : EINVAL);
  switch (slot.call) {
    case Call::net_bind: {
      std::uint16_t port = 0;
      const int error = network_.bind(number, address_in(slot), port);
      slot.value = port;
      return answer(slot, error);
    }
    case Call::net_listen: return answer(slot, network_.listen(number, std::uint32_t(slot.argument[1])));
    case Call::net_option:
      return answer(slot,
                    set_stream_option(network_, number, abi::DatagramOption(slot.argument[1]), slot.argument[2] != 0));
    case Call::net_accept: return accept(thread, slot, number);
    case Call::net_connect: return connect(thread, slot, number);
    default: {
      abi::NetAddress names[2];
      const int error = network_.names(number, names);
      slot.value = std::uint64_t(network_.round_trip(number).ps);
      std::memcpy(slot.output, names, sizeof names);
      return answer(slot, error);
    }
  }
}

bool NetworkCalls::accept(Thread& thread, ThreadSlot& slot, Network::Number number) {
  Network::Number accepted = 0;
  Descriptor near_end;
  abi::NetAddress peer;
  if (const int error = network_.accept(number, accepted, near_end, peer); error != 0) return answer(slot, error);
  slot.value = accepted;
  put_output(slot, peer);
  return answer(slot, thread.process->send_descriptor(near_end.get()) ? 0 : ENOBUFS);
}

bool NetworkCalls::connect(Thread& thread, ThreadSlot& slot, Network::Number number) {
  const auto waiting = waiting_thread(thread, ThreadState::awaiting_peer);
  keeper_.threads().wait(thread, ThreadState::awaiting_peer, std::nullopt);
  network_.connect(number, address_in(slot), [this, waiting](int error, std::uint16_t port) {
    Thread* thread = waiting();
    if (thread == nullptr) return;
    thread->process->slot(thread->index).value = port;
    keeper_.threads().resume(*thread, now() + keeper_.threads().times_of(*thread->process).wakeup, error);
  });
  return false;
}

// A program knows its sockets by number. After exec, and in a process that received the descriptor, only the inode is
// known.
int NetworkCalls::find_inherited(ThreadSlot& slot, std::uint32_t host) const {
  const auto tell = [&](const auto& found, bool datagrams) {
    slot.value = found.number;
    slot.argument[1] = found.version == IpVersion::v6 ? 6 : 4;
    slot.argument[2] = datagrams;
    return 0;
  };
  const std::uint64_t inode = slot.argument[0];
  if (inode == 0) return ENOENT;
  if (const auto stream = network_.find(host, inode)) return tell(*stream, false);
  if (const auto socket = network_.datagrams().find(host, inode)) return tell(*socket, true);
  return ENOENT;
}

// --- Datagrams.

bool NetworkCalls::new_datagrams(Thread& thread, ThreadSlot& slot) {
  Process& process = *thread.process;
  auto descriptors = process.receive_descriptors(thread.index);
  if (descriptors.empty()) return answer(slot, EBADF);
  if (!is_socket(descriptors.front()) || !keeps_messages(descriptors.front())) return answer(slot, ENOTSOCK);
  if (slot.argument[0] != 4 && slot.argument[0] != 6) return answer(slot, EAFNOSUPPORT);
  if (descriptors_.lacks(process, "socket")) return answer(slot, EMFILE);
  const auto version = slot.argument[0] == 4 ? Datagrams::Version::v4 : Datagrams::Version::v6;
  slot.value =
      network_.datagrams().open(process.identity().host, std::move(descriptors.front()), version, slot.argument[1]);
  return true;
}

bool NetworkCalls::datagram_call(ThreadSlot& slot, std::uint32_t host) {
  Datagrams& datagrams = network_.datagrams();
  const auto number = Datagrams::Number(slot.argument[0]);
  if (!datagrams.belongs_to(number, host)) return answer(slot, EBADF);
  switch (slot.call) {
    case Call::dgram_bind: return answer(slot, datagrams.bind(number, address_in(slot)));
    case Call::dgram_connect: return answer(slot, datagrams.connect(number, address_in(slot)));
    case Call::dgram_disconnect: return answer(slot, datagrams.disconnect(number));
    case Call::dgram_send: {
      abi::NetAddress to = address_in(slot);
      const int error = datagrams.prepare_send(number, to);
      put_output(slot, to);
      return answer(slot, error);
    }
    case Call::dgram_option:
      return answer(slot, datagrams.set_option(number, abi::DatagramOption(slot.argument[1]), slot.argument[2]));
    default: {
      abi::NetAddress names[2];
      datagrams.names(number, names);
      std::memcpy(slot.output, names, sizeof names);
      return true;
    }
  }
}

}  // namespace rnicsim::sim
