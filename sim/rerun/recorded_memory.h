// A process's memory, or a kernel's, as a recorded run's devices found it: zeros where they found nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "model/host/address_space.h"

namespace rnicsim::sim::rerun {

class RecordedMemory final : public host::AddressSpace {
 public:
  void store(std::uint64_t address, std::span<const std::byte> bytes);
  // The process has unmapped these pages: accesses to them fail until they are pinned again.
  void remove(std::uint64_t address, std::uint64_t bytes);

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  std::optional<host::SharedPage> shared_page(std::uint64_t) const override { return std::nullopt; }

 private:
  using Page = std::array<std::byte, kPage>;

  bool is_there(std::uint64_t address, std::uint64_t bytes) const;
  // `access(page or nullptr, offset in the page, done, part)` for each page of the range.
  template <class Access>
  void for_each_page(std::uint64_t address, std::size_t bytes, bool make, Access access);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by number
  std::set<std::uint64_t> removed_;                                  // numbers
};

}  // namespace rnicsim::sim::rerun
