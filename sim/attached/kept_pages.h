// What the device has written into pages of a process, and the process does not have yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

#include "model/host/address_space.h"

namespace rnicsim::sim {

class KeptPages {
 public:
  static constexpr std::uint64_t kPageBytes = host::AddressSpace::kPage;
  static constexpr std::size_t kMost = 512;  // below IOV_MAX; those of two processes fit into a processor's cache

  struct Page {
    std::uint64_t address = 0;      // the process's
    std::uint64_t bus_address = 0;  // where the device last wrote to it
    std::size_t begin = 0;          // of what it wrote, one range
    std::size_t end = 0;
    std::array<std::byte, kPageBytes> bytes;

    std::span<std::byte> written() { return std::span(bytes).subspan(begin, end - begin); }
    bool adjoins(std::size_t from, std::size_t to) const { return from <= end && to >= begin; }
  };

  bool empty() const { return by_address_.empty(); }
  bool is_full() const { return by_address_.size() == kMost; }
  std::size_t size() const { return by_address_.size(); }
  Page& operator[](std::size_t index) { return pages_[index]; }  // in the order in which they were first written
  Page* find(std::uint64_t address) {
    const auto found = by_address_.find(address);
    return found != by_address_.end() ? found->second : nullptr;
  }
  // There is room. Nothing of it is written.
  Page& add(std::uint64_t address) {
    const std::size_t index = by_address_.size();
    Page& page = index < pages_.size() ? pages_[index] : pages_.emplace_back();
    page.address = address;
    by_address_.emplace(address, &page);
    return page;
  }
  void clear() { by_address_.clear(); }

 private:
  std::deque<Page> pages_;  // as many as there ever were
  std::unordered_map<std::uint64_t, Page*> by_address_;
};

}  // namespace rnicsim::sim
