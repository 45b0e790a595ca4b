// SPDX-License-Identifier: Apache-2.0
// TCP of the simulated out-of-band network. A program's descriptor is one end of a real stream pair, the simulator
// holds the other end. Bytes leave at the time of the thread that wrote them and arrive after the network's latency.
// UDP is in datagrams.h.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/event_queue.h"
#include "sim/attached/network/datagrams.h"
#include "sim/attached/network/host_addresses.h"
#include "sim/config/network_params.h"
#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class OutsideWorld;

class Network : public sc_core::sc_module {
 public:
  using Number = std::uint32_t;

  // `outside`: the world of hosts that are not simulated; nullptr: all hosts are simulated.
  Network(sc_core::sc_module_name name, const NetworkParams& params, std::vector<abi::NetworkInterface> hosts,
          OutsideWorld* outside = nullptr);

  // Called after bytes, a connection or an end of stream arrived at a descriptor.
  std::function<void()> on_arrival;

  // Calls of a program on `host`, at the present time. Return 0 or an errno. `inode`: of the program's descriptor.
  Number open(std::uint32_t host, Descriptor far_end, IpVersion version = IpVersion::v4, std::uint64_t inode = 0);
  int bind(Number number, const abi::NetAddress& address, std::uint16_t& port);
  int listen(Number number, std::uint32_t backlog);
  int set_v6_only(Number number, bool on);
  void set_reuse_port(Number number, bool on) { sockets_.at(number).reuse_port = on; }
  // `done` is called when the connection is established or refused.
  void connect(Number number, const abi::NetAddress& to, std::function<void(int error, std::uint16_t port)> done);
  // On success `near_end` is the program's descriptor of the accepted connection.
  int accept(Number number, Number& accepted, Descriptor& near_end, abi::NetAddress& peer);
  int names(Number number, abi::NetAddress (&names)[2]) const;
  Duration round_trip(Number number) const;  // 0: not connected
  // True once after a reset: the program reads ECONNRESET instead of the end of stream.
  bool take_reset(Number number, std::uint32_t host);
  bool belongs_to(Number number, std::uint32_t host) const;
  // A socket found by the inode of its program's descriptor.
  struct Found {
    Number number;
    IpVersion version;
  };
  std::optional<Found> find(std::uint32_t host, std::uint64_t inode) const;

  // Takes the bytes that programs wrote since the last call; they leave at `written`.
  void collect(Duration written);
  int descriptor() const { return epoll_.get(); }  // readable when collect() has something to take
  Datagrams& datagrams() { return datagrams_; }

 private:
  static constexpr Number kDatagrams = 0;  // the datagrams' descriptor in the epoll set; sockets count from 1

  struct Socket {
    std::uint32_t host = 0;
    Descriptor far_end;
    Descriptor near_end;  // set until the connection is accepted
    IpVersion version = IpVersion::v4;
    bool v6_only = false;
    bool reuse_port = false;
    std::uint64_t inode = 0;
    abi::NetAddress local;
    abi::NetAddress remote;
    std::optional<Number> peer;
    bool refused = false;  // the listener was closed before it accepted this connection
    bool listening = false;
    std::uint32_t backlog = 0;
    std::deque<Number> waiting;          // connections that wait for accept()
    std::vector<std::byte> undelivered;  // bytes that arrived while the program's receive buffer was full
    std::uint64_t coming = 0;            // bytes sent by the peer that are not in the program's receive buffer yet
    bool write_ended = false;            // the program closed or shut down its side
    bool end_arrived = false;            // the peer's end of stream has arrived
    bool read_ended = false;             // the program's descriptor shows the end of stream
    Duration line_free;
  };

  void collect_from(Number number, Duration written);
  void collect_halted(Duration written);
  bool is_full(Number sender) const;
  void halt(Number number);
  enum class End { closed, reset };
  void end_writing(Number number, Duration start, End end);
  void deliver_due();
  void deliver(Number to, std::vector<std::byte> bytes);
  void deliver_end(Number to);
  void send_reset(const Socket& from);
  void deliver_reset(Number to);
  void push_undelivered(Number number);
  void connect_outside(Number number, std::uint32_t outside_host, const abi::NetAddress& to,
                       std::function<void(int, std::uint16_t)> done);
  void listens_no_more(Socket& socket);
  void finish_connect(Number number, const abi::NetAddress& to, std::function<void(int, std::uint16_t)> done);
  std::optional<Number> listener(std::uint32_t host, const abi::NetAddress& address, Number asking) const;
  std::optional<std::uint16_t> ephemeral_port(std::uint32_t host);
  static bool has_port(const Socket& socket, std::uint32_t host, std::uint16_t port);
  bool is_taken(const Socket& socket, const abi::NetAddress& address) const;
  Duration latency(std::uint32_t from, std::uint32_t to) const;
  void watch(Number number);
  void forget_if_closed(Number number);

  const NetworkParams params_;
  const HostAddresses addresses_;
  OutsideWorld* const outside_;
  std::map<Number, Socket> sockets_;
  std::set<Number> full_;                   // have undelivered bytes
  std::map<Number, std::uint32_t> resets_;  // host of each reset socket whose program has not asked yet
  std::set<Number> halted_;                 // nothing is read from these until their peers have room
  Number next_ = 1;
  EphemeralPorts ports_{32768};
  Descriptor epoll_;
  Datagrams datagrams_;
  EventQueue<std::function<void()>> arrivals_{[this] { deliver_due(); }};
};

}  // namespace rnicsim::sim
