// SPDX-License-Identifier: Apache-2.0
// UDP of the simulated out-of-band network. A program's descriptor is one end of a real SOCK_SEQPACKET pair, the
// simulator holds the other end. Each message begins with an abi::DatagramHeader.
//
// A socket's datagrams leave one after the other, at the network's rate. Those that wait for the line stay in the
// pair, which is the send buffer: a program that writes faster finds it full. A datagram is dropped when the
// receiver's buffer is full or no socket has the port.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/event_queue.h"
#include "sim/attached/network/host_addresses.h"
#include "sim/config/network_params.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class Datagrams {
 public:
  using Number = std::uint32_t;
  using Version = IpVersion;

  Datagrams(const NetworkParams& params, const HostAddresses& addresses);

  // Called after a datagram arrived at a descriptor or left one.
  std::function<void()> on_arrival;

  // Calls of a program on `host`, at the present time. Return 0 or an errno.
  Number open(std::uint32_t host, Descriptor far_end, Version version, std::uint64_t inode = 0);
  int bind(Number number, abi::NetAddress address);
  int connect(Number number, abi::NetAddress to);
  int disconnect(Number number);
  int set_option(Number number, abi::DatagramOption option, std::uint64_t value);
  // Called before a program writes a message. On input, port 0 of `to` means the connected peer; on output `to` is the
  // destination.
  int prepare_send(Number number, abi::NetAddress& to);
  void names(Number number, abi::NetAddress (&names)[2]) const;
  bool belongs_to(Number number, std::uint32_t host) const;
  // A socket found by the inode of its program's descriptor.
  struct Found {
    Number number;
    Version version;
  };
  std::optional<Found> find(std::uint32_t host, std::uint64_t inode) const;

  // Takes the messages that programs wrote since the last call; none was written after `written`.
  void collect(Duration written);
  int descriptor() const { return epoll_.get(); }  // readable when collect() has something to take

  // Default of SO_SNDBUF and SO_RCVBUF, in bytes as Linux counts them.
  static constexpr int kBufferBytes = 212'992;

 private:
  struct Socket {
    std::uint32_t host = 0;
    Version version = Version::v4;
    Descriptor far_end;
    std::uint64_t inode = 0;
    abi::NetAddress local;                  // port 0: not bound
    std::optional<abi::NetAddress> remote;  // set: the connected peer
    bool address_asked = false;             // the program bound the local address; it was not chosen by connect()
    bool port_asked = false;
    bool reuses_address = false;
    bool v6_only = false;
    std::uint64_t order = 0;  // counts bindings to ports; the later one is greater
    Duration line_free;
    bool line_awaited = false;  // a message waits until line_free
  };
  struct Datagram {
    Number from = 0;
    std::uint32_t from_host = 0;
    std::uint32_t to_host = 0;
    abi::NetAddress source;
    abi::NetAddress destination;
    std::vector<std::byte> payload;
  };

  abi::NetAddress wildcard(const Socket& socket) const;
  bool takes_port(Number number, const abi::NetAddress& local);
  int route(const Socket& socket, abi::NetAddress& to, abi::NetAddress& source) const;
  std::optional<std::uint16_t> free_port(std::uint32_t host);
  std::optional<Number> receiver(const Datagram& datagram) const;
  Duration latency(std::uint32_t from, std::uint32_t to) const;

  void watch(Number number, std::uint32_t events, int operation);
  void look(Number number, std::uint32_t events, Duration written);
  void await_line(Number number);
  void line_is_free(Number number);
  std::size_t take_one(Number number, Duration written);
  void take_all(Number number, Duration written);
  void send(Number number, const abi::DatagramHeader& header, std::size_t payload_bytes, Duration written);
  void deliver_due();
  void deliver(const Datagram& datagram);
  void refuse(const Datagram& datagram);
  static void put(const Socket& socket, abi::DatagramHeader header, const std::vector<std::byte>& payload);

  const NetworkParams& params_;
  const HostAddresses& addresses_;
  std::map<Number, Socket> sockets_;
  Number next_ = 1;
  std::uint64_t next_order_ = 1;
  // Starts above the ports that rdma_cm gives out first: a datagram rsocket needs its port in both port spaces.
  EphemeralPorts ports_{49152};
  std::vector<std::byte> message_;  // the message read last
  Descriptor epoll_;
  EventQueue<std::function<void()>> events_{[this] { deliver_due(); }};
};

}  // namespace rnicsim::sim
