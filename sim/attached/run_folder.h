// Where a run keeps what its hosts have of their own: a folder of files, and one in memory (their /dev/shm). Both go
// with the object. What a run that was killed has left goes with the next run of the same user.
#pragma once

#include <filesystem>
#include <string>

#include "sim/descriptor.h"

namespace rnicsim::sim {

class RunFolder {
 public:
  // Named by the run's socket. ConfigError: another user, or another run, has the name: programs would use that
  // one's files. std::filesystem::filesystem_error: there is no place for files.
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
  // The run holds the lock as long as it lives: the holder of the lock may remove the folder.
  Descriptor files_lock_;
  Descriptor memory_lock_;
};

}  // namespace rnicsim::sim
