// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/sockets/inet_options.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <climits>
#include <iterator>

#include "model/abi/host_files.h"

namespace rnicsim::clock {
namespace {

enum Of : unsigned { kStreams = 1, kDatagrams = 2, kAll = 3 };

struct Row {
  int level;
  int name;
  Of of;
  int by_default;
  int least = 0;
  int most = 1;
};
// True: an option that is on or off. Any number but 0 means on.
constexpr bool is_switch(const Row& row) { return row.least == 0 && row.most == 1; }

constexpr int kAny = INT_MAX;
constexpr Row kRows[] = {
    {IPPROTO_TCP, TCP_NODELAY, kStreams, 0},
    {IPPROTO_TCP, TCP_CORK, kStreams, 0},
    {IPPROTO_TCP, TCP_KEEPIDLE, kStreams, 7200, 1, 32767},
    {IPPROTO_TCP, TCP_KEEPINTVL, kStreams, 75, 1, 32767},
    {IPPROTO_TCP, TCP_KEEPCNT, kStreams, 9, 1, 127},
    {IPPROTO_TCP, TCP_SYNCNT, kStreams, 6, 1, 127},
    {IPPROTO_TCP, TCP_LINGER2, kStreams, 60, -1, kAny},
    {IPPROTO_TCP, TCP_DEFER_ACCEPT, kStreams, 0, 0, kAny},
    {IPPROTO_TCP, TCP_WINDOW_CLAMP, kStreams, 0, 0, kAny},
    {IPPROTO_TCP, TCP_QUICKACK, kStreams, 1},
    {IPPROTO_TCP, TCP_USER_TIMEOUT, kStreams, 0, 0, kAny},
    {IPPROTO_TCP, TCP_FASTOPEN, kStreams, 0, 0, kAny},
    {IPPROTO_TCP, TCP_FASTOPEN_CONNECT, kStreams, 0},
    {IPPROTO_TCP, TCP_NOTSENT_LOWAT, kStreams, -1, INT_MIN, kAny},
    {IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, kStreams, 0},
    {IPPROTO_IP, IP_TOS, kAll, 0, 0, 255},
    {IPPROTO_IP, IP_TTL, kAll, 64, -1, 255},
    {IPPROTO_IP, IP_MTU_DISCOVER, kAll, IP_PMTUDISC_WANT, 0, IP_PMTUDISC_OMIT},
    {IPPROTO_IP, IP_RECVERR, kAll, 0},
    {IPPROTO_IP, IP_FREEBIND, kStreams, 0},
    {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, kStreams, 0},
    {IPPROTO_IP, IP_MULTICAST_TTL, kDatagrams, 1, -1, 255},
    {IPPROTO_IP, IP_MULTICAST_LOOP, kDatagrams, 1},
    {IPPROTO_IP, IP_MULTICAST_IF, kDatagrams, 0, INT_MIN, kAny},
    {IPPROTO_IPV6, IPV6_TCLASS, kAll, 0, -1, 255},
    {IPPROTO_IPV6, IPV6_UNICAST_HOPS, kAll, 64, -1, 255},
    {IPPROTO_IPV6, IPV6_MTU_DISCOVER, kAll, IPV6_PMTUDISC_WANT, 0, IPV6_PMTUDISC_OMIT},
    {IPPROTO_IPV6, IPV6_RECVERR, kAll, 0},
    {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kDatagrams, 1, -1, 255},
    {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, kDatagrams, 1},
    {IPPROTO_IPV6, IPV6_MULTICAST_IF, kDatagrams, 0, 0, kAny},
    {SOL_SOCKET, SO_REUSEPORT, kStreams, 0},
};
// Behind the rows come the places of TCP_MAXSEG, whose default depends on the path to the peer, and of TCP_CONGESTION.
constexpr int kSegment = int(std::size(kRows)), kControl = kSegment + 1, kPlaces = kControl + 1;
static_assert(kPlaces <= 64);

constexpr const char* kControls[] = {"cubic", "reno"};
constexpr std::size_t kMostName = 16;  // TCP_CA_NAME_MAX

// The options that were set on one socket.
struct Options {
  std::uint32_t number = 0;  // 0: free
  bool datagrams = false;
  std::uint64_t set = 0;  // bit n: place n was set
  std::array<std::int32_t, kPlaces> values{};

