// What the dynamic loader protects once it has relocated an object (PT_GNU_RELRO): tables of functions, among others.
#pragma once

#include <cstdint>
#include <span>

namespace rnicsim::clock {

// Of the object that has this address there, or begins at it. It may be written as long as this lives.
class ProtectedData {
 public:
  explicit ProtectedData(std::uintptr_t address);
  ~ProtectedData();
  ProtectedData(const ProtectedData&) = delete;
  ProtectedData& operator=(const ProtectedData&) = delete;
  std::span<std::uintptr_t> words() const { return words_; }  // none: it cannot be written

 private:
  bool protect(int rights) const;

  std::span<std::uintptr_t> words_;
};

}  // namespace rnicsim::clock
