// SPDX-License-Identifier: Apache-2.0
#include "sim/config/data_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "sim/config/config_error.h"
#include "sim/config/own_files.h"
#include "sim/config/param_list.h"

namespace rnicsim::sim {
namespace {

namespace fs = std::filesystem;

struct Names {
  const char* what;
  const char* folder;
};
constexpr std::array<Names, 6> kNames = {{
    {"NIC profile", "nics"},
    {"host profile", "hosts"},
    {"topology", "topologies"},
    {"workload", "workloads"},
    {"sweep", "sweeps"},
    {"part of a report", "report"},
}};

const char* what(DataKind kind) { return kNames[static_cast<std::size_t>(kind)].what; }
const char* folder(DataKind kind) { return kNames[static_cast<std::size_t>(kind)].folder; }

}  // namespace

fs::path data_folder(DataKind kind) {
  const char* override = std::getenv("RNICSIM_DATA");
  return (override && *override ? fs::path(override) : share_folder()) / folder(kind);
}

std::vector<std::string> data_names(DataKind kind) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(data_folder(kind), none))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

fs::path find_data(DataKind kind, std::string_view name_or_path) {
  const bool is_path = name_or_path.find('/') != name_or_path.npos || name_or_path.ends_with(".toml");
  const fs::path path = is_path ? fs::path(name_or_path) : data_folder(kind) / (std::string(name_or_path) + ".toml");
  std::error_code none;
  if (fs::exists(path, none)) return path;
  if (is_path) throw ConfigError(fmt::format("{}: no such file", shown(path.string())));
  const auto names = data_names(kind);
  if (names.empty())
    throw ConfigError(fmt::format("{}: there is no {}", shown(path.parent_path().string()), what(kind)));
  const auto meant = nearest_name(name_or_path, names);
  throw ConfigError(fmt::format("no {} is called '{}'{}; there {}: {}", what(kind), shown(name_or_path),
                                meant ? fmt::format(" (did you mean '{}'?)", *meant) : "",
                                names.size() == 1 ? "is" : "are", fmt::join(names, ", ")));
}

bool is_shipped_file(DataKind kind, const fs::path& file) {
  std::error_code none;
  try {
    return fs::equivalent(file.parent_path(), data_folder(kind), none);
  } catch (const ConfigError&) {
    return false;  // no folder of shipped files: no file is shipped
  }
}

}  // namespace rnicsim::sim
