// SPDX-License-Identifier: Apache-2.0
// MSI-X table (16 bytes a vector) and pending bit array (a bit a vector), in PCI's layout, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rnicsim::nic {

struct MsixMessage {
  std::uint64_t address;
  std::uint32_t data;
};

class MsixTable {
 public:
  explicit MsixTable(std::uint32_t vectors) : table_(vectors * kEntryBytes) { reset(); }
  void reset();

  bool read_table(std::uint32_t offset, std::span<std::byte> out) const;  // false: outside of the table
  bool write_table(std::uint32_t offset, std::span<const std::byte> in);
  bool read_pending(std::uint32_t offset, std::span<std::byte> out) const;

  // The message to write for the vector; nullopt: masked, and marked as pending.
  std::optional<MsixMessage> raise(std::uint32_t vector, bool function_masked);
  // Pending vectors that are no longer masked; clears their pending bits.
  std::vector<std::uint32_t> take_unmasked(bool function_masked);

 private:
  static constexpr std::size_t kEntryBytes = 16;
  bool masked(std::uint32_t vector) const;
  std::uint32_t word(std::uint32_t vector, std::size_t index) const;

  std::uint32_t count() const { return static_cast<std::uint32_t>(table_.size() / kEntryBytes); }

  std::vector<std::uint8_t> table_;
  std::uint64_t pending_ = 0;
};

}  // namespace rnicsim::nic
