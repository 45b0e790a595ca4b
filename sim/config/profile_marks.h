// Where each value of a profile is from: the mark that begins the comment on its line. An estimate's says within which
// bounds its source, or what is known of such devices, leaves it, or why it is no matter of degree:
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

enum class Source { measured, derived, estimated };  // S, D, E
inline constexpr std::array<char, 3> kSourceMarks = {'S', 'D', 'E'};

inline constexpr std::string_view kTimesTheValue = "x";

struct Bounds {
  double low, high;
  std::string unit;  // as in "ns"; kTimesTheValue; empty: a number
  double step = 0;   // it is a multiple of that; 0: any
};

struct Mark {
  Source source;
  std::optional<Bounds> bounds = {};  // of an estimate
  bool is_fixed = false;              // an estimate that has none, as `text` says
  std::string text = {};
};

struct MarkedSetting {
  Setting setting;
  std::optional<Mark> mark;  // nullopt: its line has none
};

// The mark of a line of TOML; nullopt: it has none, or one that cannot be read.
std::optional<Mark> mark_of(std::string_view line);
// Of the file and its bases each parameter once, the last of it.
std::vector<MarkedSetting> marked_settings(const std::vector<TomlFile>& files);
// Of a NIC's profile in a host, names or files as --nic and --host-profile have them; no host: the NIC's own.
// ConfigError: there is no such profile.
std::vector<MarkedSetting> marked_settings(const std::string& nic, const std::string& host);

// How many have each mark, by Source.
std::array<std::size_t, kSourceMarks.size()> count_marks(const std::vector<MarkedSetting>& settings);

}  // namespace rnicsim::sim
