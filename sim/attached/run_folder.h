// SPDX-License-Identifier: Apache-2.0
// Folders of one run for the files of its hosts: one on disk, one in memory (the hosts' /dev/shm). Both are removed
// with the object. Folders left by a run that was killed are removed by the next run of the same user.
#pragma once

#include <filesystem>
#include <string>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class RunFolder {
 public:
  // Names the folders after the run's socket. Throws ConfigError: another user or another run has the name.
  // std::filesystem::filesystem_error: the folder for files cannot be made.
  explicit RunFolder(const std::string& socket_name);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& files() const { return files_; }
  const std::filesystem::path& memory() const { return memory_; }  // empty: /dev/shm cannot be written

 private:
  std::string socket_name_;
  std::filesystem::path files_;
  std::filesystem::path memory_;
  // Held as long as the run lives. Only the holder of a lock may remove the folder.
  Descriptor files_lock_;
  Descriptor memory_lock_;
};

}  // namespace rnicsim::sim