  bool has(int place) const { return (set >> place & 1) != 0; }
  int value(int place, int by_default) const { return has(place) ? values[std::size_t(place)] : by_default; }
  void put(int place, int value) {
    set |= std::uint64_t{1} << place;
    values[std::size_t(place)] = value;
  }
};
// Only sockets with options have an entry. A socket's number is never used again: a new entry replaces the oldest one.
constexpr std::size_t kMostSockets = 1024;
constinit Options all[kMostSockets];
constinit std::size_t next_place = 0;

Options* find(std::uint32_t number, bool datagrams) {
  auto* found = std::ranges::find_if(
      all, [&](const Options& each) { return each.number == number && each.datagrams == datagrams; });
  return found != std::end(all) ? found : nullptr;
}
Options options_of(const InetSocket& socket) {
  const Options* found = find(socket.number, socket.datagrams);
  return found != nullptr ? *found : Options{};
}
void keep(const InetSocket& socket, int place, int value) {
  Options* found = find(socket.number, socket.datagrams);
  if (found == nullptr) {
    found = &all[next_place++ % kMostSockets];
    *found = {.number = socket.number, .datagrams = socket.datagrams};
  }
  found->put(place, value);
}

int place_of(const InetSocket& socket, int level, int name) {
  if (level == IPPROTO_IPV6 && socket.family != AF_INET6) return -1;
  const Of of = socket.datagrams ? kDatagrams : kStreams;
  const auto* row = std::ranges::find_if(
      kRows, [&](const Row& each) { return each.level == level && each.name == name && (each.of & of) != 0; });
  return row != std::end(kRows) ? int(row - kRows) : -1;
}

int mtu_of(const InetSocket& socket) {
  constexpr int kLoopback = 65536;
  return socket.within_host ? kLoopback : int(abi::kNetDeviceMtu);
}

// Largest payload of a segment in bytes. All segments have timestamps (12 bytes).
int segment_of(const InetSocket& socket) {
  constexpr int kUnconnected = 536, kHeaders = 20 + 12;
  const Options options = options_of(socket);
  if (!socket.connected) return options.value(kSegment, kUnconnected);
  return std::min(options.value(kSegment, INT_MAX), mtu_of(socket) - kHeaders - (socket.family == AF_INET6 ? 40 : 20));
}

// TCP_INFO of a connection at rest: nothing was lost, and nothing is under way.
tcp_info describe(const InetSocket& socket) {
  enum { kEstablished = 1, kClosed = 7, kListening = 10 };  // values of <netinet/tcp.h>
  constexpr std::uint32_t kLeastTimeout = 200'000, kFirstWindow = 10, kNoThreshold = 0x7fffffff, kWindow = 65535;
  const auto segment = std::uint32_t(segment_of(socket));
  const auto round_trip = std::uint32_t(socket.round_trip_us);
  tcp_info info{};
  info.tcpi_state = socket.connected ? kEstablished : socket.listening ? kListening : kClosed;
  if (!socket.connected) return info;
  info.tcpi_options = TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE;
  info.tcpi_snd_wscale = info.tcpi_rcv_wscale = 7;
  info.tcpi_rto = kLeastTimeout + round_trip;
  info.tcpi_ato = 40'000;
  info.tcpi_snd_mss = info.tcpi_rcv_mss = info.tcpi_advmss = segment;
  info.tcpi_pmtu = std::uint32_t(mtu_of(socket));
  info.tcpi_rcv_ssthresh = info.tcpi_rcv_space = info.tcpi_snd_wnd = kWindow;
  info.tcpi_rtt = info.tcpi_rcv_rtt = info.tcpi_min_rtt = round_trip;
  info.tcpi_rttvar = round_trip / 2;
  info.tcpi_snd_ssthresh = kNoThreshold;
  info.tcpi_snd_cwnd = kFirstWindow;
  info.tcpi_reordering = 3;
  info.tcpi_pacing_rate = info.tcpi_max_pacing_rate = ~0ull;
  return info;
}

int put(const void* from, std::size_t bytes, void* value, socklen_t* length) {
  *length = socklen_t(std::min<std::size_t>(*length, bytes));
  memcpy(value, from, *length);
  return 0;
}
int put(int number, void* value, socklen_t* length) { return put(&number, sizeof number, value, length); }

int set_control(const InetSocket& socket, const void* value, socklen_t length) {
  char name[kMostName] = {};
  memcpy(name, value, std::min<std::size_t>(length, sizeof name - 1));
  const auto* found = std::ranges::find_if(kControls, [&](const char* each) { return strcmp(each, name) == 0; });
  if (found == std::end(kControls)) return ENOENT;
  keep(socket, kControl, int(found - kControls));
  return 0;
}
int get_control(const InetSocket& socket, void* value, socklen_t* length) {
  char text[kMostName] = {};
  strcpy(text, kControls[options_of(socket).value(kControl, 0)]);
  return put(text, sizeof text, value, length);
}

}  // namespace

int set_inet_option(const InetSocket& socket, int level, int name, const void* value, socklen_t length) {
  if (value == nullptr) return EFAULT;
  const bool of_tcp = level == IPPROTO_TCP && !socket.datagrams;
  if (of_tcp && name == TCP_CONGESTION) return set_control(socket, value, length);
  const bool is_segment = of_tcp && name == TCP_MAXSEG;
  const int place = is_segment ? kSegment : place_of(socket, level, name);
  if (place < 0) return ENOPROTOOPT;
  // Options of IP accept one byte. A longer structure is accepted for IP_MULTICAST_IF; its first four bytes are kept.
  int number = 0;
  if (length >= sizeof number) {
    memcpy(&number, value, sizeof number);
  } else if (level == IPPROTO_IP && length != 0) {
    number = *static_cast<const unsigned char*>(value);
  } else {
    return EINVAL;
  }
  constexpr Row kSegments{IPPROTO_TCP, TCP_MAXSEG, kStreams, 0, 88, 32767};
  const Row& row = is_segment ? kSegments : kRows[place];
  if (is_switch(row)) number = number != 0;
  if (level == IPPROTO_IP && name == IP_TOS) number &= 255;
  if (number < row.least || number > row.most || (level == IPPROTO_IP && name == IP_TTL && number == 0)) return EINVAL;
  if (number == -1 && row.least == -1 && level != IPPROTO_TCP) number = row.by_default;
  // The segment size of a connection is agreed on, and stays.
  if (!is_segment || !socket.connected) keep(socket, place, number);
  return 0;
}

int get_inet_option(const InetSocket& socket, int level, int name, void* value, socklen_t* length) {
  if (value == nullptr || length == nullptr) return EFAULT;
  if (level == IPPROTO_TCP && !socket.datagrams) {
    if (name == TCP_MAXSEG) return put(segment_of(socket), value, length);
    if (name == TCP_CONGESTION) return get_control(socket, value, length);
    if (name == TCP_INFO) {
      const tcp_info info = describe(socket);
      return put(&info, sizeof info, value, length);
    }
  }
  const bool is_mtu = (level == IPPROTO_IP && name == IP_MTU) ||
                      (level == IPPROTO_IPV6 && name == IPV6_MTU && socket.family == AF_INET6);
  if (is_mtu) return socket.connected ? put(mtu_of(socket), value, length) : ENOTCONN;
  const int place = place_of(socket, level, name);
  const bool is_foreign =
      (level == IPPROTO_TCP && socket.datagrams) || (level == IPPROTO_IPV6 && socket.family != AF_INET6);
  if (is_foreign) return EOPNOTSUPP;
  return place >= 0 ? put(options_of(socket).value(place, kRows[place].by_default), value, length) : ENOPROTOOPT;
}

void inherit_inet_options(std::uint32_t listener, std::uint32_t accepted) {
  const Options* from = find(listener, false);
  if (from == nullptr) return;
  Options own = *from;
  own.number = accepted;
  all[next_place++ % kMostSockets] = own;
}

}  // namespace rnicsim::clock
