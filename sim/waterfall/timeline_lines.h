// SPDX-License-Identifier: Apache-2.0
// Lines of a timeline in the trace-event format of ui.perfetto.dev. Each line ends with a comma.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/units.h"

namespace rnicsim::sim::timeline {

// Text before and after the lines. The format allows no comma after the last line, so remove it there.
inline constexpr std::string_view kBegin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
inline constexpr std::string_view kEnd = "\n]}\n";

// Quotes a text as JSON.
std::string quoted(std::string_view text);
// Time in microseconds, the unit of the format, with six decimals (picoseconds).
std::string microseconds(Duration time);

void append_process_name(std::string& out, std::uint32_t process, std::string_view name);
// Threads of a process are shown in the order of their numbers.
void append_thread_name(std::string& out, std::uint32_t process, std::uint32_t thread, std::string_view name);
// One sample of a counter track. `name` and `unit` must be quoted.
void append_sample(std::string& out, std::uint32_t process, std::string_view name, std::string_view unit, Duration at,
                   double value);

}  // namespace rnicsim::sim::timeline
