// The MSI-X table and pending bits: PCI's layout, 16 bytes a vector, of big-endian words as everything in BAR0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/abi/device.h"

namespace rnicsim::nic {

struct MsixMessage {
  std::uint64_t address;
  std::uint32_t data;
};

class MsixTable {
 public:
  MsixTable() { reset(); }
  void reset();

  bool read_table(std::uint32_t offset, std::span<std::byte> out) const;   // false: outside
  bool write_table(std::uint32_t offset, std::span<const std::byte> in);
  bool read_pending(std::uint32_t offset, std::span<std::byte> out) const;

  // The message to write for a vector now; nullopt: masked, remembered as pending.
  std::optional<MsixMessage> raise(std::uint32_t vector, bool function_masked);
  // Vectors that were pending and are no longer masked; they stop pending.
  std::vector<std::uint32_t> take_unmasked(bool function_masked);

 private:
  static constexpr std::size_t kEntryBytes = 16;
  bool masked(std::uint32_t vector) const;
  std::uint32_t word(std::uint32_t vector, std::size_t index) const;

  std::array<std::uint8_t, abi::kMsixVectors * kEntryBytes> table_;
  std::uint64_t pending_ = 0;
};

}  // namespace rnicsim::nic
