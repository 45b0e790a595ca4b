// UDP of the simulated out-of-band network. A program's descriptor is one end of a real SOCK_SEQPACKET pair whose other
// end is here; each message begins with an abi::DatagramHeader.
//
// A socket's datagrams leave one after the other, at the network's rate. What has to wait for that stays in the pair,
// which is the send buffer: a program that is faster finds it full. What arrives goes into the pair, too: a datagram
// that finds the receiver's buffer full is dropped, as is one to a port that nobody has.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/event_queue.h"
#include "sim/attached/host_addresses.h"
#include "sim/config/network_params.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class Datagrams {
 public:
  using Number = std::uint32_t;
  using Version = IpVersion;

  Datagrams(const NetworkParams& params, const HostAddresses& addresses);

  // Runs after something arrived at some descriptor, or left one.
  std::function<void()> on_arrival;

  // Calls of a program on `host`, at the present time: 0 or errno.
  // `inode` is that of the program's end.
  Number open(std::uint32_t host, Descriptor far_end, Version version, std::uint64_t inode = 0);
  int bind(Number number, abi::NetAddress address);
  int connect(Number number, abi::NetAddress to);
  int disconnect(Number number);
  int set_option(Number number, abi::DatagramOption option, std::uint64_t value);
  // A message is about to be written. `to`, port 0: the peer's; becomes where it goes.
  int prepare_send(Number number, abi::NetAddress& to);
  void names(Number number, abi::NetAddress (&names)[2]) const;
  bool belongs_to(Number number, std::uint32_t host) const;
  // That of which a program on `host` has the end with that inode.
  struct Found {
    Number number;
    Version version;
  };
  std::optional<Found> find(std::uint32_t host, std::uint64_t inode) const;

  // Takes what programs wrote since the last call, before `written`.
  void collect(Duration written);
  int descriptor() const { return epoll_.get(); }  // readable when there is something to collect

  // Of a buffer that nobody asked to be another, as SO_SNDBUF and SO_RCVBUF count it.
  static constexpr int kBufferBytes = 212'992;

 private:
  struct Socket {
    std::uint32_t host = 0;
    Version version = Version::v4;
    Descriptor far_end;
    std::uint64_t inode = 0;
    abi::NetAddress local;                  // port 0: none yet
    std::optional<abi::NetAddress> remote;  // connected
    bool address_asked = false;             // the local one was bound, and not chosen
    bool port_asked = false;
    bool reuses_address = false;
    bool v6_only = false;
    std::uint64_t order = 0;                // of getting the port
    Duration line_free;
    bool line_awaited = false;              // it has more to send
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
  // Not those that rdma_cm gives out first: a datagram rsocket has its port in both spaces.
  EphemeralPorts ports_{49152};
  std::vector<std::byte> message_;  // that was read last
  Descriptor epoll_;
  EventQueue<std::function<void()>> events_{[this] { deliver_due(); }};
};

}  // namespace rnicsim::sim
