// SPDX-License-Identifier: Apache-2.0
// TCP between programs on simulated hosts and machines outside. The out-of-band network of a run has sockets and no
// packets. So for each connection the gateway takes the part of the outside host's program by a stream socket in that
// network, and has a TCP connection with the machine outside.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "model/abi/attach.h"
#include "sim/attached/network/network.h"
#include "sim/guest/wire/ip_stack.h"
#include "sim/guest/wire/tcp_stream.h"

namespace rnicsim::sim {

class TcpGateway {
 public:
  // `outside`: the interfaces of the hosts outside.
  TcpGateway(IpStack& stack, std::vector<abi::NetworkInterface> outside)
      : stack_(stack), outside_(std::move(outside)) {}
  ~TcpGateway();

  void join(Network& network) { network_ = &network; }
  // As declared in OutsideWorld.
  void listens(std::uint32_t host, const abi::NetAddress& local, bool v6_only);
  void listens_no_more(std::uint32_t host, const abi::NetAddress& local);
  void connect(std::uint32_t host, std::uint16_t port, const abi::NetAddress& to,
               std::function<void(int error)> answered);

  void watch(std::vector<pollfd>& watched) const;
  void work();
  // True: bytes of a program, or its end, have not reached the peer yet.
  bool has_outstanding() const;

  // --- The library's callback.
  bool accept(tcp_pcb* connection);  // false: the caller resets the connection

 private:
  using Stream = std::shared_ptr<TcpStream>;
  struct Listener {
    TcpGateway& gateway;
    std::vector<tcp_pcb*> sockets;  // one for each interface and version of IP
    unsigned users = 1;             // SO_REUSEPORT
    static signed char accept(void* listener, tcp_pcb* connection, signed char error);
  };
  using Place = std::pair<std::uint32_t, std::uint16_t>;  // host, port
  // A listener in the run's network that represents a listener outside.
  struct StandIn {
    Network::Number number = 0;
    Descriptor near_end;
  };

  void listen_at(Listener& listener, std::size_t interface, const abi::NetAddress& local, bool v6_only,
                 std::uint16_t port, bool v6);
  const abi::NetworkInterface* outside_at(const abi::NetAddress& address) const;
  StandIn* stand_in(const abi::NetworkInterface& host, const abi::NetAddress& address);
  void finish_connect(const Stream& stream, const abi::NetAddress& to, const std::function<void(int)>& answered);

  IpStack& stack_;
  const std::vector<abi::NetworkInterface> outside_;
  Network* network_ = nullptr;
  std::map<Place, std::unique_ptr<Listener>> listeners_;
  std::map<std::vector<std::uint8_t>, StandIn> stand_ins_;  // key: address and port
  std::list<Stream> streams_;
};

}  // namespace rnicsim::sim
