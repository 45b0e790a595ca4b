// Lines of a timeline in the trace-event format, which ui.perfetto.dev opens. Each line ends with a comma.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/units.h"

namespace rnicsim::sim::timeline {

// Around the lines. The format allows no comma behind the last line: the end is a line, too.
inline constexpr std::string_view kBegin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
inline constexpr std::string_view kEnd = "\n]}\n";

// A text as JSON.
std::string quoted(std::string_view text);
// The format counts in microseconds: six digits behind the point are picoseconds.
std::string microseconds(Duration time);

void append_process_name(std::string& out, std::uint32_t process, std::string_view name);
// Threads of a process are shown in the order of their numbers.
void append_thread_name(std::string& out, std::uint32_t process, std::uint32_t thread, std::string_view name);
// A sample of a counter track. `name` and `unit` are quoted.
void append_sample(std::string& out, std::uint32_t process, std::string_view name, std::string_view unit, Duration at,
                   double value);

}  // namespace rnicsim::sim::timeline
