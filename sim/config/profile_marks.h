// Where each value of a profile is from: the mark that begins the comment on its line, as in
//   read_latency = "403 ns"         # S: 64 B idle, 372-488 ns
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

struct MarkedSetting {
  Setting setting;
  std::optional<Source> source;  // nullopt: its line has no mark
};

// The mark of a line of TOML; nullopt: it has none.
std::optional<Source> source_of(std::string_view line);
// Of the file and its bases each parameter once, the last of it.
std::vector<MarkedSetting> marked_settings(const std::vector<TomlFile>& files);
// Of a NIC's profile in a host, names or files as --nic and --host-profile have them; no host: the NIC's own.
// ConfigError: there is no such profile.
std::vector<MarkedSetting> marked_settings(const std::string& nic, const std::string& host);

// How many have each mark, by Source.
std::array<std::size_t, kSourceMarks.size()> count_marks(const std::vector<MarkedSetting>& settings);

}  // namespace rnicsim::sim
