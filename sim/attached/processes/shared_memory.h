// SPDX-License-Identifier: Apache-2.0
// A memfd that the simulator and one attached process map.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class SharedMemory {
 public:
  SharedMemory(const char* name, std::uint64_t bytes);  // zeroed; no pages are allocated yet; throws std::system_error
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }
  void close_descriptor() { descriptor_.reset(); }  // the mapping stays

 private:
  Descriptor descriptor_;
  std::uint64_t bytes_;
  std::byte* data_;
};

}  // namespace rnicsim::sim
