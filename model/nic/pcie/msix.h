// The MSI-X table and pending bits, as PCI lays them out: 16 bytes a vector, and a bit each; little-endian.
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

  std::uint32_t count() const { return static_cast<std::uint32_t>(table_.size() / kEntryBytes); }

  std::vector<std::uint8_t> table_;
  std::uint64_t pending_ = 0;
};

}  // namespace rnicsim::nic
