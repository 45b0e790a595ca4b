// SPDX-License-Identifier: Apache-2.0
// Source marks of a profile's values: the beginning of the comment on a value's line. S: from a source, D: derived, E:
// estimated. The mark of an estimate gives the bounds that are plausible, or says why the value is fixed:
//   read_latency = "403 ns"         # S: 64 B idle, 372-488 ns
//   l1_latency = "45 ns"            # E 40..50 ns
//   service = "20 ns"               # E 0.5..2 x: tuned to CAL-8
//   entries = 1280                  # E 1024..1280 by 4: whole sets
//   ways = 4                        # E fixed: a divisor of the entries
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/toml_file.h"

namespace rnicsim::sim {

enum class Source { measured, derived, estimated };  // marks S, D, E
inline constexpr std::array<char, 3> kSourceMarks = {'S', 'D', 'E'};

inline constexpr std::string_view kTimesTheValue = "x";  // unit of bounds that are factors of the value

struct Bounds {
  double low, high;
  std::string unit;  // such as "ns"; kTimesTheValue; empty: a plain number
  double step = 0;   // the value is a multiple of `step`; 0: any value
};

struct Mark {
  Source source;
  std::optional<Bounds> bounds = {};  // only for an estimate
  bool is_fixed = false;              // an estimate without bounds; `text` gives the reason
  std::string text = {};
};

struct MarkedSetting {
  Setting setting;
  std::optional<Mark> mark;  // nullopt: the line has no mark
};

// Mark of a line of TOML; nullopt: the line has none, or it cannot be parsed.
std::optional<Mark> mark_of(std::string_view line);
// Each parameter of the file and its bases once, with its last value.
std::vector<MarkedSetting> marked_settings(const std::vector<TomlFile>& files);
// The same for a NIC's profile on a host, names or files as for --nic and --host-profile. Empty `host`: the NIC's own.
// ConfigError: no such profile.
std::vector<MarkedSetting> marked_settings(const std::string& nic, const std::string& host);

// Number of settings with each mark, indexed by Source.
std::array<std::size_t, kSourceMarks.size()> count_marks(const std::vector<MarkedSetting>& settings);

}  // namespace rnicsim::sim
