// What programs look up in the file system of their host about its NIC: a small tree of real files for each host, which
// verbs/clock/files.cpp puts in the place of this machine's own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "model/abi/attach.h"

namespace rnicsim::sim {

struct HostFilesParams {
  std::uint32_t vendor_part_id = 0;
  std::uint32_t gid_table_length = 0;
  std::uint32_t active_speed = 0;  // of the port, as in ibv_port_attr
  std::uint32_t active_width = 0;
};

// Made with the object, and gone with it. What cannot be made is warned of: only some programs need it.
class HostFiles {
 public:
  HostFiles(const std::string& socket_name, const std::vector<abi::HostEntry>& hosts, const HostFilesParams& params);
  ~HostFiles();
  HostFiles(const HostFiles&) = delete;
  HostFiles& operator=(const HostFiles&) = delete;

 private:
  std::filesystem::path folder_;
};

}  // namespace rnicsim::sim
