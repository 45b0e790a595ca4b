// A host's profile, a file of sim/hosts: what its CPU and kernel cost, and what its root complex makes of the PCIe of
// the devices in it.
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

// Of nic.pcie, what is the host's; a value that it has not is the NIC's.
struct RootComplex {
  std::optional<Duration> read_latency, read_queueing, line_read, write_latency, ordered_write;

  // Has them from now on, when `settings` name them below `prefix`: "nic.pcie.", "host_types.fast.pcie.".
  void open(const std::vector<Setting>& settings, std::string_view prefix);
  void put_into(nic::DmaParams& dma) const;
  // Those that it has.
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

// The settings of the file and of its bases, which lie beside it, the last one winning. ConfigError: it cannot be read,
// or sets what is no host's.
std::vector<Setting> host_settings(const std::filesystem::path& path);
HostProfile load_host_profile(const std::filesystem::path& path);

// Of a NIC's profile or a topology, the files behind each other: the last that names a host; nullptr: none does.
const TomlFile* with_host(const std::vector<TomlFile>& files);
// The file of that host, by its path, or in a folder hosts/ beside that of the file that names it; nullopt: not there.
std::optional<std::filesystem::path> host_beside(const TomlFile& file);

}  // namespace rnicsim::sim
