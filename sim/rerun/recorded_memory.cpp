// SPDX-License-Identifier: Apache-2.0
#include "sim/rerun/recorded_memory.h"

#include <algorithm>
#include <cstring>

namespace rnicsim::sim::rerun {

template <class Access>
void RecordedMemory::for_each_page(std::uint64_t address, std::size_t bytes, bool make, Access access) {
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const std::size_t part = std::min<std::size_t>(bytes - done, kPage - at % kPage);
    const auto found = pages_.find(at / kPage);
    Page* page = found != pages_.end() ? found->second.get() : nullptr;
    if (page == nullptr && make) page = (pages_[at / kPage] = std::make_unique<Page>()).get();
    access(page, at % kPage, done, part);
    done += part;
  }
}

void RecordedMemory::store(std::uint64_t address, std::span<const std::byte> bytes) {
  for_each_page(address, bytes.size(), true, [&](Page* page, std::size_t offset, std::size_t done, std::size_t part) {
    std::memcpy(page->data() + offset, bytes.data() + done, part);
  });
}

void RecordedMemory::store_after_access(std::uint64_t address, std::span<const std::byte> bytes) {
  Word& word = words_[address / kPage][address / kWord];
  word.stores.push_back({address, bytes});
  store_if_touched(word);
}

void RecordedMemory::wait_no_longer(std::uint64_t address, std::span<const std::byte> bytes) {
  Word& word = words_[address / kPage][address / kWord];
  while (!word.stores.empty() && word.stores.front().bytes.data() <= bytes.data()) store_first(word);
}

void RecordedMemory::store_if_touched(Word& word) {
  if (word.touched && !word.stores.empty()) store_first(word);
}

void RecordedMemory::store_first(Word& word) {
  store(word.stores.front().address, word.stores.front().bytes);
  word.stores.pop_front();
  word.touched = false;
}

void RecordedMemory::touch(std::uint64_t address, std::uint64_t bytes) {
  if (words_.empty() || bytes == 0) return;
  const std::uint64_t last = (address + bytes - 1) / kWord;
  for (std::uint64_t page = address / kPage; page <= last * kWord / kPage; ++page) {
    const auto found = words_.find(page);
    if (found == words_.end()) continue;
    auto& named = found->second;
    for (auto word = named.lower_bound(address / kWord); word != named.end() && word->first <= last; ++word) {
      word->second.touched = true;
      store_if_touched(word->second);
    }
  }
}

void RecordedMemory::remove(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  for (std::uint64_t page = address / kPage; page <= (address + bytes - 1) / kPage; ++page) removed_.insert(page);
}

bool RecordedMemory::is_there(std::uint64_t address, std::uint64_t bytes) const {
  if (removed_.empty() || bytes == 0) return true;
  const auto first = removed_.lower_bound(address / kPage);
  return first == removed_.end() || *first > (address + bytes - 1) / kPage;
}

bool RecordedMemory::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (!is_there(address, bytes.size())) return false;
  for_each_page(address, bytes.size(), false, [&](Page* page, std::size_t offset, std::size_t done, std::size_t part) {
    if (page == nullptr)
      std::memset(bytes.data() + done, 0, part);
    else
      std::memcpy(bytes.data() + done, page->data() + offset, part);
  });
  touch(address, bytes.size());
  return true;
}

bool RecordedMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (!is_there(address, bytes.size())) return false;
  store(address, bytes);
  touch(address, bytes.size());
  return true;
}

int RecordedMemory::admit(std::uint64_t address, std::uint64_t bytes, bool) {
  if (bytes == 0 || removed_.empty()) return 0;
  removed_.erase(removed_.lower_bound(address / kPage), removed_.upper_bound((address + bytes - 1) / kPage));
  return 0;
}

}  // namespace rnicsim::sim::rerun
