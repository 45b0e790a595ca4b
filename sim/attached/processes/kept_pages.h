// SPDX-License-Identifier: Apache-2.0
// Data that the device wrote to pages of a process and that is not yet in the process's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

#include "model/host/memory/address_space.h"

namespace rnicsim::sim {

class KeptPages {
 public:
  static constexpr std::uint64_t kPageBytes = host::AddressSpace::kPage;
  static constexpr std::size_t kMost = 512;  // below IOV_MAX; the pages of two processes fit into a processor's cache

  struct Page {
    std::uint64_t address = 0;      // in the process
    std::uint64_t bus_address = 0;  // where the device last wrote to it
    std::size_t begin = 0;          // [begin, end) was written
    std::size_t end = 0;
    std::array<std::byte, kPageBytes> bytes;

    std::span<std::byte> written() { return std::span(bytes).subspan(begin, end - begin); }
    bool adjoins(std::size_t from, std::size_t to) const { return from <= end && to >= begin; }
  };

  bool empty() const { return by_address_.empty(); }
  bool is_full() const { return by_address_.size() == kMost; }
  std::size_t size() const { return by_address_.size(); }
  Page& operator[](std::size_t index) { return pages_[index]; }  // in the order of their first write
  Page* find(std::uint64_t address) {
    const auto found = by_address_.find(address);
    return found != by_address_.end() ? found->second : nullptr;
  }
  // Adds a page with no written range. Precondition: !is_full().
  Page& add(std::uint64_t address) {
    const std::size_t index = by_address_.size();
    Page& page = index < pages_.size() ? pages_[index] : pages_.emplace_back();
    page.address = address;
    by_address_.emplace(address, &page);
    return page;
  }
  void clear() { by_address_.clear(); }

 private:
  std::deque<Page> pages_;  // never shrinks: pages are used again after clear()
  std::unordered_map<std::uint64_t, Page*> by_address_;
};

}  // namespace rnicsim::sim
