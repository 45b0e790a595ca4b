// The simulated out-of-band network: TCP between simulated hosts, over real stream descriptors whose far ends are here.
// Bytes carry their sender's time and arrive after the network's latency. UDP is in datagrams.h.
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
#include "sim/attached/datagrams.h"
#include "sim/attached/host_addresses.h"
#include "sim/config/network_params.h"
#include "sim/descriptor.h"

namespace rnicsim::sim {

class OutsideWorld;

class Network : public sc_core::sc_module {
 public:
  using Number = std::uint32_t;

  // `outside`: some hosts are not simulated; nullptr: all are.
  Network(sc_core::sc_module_name name, const NetworkParams& params, std::vector<abi::NetworkInterface> hosts,
          OutsideWorld* outside = nullptr);

  // Runs after bytes, connections or ends arrived at some descriptor.
  std::function<void()> on_arrival;

  // Calls of a program on `host`, at the present time: 0 or errno.
  // `inode` is that of the program's end.
  Number open(std::uint32_t host, Descriptor far_end, IpVersion version = IpVersion::v4, std::uint64_t inode = 0);
  int bind(Number number, const abi::NetAddress& address, std::uint16_t& port);
  int listen(Number number, std::uint32_t backlog);
  int set_v6_only(Number number, bool on);
  void set_reuse_port(Number number, bool on) { sockets_.at(number).reuse_port = on; }
  // `done` runs when the connection stands or is refused.
  void connect(Number number, const abi::NetAddress& to, std::function<void(int error, std::uint16_t port)> done);
  // On success `near_end` is the program's end of the accepted connection.
  int accept(Number number, Number& accepted, Descriptor& near_end, abi::NetAddress& peer);
  int names(Number number, abi::NetAddress (&names)[2]) const;
  Duration round_trip(Number number) const;  // 0: there is no connection
  // True, once: what its program reads ends by a reset, and not by the peer's end.
  bool take_reset(Number number, std::uint32_t host);
  bool belongs_to(Number number, std::uint32_t host) const;
  // That of which a program on `host` has the end with that inode.
  struct Found {
    Number number;
    IpVersion version;
  };
  std::optional<Found> find(std::uint32_t host, std::uint64_t inode) const;

  // Takes what programs wrote since the last call; the bytes left at `written`.
  void collect(Duration written);
  int descriptor() const { return epoll_.get(); }  // readable when there is something to collect
  Datagrams& datagrams() { return datagrams_; }

 private:
  static constexpr Number kDatagrams = 0;  // among the descriptors watched: no socket has it

  struct Socket {
    std::uint32_t host = 0;
    Descriptor far_end;
    Descriptor near_end;                 // of a connection not yet accepted
    IpVersion version = IpVersion::v4;
    bool v6_only = false;
    bool reuse_port = false;
    std::uint64_t inode = 0;
    abi::NetAddress local;
    abi::NetAddress remote;
    std::optional<Number> peer;
    bool refused = false;                // its listener went before it was accepted
    bool listening = false;
    std::uint32_t backlog = 0;
    std::deque<Number> waiting;          // connections to accept
    std::vector<std::byte> undelivered;  // what the program's buffer had no room for
    std::uint64_t coming = 0;            // bytes that the peer sent and the program's buffer has not taken yet
    bool write_ended = false;            // the program closed or shut down its side
    bool end_arrived = false;            // the peer's end
    bool read_ended = false;             // told the program so
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
  std::set<Number> full_;                // with bytes undelivered
  std::map<Number, std::uint32_t> resets_;  // of which their programs, on these hosts, have not heard
  std::set<Number> halted_;              // nothing is taken from their programs until there is room at their peers
  Number next_ = 1;
  EphemeralPorts ports_{32768};
  Descriptor epoll_;
  Datagrams datagrams_;
  EventQueue<std::function<void()>> arrivals_{[this] { deliver_due(); }};
};

}  // namespace rnicsim::sim
