// SPDX-License-Identifier: Apache-2.0
// Memory of a process or kernel, with the contents that the devices of a recorded run found; otherwise zeros.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "model/host/memory/address_space.h"

namespace rnicsim::sim::rerun {

class RecordedMemory final : public host::AddressSpace {
 public:
  void store(std::uint64_t address, std::span<const std::byte> bytes);
  // Stores `bytes` once a device has accessed the present contents. Words with such stores must be named before the
  // simulation starts. `bytes` must outlive this object.
  void name_word(std::uint64_t address) { words_[address / kPage][address / kWord]; }
  void store_after_access(std::uint64_t address, std::span<const std::byte> bytes);
  // Executes the waiting stores of that word now, up to and including the one of `bytes`.
  void wait_no_longer(std::uint64_t address, std::span<const std::byte> bytes);
  // The process has unmapped these pages: accesses fail until the pages are pinned again.
  void remove(std::uint64_t address, std::uint64_t bytes);

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  std::optional<host::SharedPage> shared_page(std::uint64_t) const override { return std::nullopt; }

 private:
  static constexpr std::uint64_t kWord = 8;
  using Page = std::array<std::byte, kPage>;
  struct Word {
    bool touched = false;  // a device accessed the word since the last store
    struct Store {
      std::uint64_t address;
      std::span<const std::byte> bytes;
    };
    std::deque<Store> stores;  // waiting stores
  };

  bool is_there(std::uint64_t address, std::uint64_t bytes) const;
  void touch(std::uint64_t address, std::uint64_t bytes);
  void store_if_touched(Word& word);
  void store_first(Word& word);
  // Calls `access(page or nullptr, offset in the page, done, part)` for each page of the range.
  template <class Access>
  void for_each_page(std::uint64_t address, std::size_t bytes, bool make, Access access);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;          // by page number
  std::set<std::uint64_t> removed_;                                         // numbers of removed pages
  std::unordered_map<std::uint64_t, std::map<std::uint64_t, Word>> words_;  // by page number, then by word number
};

}  // namespace rnicsim::sim::rerun
