// SPDX-License-Identifier: Apache-2.0
// A host's profile, a file of sim/hosts: costs of the CPU and the kernel, and the PCIe costs that the root complex adds
// for all devices of the host.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "model/base/params.h"
#include "model/host/host_params.h"
#include "sim/config/toml_file.h"

namespace rnicsim::nic {
struct DmaParams;
}

namespace rnicsim::sim {

// The parameters of nic.pcie that belong to the host; a value that is not set is taken from the NIC.
struct RootComplex {
  std::optional<Duration> read_latency, read_queueing, line_read, write_latency, ordered_write;

  // Sets to the default each value that `settings` name below `prefix` ("nic.pcie.", "host_types.fast.pcie."), so that
  // the setting can be applied.
  void open(const std::vector<Setting>& settings, std::string_view prefix);
  void put_into(nic::DmaParams& dma) const;
  // Describes only the values that are set.
  void describe(ParamVisitor& visit);
};

struct HostProfile {
  host::HostParams params;
  RootComplex pcie;

  void describe(ParamVisitor& visit) {
    params.describe(visit);
    visit.group("pcie", pcie);
  }
};

// Settings of the file and of its bases in the same folder; a later setting wins. ConfigError: a file cannot be read,
// or sets a parameter that is not a host's.
std::vector<Setting> host_settings(const std::filesystem::path& path);
HostProfile load_host_profile(const std::filesystem::path& path);

// Last file that names a host, of the files of a NIC's profile or a topology; nullptr: none.
const TomlFile* with_host(const std::vector<TomlFile>& files);
// File of the host that `file` names: a path, or a name in the folder ../hosts of `file`; nullopt: no such file.
std::optional<std::filesystem::path> host_beside(const TomlFile& file);

}  // namespace rnicsim::sim
