// SPDX-License-Identifier: Apache-2.0
// A host's own part of the file system: /sys, /proc and /etc files that describe its NICs, and its own /tmp and
// /dev/shm. The path calls of programs lead there instead of to this machine's files (sim/host/kernel/files/host_path).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/abi/attach.h"
#include "sim/attached/run_folder.h"

namespace rnicsim::sim {

// Facts of one NIC.
struct HostFilesParams {
  std::uint32_t vendor_part_id = 0;
  std::uint32_t gid_table_length = 0;
  std::uint32_t active_speed = 0;  // port speed, as in ibv_port_attr
  std::uint32_t active_width = 0;
};

// The files exist as long as the object. `params` has one entry for each interface. A file that cannot be made causes
// a warning only, since few programs need it. Throws ConfigError: the folder's name is in use.
class HostFiles {
 public:
  HostFiles(const std::string& socket_name, const std::vector<abi::NetworkInterface>& interfaces,
            const std::vector<HostFilesParams>& params);

 private:
  std::optional<RunFolder> folder_;
};

}  // namespace rnicsim::sim
