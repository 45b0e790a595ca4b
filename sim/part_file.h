// The name of a file that is written by the piece: FILE.part until the file is whole.
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
  // Unless the file has taken its name, nothing of it stays.
  ~PartFile() {
    std::error_code ignored;
    if (!part_.empty()) std::filesystem::remove(part_, ignored);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const { return part_; }
  // ConfigError: it cannot.
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
