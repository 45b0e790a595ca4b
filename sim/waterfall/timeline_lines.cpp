// SPDX-License-Identifier: Apache-2.0
#include "sim/waterfall/timeline_lines.h"

#include <fmt/format.h>

#include <iterator>

#include "sim/results/json.h"
#include "sim/results/text_number.h"

namespace rnicsim::sim::timeline {

std::string quoted(std::string_view text) { return Json(text).dump(); }

std::string microseconds(Duration time) {
  std::string text;
  append_microseconds(text, time);
  return text;
}

void append_process_name(std::string& out, std::uint32_t process, std::string_view name) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n", process,
                 quoted(name));
}

void append_thread_name(std::string& out, std::uint32_t process, std::uint32_t thread, std::string_view name) {
  fmt::format_to(std::back_inserter(out),
                 "{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}},\n", process,
                 thread, quoted(name));
  fmt::format_to(
      std::back_inserter(out),
      "{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{0},\"tid\":{1},\"args\":{{\"sort_index\":{1}}}}},\n",
      process, thread);
}

void append_sample(std::string& out, std::uint32_t process, std::string_view name, std::string_view unit, Duration at,
                   double value) {
  fmt::format_to(std::back_inserter(out), "{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"ts\":{},\"args\":{{{}:{:.9g}}}}},\n",
                 name, process, microseconds(at), unit, value);
}

}  // namespace rnicsim::sim::timeline
