// Profiles, topologies and workloads by name: files of the repository's sim/nics, sim/topologies and sim/workloads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rnicsim::sim {

enum class DataKind { nic, topology, workload };

// RNICSIM_DATA of the environment if set, else beside the sources the program was built from.
std::filesystem::path data_folder(DataKind kind);
std::vector<std::string> data_names(DataKind kind);
// A path (it has a slash, or ends in .toml) or a shipped name; ConfigError when there is no such thing.
std::filesystem::path find_data(DataKind kind, std::string_view name_or_path);

}  // namespace rnicsim::sim
