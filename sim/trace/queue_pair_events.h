// Meanings of a trace's events for a queue pair.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/recording/format.h"
#include "sim/trace/named_field.h"

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

// The row of a packet's opcode; nullptr: not an opcode of RoCE.
const roce::OpcodeInfo* opcode_row(const TraceEvent& packet);
// --- Of packet_sent and packet_received.
bool is_request(const TraceEvent& packet);
bool is_response(const TraceEvent& packet);
bool is_nak(const TraceEvent& packet);
bool is_cnp(const TraceEvent& packet);

// For events of kind wqe: the WQE is of a send queue; the WQE sends packets.
bool is_send_queue(const TraceEvent& wqe);
bool sends_packets(const TraceEvent& wqe);
// An index of a WQE has 16 bits: of more WQEs of a queue the oldest have completed.
inline constexpr std::size_t kMostWqes = 1 << 16;
// For events of kind cqe: the completion is of a send queue's WQE.
bool is_requesters(const TraceEvent& cqe);

// The queue pair enters RESET: its requests are gone.
bool is_reset(const TraceEvent& event);

// a - b of PSNs, which have 24 bits: -2^23 .. 2^23 - 1.
std::int32_t psn_distance(std::uint32_t a, std::uint32_t b);

// Tells new PSNs of a queue pair from those that are sent again.
class NewPsns {
 public:
  // True: no request with this PSN or a later one was sent before.
  bool add(std::uint64_t psn);

 private:
  std::optional<std::uint32_t> highest_;
};

}  // namespace rnicsim::sim
