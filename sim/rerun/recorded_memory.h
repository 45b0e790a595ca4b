// A process's memory, or a kernel's, as a recorded run's devices found it: zeros where they found nothing else.
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
  // The same once a device has touched what lies there now. Such words are named before the simulation begins. `bytes`
  // stay.
  void name_word(std::uint64_t address) { words_[address / kPage][address / kWord]; }
  void store_after_access(std::uint64_t address, std::span<const std::byte> bytes);
  // The stores that wait at that word, up to the one of `bytes`, are done now.
  void wait_no_longer(std::uint64_t address, std::span<const std::byte> bytes);
  // The process has unmapped these pages: accesses to them fail until they are pinned again.
  void remove(std::uint64_t address, std::uint64_t bytes);

  bool read(std::uint64_t address, std::span<std::byte> bytes) override;
  bool write(std::uint64_t address, std::span<const std::byte> bytes) override;
  int admit(std::uint64_t address, std::uint64_t bytes, bool writable) override;
  std::optional<host::SharedPage> shared_page(std::uint64_t) const override { return std::nullopt; }

 private:
  static constexpr std::uint64_t kWord = 8;
  using Page = std::array<std::byte, kPage>;
  struct Word {
    bool touched = false;  // since the last store
    struct Store {
      std::uint64_t address;
      std::span<const std::byte> bytes;
    };
    std::deque<Store> stores;  // that wait
  };

  bool is_there(std::uint64_t address, std::uint64_t bytes) const;
  void touch(std::uint64_t address, std::uint64_t bytes);
  void store_if_touched(Word& word);
  void store_first(Word& word);
  // `access(page or nullptr, offset in the page, done, part)` for each page of the range.
  template <class Access>
  void for_each_page(std::uint64_t address, std::size_t bytes, bool make, Access access);

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // by number
  std::set<std::uint64_t> removed_;                                  // numbers
  std::unordered_map<std::uint64_t, std::map<std::uint64_t, Word>> words_;  // by page, by number
};

}  // namespace rnicsim::sim::rerun
