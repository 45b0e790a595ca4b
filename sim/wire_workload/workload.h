// SPDX-License-Identifier: Apache-2.0
// The work of a capture's hosts, for simulated hosts: queue pairs, their requests and receives with times, and the
// contents of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/base/units.h"
#include "model/nic/personality/values.h"
#include "model/roce/types.h"

namespace rnicsim::sim::wire_workload {

// Memory that the requests of peers name.
struct Region {
  std::uint32_t rkey = 0;  // as in the capture
  std::uint64_t address = 0;
  std::uint64_t length = 0;

  bool has(std::uint32_t key, std::uint64_t at, std::uint64_t bytes) const {
    return key == rkey && at >= address && bytes <= length && at - address <= length - bytes;
  }
};

// Bytes of a region, known from answers of the real NIC before any request has written there.
struct KnownBytes {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
};

struct Request {
  std::uint32_t frame = 0;  // frame of the first packet
  Duration at{};            // since the first request of the capture
  nic::SendOpcode opcode{};
  std::uint32_t length = 0;
  std::vector<std::byte> payload{};  // payload of a SEND or WRITE
  std::uint32_t immediate = 0;
  // --- RC, UC
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::uint64_t compare = 0;
  std::uint64_t swap_add = 0;
  // --- UD
  roce::Gid destination{};
  roce::Qpn destination_qp{};  // as in the capture
  std::uint32_t qkey = 0;
  // --- Implied by the answers; nullopt: unknown.
  std::optional<roce::Status> outcome{};
  std::vector<std::byte> brought{};  // bytes that answered a READ or an atomic
};

struct Receive {
  std::optional<Duration> at{};  // as Request::at; nullopt: before the first request
  std::uint32_t bytes = 0;       // without the GRH of a datagram
};

struct QueuePair {
  std::uint32_t host = 0;
  roce::Transport transport = roce::Transport::rc;
  roce::Qpn number{};                 // as in the capture; 0: unknown
  std::optional<roce::Gid> group{};   // UD: multicast group of the queue pair
  std::optional<std::size_t> peer{};  // RC, UC: index of a queue pair
  std::uint8_t path_mtu = 1;          // enum ibv_mtu
  std::uint8_t traffic_class = 0;
  roce::Psn sq_psn{}, rq_psn{};
  std::uint8_t timeout = 14;  // code of the local ACK timeout; 67 ms unless the capture shows it
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;  // code; 0.64 ms unless the capture shows it
  std::uint32_t qkey = 0;
  std::vector<Request> requests{};  // in the order of posting
  std::vector<Receive> receives{};  // in the order of posting
};

struct Host {
  roce::Gid address{};            // zeros: a member of groups that the capture does not name
  std::vector<Region> regions{};  // regions of one key do not touch each other
  std::vector<KnownBytes> contents{};
};

struct Workload {
  std::vector<Host> hosts;
  std::vector<QueuePair> qps;
  std::vector<std::string> left_out;  // a sentence for each omitted or changed request
  // --- Counts of omitted items
  std::size_t sent_again = 0;    // packets
  std::size_t seen_in_part = 0;  // requests
  std::size_t management = 0;    // messages of connection management

  std::size_t requests() const;
};

// "h0 QP 0x000011 (RC)"; without a number if the capture does not show the number.
std::string name_of(const QueuePair& qp);

}  // namespace rnicsim::sim::wire_workload
