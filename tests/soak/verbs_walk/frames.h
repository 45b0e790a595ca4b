// SPDX-License-Identifier: Apache-2.0
// Expected state of raw packets: steering rules, indirection tables, and each frame that was sent, so that the
// receivers of a frame can be predicted.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace rnicsim::testing {

struct Domain;
struct Pair;

inline constexpr std::uint32_t kFrameHeaders = 42;  // bytes: Ethernet, IPv4, UDP
inline constexpr std::uint32_t kStations = 4;       // the last two are multicast groups
inline constexpr std::uint32_t kShortestRoce = 58;  // bytes, as a sniffer receives the frame
inline constexpr std::uint16_t kFirstUdpPort = 7000, kUdpPorts = 2;

inline bool is_group(std::uint8_t station) { return station >= 2; }
std::array<std::uint8_t, 6> address_of(std::uint8_t station);
std::optional<std::uint8_t> station_of(const std::uint8_t* address);

struct IndirectionTable {
  ibv_rwq_ind_table* table = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
  std::vector<std::shared_ptr<Pair>> queues;
};

// A QP with an indirection table.
struct Spread {
  ibv_qp* qp = nullptr;
  std::uint32_t context = 0;
  std::uint32_t rules = 0;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<IndirectionTable> table;
  // key: sender and UDP port; value: QP that receives these frames
  std::map<std::pair<std::uint32_t, std::uint16_t>, const Pair*> ways;
};

struct CounterSet {
  ibv_counters* counters = nullptr;
  std::uint32_t context = 0;
  std::uint32_t rules = 0;
  bool attached = false;
  std::uint64_t packets = 0, bytes = 0;  // last values read
};

struct Rule {
  ibv_flow* flow = nullptr;
  ibv_flow_attr_type kind = IBV_FLOW_ATTR_NORMAL;
  std::uint16_t priority = 0;
  std::uint8_t station = 0;  // unused by sniffer and default rules, as the fields below
  std::optional<std::uint16_t> port;
  std::optional<std::uint32_t> tag;
  bool drops = false, passes_on = false;
  std::shared_ptr<Pair> pair;  // either `pair` or `spread` is set
  std::shared_ptr<Spread> spread;
  std::shared_ptr<CounterSet> counters;

  bool may_take(std::optional<std::uint8_t> to, std::optional<std::uint16_t> udp_port) const;
};

// A frame that was posted for sending.
struct Frame {
  std::uint32_t walker = 0;
  std::uint8_t station = 0;
  std::uint16_t port = 0;
  bool checked = false;                    // the device writes the checksums
  bool repeated = false;                   // more than one copy may arrive: TSO segments, or repeated posting
  std::array<bool, 2> reaches{};           // indexed by host
  std::array<std::uint32_t, 2> changes{};  // Town::rule_changes of each host, before the frame was posted
  // Possible receivers by the rules at that time.
  std::array<std::vector<std::pair<const Pair*, Spread*>>, 2> takers;
  std::set<const Pair*> got;
};

}  // namespace rnicsim::testing
