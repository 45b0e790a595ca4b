// SPDX-License-Identifier: Apache-2.0
// Data that the dynamic loader makes read-only after relocation (PT_GNU_RELRO), for example tables of functions.
#pragma once

#include <cstdint>
#include <span>

namespace rnicsim::clock {

// The protected data that contains `address`, or that of the object loaded at `address`. It can be written while this
// lives.
class ProtectedData {
 public:
  explicit ProtectedData(std::uintptr_t address);
  ~ProtectedData();
  ProtectedData(const ProtectedData&) = delete;
  ProtectedData& operator=(const ProtectedData&) = delete;
  std::span<std::uintptr_t> words() const { return words_; }  // empty: it cannot be written

 private:
  bool protect(int rights) const;

  std::span<std::uintptr_t> words_;
};

}  // namespace rnicsim::clock
