// SPDX-License-Identifier: Apache-2.0
// Finds profiles, topologies, workloads, sweeps and parts of a report by name. The files are in nics/, hosts/,
// topologies/, workloads/ and sweeps/ of share/rnicsim; in a build tree that is the repository's sim/.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim {

enum class DataKind { nic, host, topology, workload, sweep, report };

// Folder in RNICSIM_DATA of the environment if set, else in share_folder() (own_files.h), which may throw.
std::filesystem::path data_folder(DataKind kind);
std::vector<std::string> data_names(DataKind kind);
// Takes a path (has a slash, or ends in .toml) or a shipped name. ConfigError: no such file.
std::filesystem::path find_data(DataKind kind, std::string_view name_or_path);
// True if the file is a shipped file.
bool is_shipped_file(DataKind kind, const std::filesystem::path& file);

}  // namespace rnicsim::sim
