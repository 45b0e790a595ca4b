// SPDX-License-Identifier: Apache-2.0
// A fuzz input as a file with a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/soak/fuzz/fuzz.h"

namespace rnicsim::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == ssize_t(bytes.size()), "no file in memory");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

}  // namespace rnicsim::fuzz
