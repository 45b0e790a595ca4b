// Where a run keeps what its hosts have of their own: a folder of files, and one in memory (their /dev/shm). Both go
// with the object; what a run left that was killed goes with the next.
#pragma once

#include <filesystem>
#include <string>

#include "sim/descriptor.h"

namespace rnicsim::sim {

class RunFolder {
 public:
  // Named by the run's socket; throws std::filesystem::filesystem_error.
  explicit RunFolder(const std::string& socket_name);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& files() const { return files_; }
  const std::filesystem::path& memory() const { return memory_; }

 private:
  void clear() const;

  std::string socket_name_;
  std::filesystem::path files_;
  std::filesystem::path memory_;
  Descriptor lock_;  // held as long as the run lives
};

}  // namespace rnicsim::sim
