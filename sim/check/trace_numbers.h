// SPDX-License-Identifier: Apache-2.0
// Numbers of a recorded run: counts of events, rates and latencies.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sim/trace_file/format.h"

namespace rnicsim::sim::check {

using Numbers = std::map<std::string, double>;

// Names of the numbers:
//   end_ps, events.KIND
//   OWNER.messages_per_s, OWNER.goodput_bits_per_s: completed send WQEs, from the first WQE to the last CQE
//   OWNER.OPCODE.latency_ps.p50, .p99: from the time the engine takes a signaled WQE to its CQE
// OWNER is a host or a queue pair of a host: "h0", "h0.qp[0x41]". An owner without completed send WQEs has no numbers.
struct TraceNumbers {
  TraceHeader header;
  Numbers numbers;
};
// `name`: used in messages. TraceError: the trace cannot be read to its end.
TraceNumbers trace_numbers(const std::filesystem::path& trace, const std::string& name);

// True for rates and latencies, the numbers that vary randomly with the seed and have a mean.
bool is_statistic(const std::string& number);

}  // namespace rnicsim::sim::check
