// SPDX-License-Identifier: Apache-2.0
// Meaning of trace events for a queue pair.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/trace/named_field.h"
#include "sim/trace_file/format.h"

namespace rnicsim::roce {
struct OpcodeInfo;
}

namespace rnicsim::sim {

namespace field {
inline const NamedField bytes("bytes"), destination_qp("destination_qp"), index("index"), opcode("opcode"), psn("psn"),
    signaled("signaled"), syndrome("syndrome"), to("to"), wqe_counter("wqe_counter");
}
// 0: the event's kind has no such field.
inline std::uint64_t value_of(const TraceEvent& event, const NamedField& field) { return field.of(event).value_or(0); }

// Row of the packet's opcode in the table of RoCE opcodes; nullptr: unknown opcode.
const roce::OpcodeInfo* opcode_row(const TraceEvent& packet);
// --- For events of kinds packet_sent and packet_received.
bool is_request(const TraceEvent& packet);
bool is_response(const TraceEvent& packet);
bool is_nak(const TraceEvent& packet);
bool is_cnp(const TraceEvent& packet);

// For events of kind wqe. is_send_queue(): the WQE is in a send queue. sends_packets(): the WQE causes packets.
bool is_send_queue(const TraceEvent& wqe);
bool sends_packets(const TraceEvent& wqe);
// A WQE index has 16 bits, so a queue has at most this many WQEs outstanding.
inline constexpr std::size_t kMostWqes = 1 << 16;
// For events of kind cqe: the completion belongs to a WQE of a send queue.
bool is_requesters(const TraceEvent& cqe);

// True: the queue pair enters RESET, which drops its requests.
bool is_reset(const TraceEvent& event);

// a - b modulo 2^24, as a signed value: -2^23 .. 2^23 - 1.
std::int32_t psn_distance(std::uint32_t a, std::uint32_t b);

// Distinguishes new PSNs of a queue pair from retransmitted ones.
class NewPsns {
 public:
  // True: new, that is, neither this PSN nor a later one was added before.
  bool add(std::uint64_t psn);

 private:
  std::optional<std::uint32_t> highest_;
};

}  // namespace rnicsim::sim
