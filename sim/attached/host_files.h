// What a host has in the file system of its own: what programs look up about its NICs, and where they write what is
// nobody else's (/tmp, /dev/shm). verbs/clock/host_path puts it in the place of this machine's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/abi/attach.h"
#include "sim/attached/run_folder.h"

namespace rnicsim::sim {

// Of a NIC.
struct HostFilesParams {
  std::uint32_t vendor_part_id = 0;
  std::uint32_t gid_table_length = 0;
  std::uint32_t active_speed = 0;  // of the port, as in ibv_port_attr
  std::uint32_t active_width = 0;
};

// Made with the object, and gone with it. `params` are of the NIC of each interface. What cannot be made is warned of:
// only some programs need it. ConfigError: something else has the place.
class HostFiles {
 public:
  HostFiles(const std::string& socket_name, const std::vector<abi::NetworkInterface>& interfaces,
            const std::vector<HostFilesParams>& params);

 private:
  std::optional<RunFolder> folder_;
};

}  // namespace rnicsim::sim
