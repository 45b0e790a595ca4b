// Profiles, topologies, workloads and sweeps by name: files of nics/, hosts/, topologies/, workloads/ and sweeps/ in
// share/rnicsim, which is the repository's sim/ in a build tree; and the parts of a report.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim {

enum class DataKind { nic, host, topology, workload, sweep, report };

// In RNICSIM_DATA of the environment if set, else in the program's own share_folder() (own_files.h: may throw).
std::filesystem::path data_folder(DataKind kind);
std::vector<std::string> data_names(DataKind kind);
// A path (it has a slash, or ends in .toml) or a shipped name; ConfigError when there is no such thing.
std::filesystem::path find_data(DataKind kind, std::string_view name_or_path);
// Whether the file is one of those that are shipped.
bool is_shipped_file(DataKind kind, const std::filesystem::path& file);

}  // namespace rnicsim::sim
