// SPDX-License-Identifier: Apache-2.0
// A SOCK_DGRAM rsocket: a UDP socket, which provides the port number, and a UD QP for each local address in use.
//
// A datagram to a peer whose QP number is unknown goes by UDP, with a lookup header in front. The peer answers with
// its QP number, and later datagrams go from QP to QP. A thread of the library answers lookups (lookup_service.h).
#pragma once

#include <array>
#include <compare>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "verbs/rsockets/datagrams/datagram_port.h"
#include "verbs/rsockets/datagrams/lookup_service.h"
#include "verbs/rsockets/socket.h"

namespace rnicsim::rsockets {

class Datagram final : public Socket, public LookupSocket, public std::enable_shared_from_this<Datagram> {
 public:
  explicit Datagram(int domain);
  ~Datagram() override;

  // Called first. Returns 0 or a positive errno.
  int create();

  int fd() const override { return udp_; }

  Answer bind(const sockaddr& address, socklen_t length) override;
  Answer listen(int) override { return -EOPNOTSUPP; }
  Answer accept(SocketRef&) override { return -EOPNOTSUPP; }
  Answer connect(const sockaddr& address, socklen_t length) override;
  Answer shutdown(int how) override;
  void close() override;

  Answer receive(std::span<const iovec> into, int flags, AddressOut source) override;
  Answer send(std::span<const iovec> from, int flags, const sockaddr* destination, socklen_t length) override;

  Answer local_address(AddressOut out) override;
  Answer peer_address(AddressOut out) override;
  Answer set_option(int level, int name, const void* value, socklen_t length) override;
  Answer get_option(int level, int name, void* value, socklen_t* length) override;

  Answer map(void*, std::size_t, int, std::int64_t) override { return -EOPNOTSUPP; }
  Answer unmap(void*, std::size_t) override { return -EOPNOTSUPP; }
  Answer write_mapped(const void*, std::size_t, std::int64_t, int) override { return -EOPNOTSUPP; }

  short look(short events) override;

  // Called when the UDP socket is readable: handles a lookup or an answer of a peer.
  void take_lookup() override;

 private:
  // Address, port and family of a socket address, without the fields that do not identify it.
  struct Key {
    explicit Key(const sockaddr& address);
    std::array<std::uint8_t, 20> bytes{};
    auto operator<=>(const Key&) const = default;
  };
  struct Destination {
    SocketAddress address;
    DatagramPort* port;
    ibv_ah* handle;
    std::optional<std::uint32_t> qp_number;  // nullopt: not known yet
  };
  // A received datagram, in a slot of a port or in memory if it came by UDP.
  struct Arrival {
    DatagramPort* port;  // nullptr: the datagram came by UDP
    std::uint32_t slot;
    std::uint32_t offset;  // where the data begin, behind the header
    std::uint32_t length;
    std::vector<std::byte> bytes;
    SocketAddress source;
  };

  void process() override;
  void arm() override;
  void watch(std::vector<pollfd>& descriptors) override;
  void take_events(std::span<const pollfd> descriptors) override;

  // Return 0 or a positive errno.
  int prepare();
  int find_destination(Lock& lock, const sockaddr& address, Destination*& found);
  int find_port(SocketAddress local, DatagramPort*& found);
  int local_port_number(SocketAddress& local) const;

  Answer send_by_udp(const Destination& destination, Op op, std::span<const iovec> from, int flags);
  Answer send_direct(Lock& lock, bool waits, Destination& destination, std::span<const iovec> from);
  void received(DatagramPort& port, const ibv_wc& completion);
  void finish(const Arrival& arrival);

  int udp_ = -1;
  // Set if the program bound the loopback address; the UDP socket is bound to the wildcard then.
  std::optional<SocketAddress> loopback_;
  Sizes sizes_;
  bool prepared_ = false;
  bool closed_ = false;
  SendSlots slots_;
  std::vector<std::unique_ptr<DatagramPort>> ports_;
  std::map<Key, Destination> destinations_;  // entries stay until the socket is destroyed
  Destination* connected_ = nullptr;
  std::deque<Arrival> arrivals_;
};

}  // namespace rnicsim::rsockets
