// The numbers of a recorded run: events by kind, rates and latencies.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sim/recording/format.h"

namespace rnicsim::sim::check {

using Numbers = std::map<std::string, double>;

// The names:
//   end_ps, events.KIND
//   OWNER.messages_per_s, OWNER.goodput_bits_per_s: of send WQEs that completed, from the first WQE to the last CQE
//   OWNER.OPCODE.latency_ps.p50, .p99: from the engine's taking of a signaled WQE to its CQE
// OWNER is a host, or a queue pair of it: "h0", "h0.qp[0x41]". An owner without such WQEs has no such numbers.
struct TraceNumbers {
  TraceHeader header;
  Numbers numbers;
};
// `name` is for messages. TraceError: it cannot be read to its end.
TraceNumbers trace_numbers(const std::filesystem::path& trace, const std::string& name);

// Rates and latencies: what is random from seed to seed, and has a mean.
bool is_statistic(const std::string& number);

}  // namespace rnicsim::sim::check
