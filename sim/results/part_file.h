// SPDX-License-Identifier: Apache-2.0
// Name of a file while it is written: FILE.part until the file is complete.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "sim/config/config_error.h"

namespace rnicsim::sim {

class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), part_(path + ".part") {}
  // Removes an incomplete file.
  ~PartFile() {
    std::error_code ignored;
    if (!part_.empty()) std::filesystem::remove(part_, ignored);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return part_; }
  // Gives the complete file its name. ConfigError.
  void take_name() {
    std::error_code error;
    std::filesystem::rename(part_, path_, error);
    if (error) throw ConfigError(fmt::format("{}: {}", shown(path_), error.message()));
    part_.clear();
  }

 private:
  const std::string path_;
  std::string part_;
};

}  // namespace rnicsim::sim
