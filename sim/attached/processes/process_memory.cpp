// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/process_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "model/abi/attach.h"
#include "model/host/memory/mappings.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint64_t kPage = host::AddressSpace::kPage;
// Bus addresses above the address space of every process.
constexpr std::uint64_t kFirstBusAddress = 1ull << 56;
// The kernel reuses a process number only after it has used all others, which takes longer than this.
constexpr std::chrono::microseconds kNumberStays{500};
// The largest huge page: moved pages keep their alignment to every page size.
constexpr std::uint64_t kLargestPage = 1ull << 30;

std::uint64_t page_of(std::uint64_t address) { return address / kPage * kPage; }
std::uint64_t pages_end(std::uint64_t address) { return (address + kPage - 1) / kPage * kPage; }

// The first address from `from` on with the same offset in the largest page as `model`.
std::uint64_t aligned_like(std::uint64_t model, std::uint64_t from) { return from + (model - from) % kLargestPage; }

}  // namespace

ProcessMemory::ProcessMemory(pid_t pid, const Descriptor& process, SharedMemory& shared)
    : pid_(pid),
      process_(process),
      shared_memory_(shared),
      next_bus_address_(kFirstBusAddress),
      next_aside_(abi::kAsideAddress) {}

ProcessMemory::~ProcessMemory() { turns_->remove(*this); }

void ProcessMemory::end() {
  alive_ = false;
  turns_->remove(*this);
  kept_.clear();
}

bool ProcessMemory::has_exited() const {
  pollfd watched{process_.get(), POLLIN, 0};
  return !process_ || ::poll(&watched, 1, 0) == 1;
}

bool ProcessMemory::owns_its_number() {
  const auto now = std::chrono::steady_clock::now();
  if (now - seen_alive_ < kNumberStays) return true;
  if (has_exited()) return false;
  seen_alive_ = now;
  return true;
}

std::byte* ProcessMemory::shared(std::uint64_t address, std::uint64_t bytes) const {
  if (address < abi::kMemoryAddress || address - abi::kMemoryAddress > abi::kMemoryBytes) return nullptr;
  const std::uint64_t offset = address - abi::kMemoryAddress;
  return bytes <= abi::kMemoryBytes - offset ? shared_memory_.data() + offset : nullptr;
}

// --- Access.

bool ProcessMemory::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (const std::byte* from = shared(address, bytes.size())) {
    std::memcpy(bytes.data(), from, bytes.size());
    return true;
  }
  if (!alive_) return false;
  if (moved_.empty()) {
    if (keeps_some_of(address, bytes.size())) flush();
    return !is_lost(address, bytes.size()) && read_piece(address, bytes);
  }
  flush();
  if (is_lost(address, bytes.size())) return false;
  return std::ranges::all_of(pieces(address, bytes.size()), [&](const Piece& piece) {
    return read_piece(piece.address, bytes.subspan(piece.offset, piece.bytes));
  });
}

bool ProcessMemory::keeps_some_of(std::uint64_t address, std::uint64_t bytes) {
  if (kept_.empty()) return false;
  for (std::uint64_t page = page_of(address); page < address + bytes; page += kPage)
    if (kept_.find(page) != nullptr) return true;
  return false;
}

// The number of a process that has ended may belong to another process; data read from that one is discarded.
bool ProcessMemory::read_piece(std::uint64_t address, std::span<std::byte> bytes) {
  const StallGuard::Access access(guard_, process_.get());
  const iovec local{bytes.data(), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  const auto wanted = ssize_t(bytes.size());
  if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == wanted) return owns_its_number();
  const Descriptor memory = open_memory(O_RDONLY);
  return memory && ::pread(memory.get(), bytes.data(), bytes.size(), off_t(address)) == wanted && !has_exited();
}

bool ProcessMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (std::byte* to = shared(address, bytes.size())) {
    // The last byte marks the entry as complete (owner of a CQE or EQE).
    if (bytes.size() > 1) std::memcpy(to, bytes.data(), bytes.size() - 1);
    if (!bytes.empty()) std::atomic_ref(to[bytes.size() - 1]).store(bytes.back(), std::memory_order_release);
    return true;
  }
  // Pages of a process that has ended stay pinned until its queue pairs are destroyed; no program reads them.
  if (!alive_) return true;
  if (is_lost(address, bytes.size())) return false;
  if (moved_.empty()) {
    keep(address, address, bytes);
  } else {
    for (const Piece& piece : pieces(address, bytes.size()))
      keep(piece.address, address + piece.offset, bytes.subspan(piece.offset, piece.bytes));
  }
  if (write_at_once_ || is_shared(address, bytes.size())) flush();
  return true;
}

void ProcessMemory::keep(std::uint64_t address, std::uint64_t bus_address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t begin = address % kPage;
    const std::size_t part = std::min<std::size_t>(kPage - begin, bytes.size());
    KeptPages::Page& page = page_for(page_of(address), begin, begin + part);
    page.bus_address = page_of(bus_address);
    std::memcpy(page.bytes.data() + begin, bytes.data(), part);
    bytes = bytes.subspan(part);
    address += part;
    bus_address += part;
  }
}

// The kept page into which [begin, end) is about to be written.
KeptPages::Page& ProcessMemory::page_for(std::uint64_t address, std::size_t begin, std::size_t end) {
  KeptPages::Page* page = kept_.find(address);
  if (page != nullptr && page->adjoins(begin, end)) {
    page->begin = std::min(page->begin, begin);
    page->end = std::max(page->end, end);
    return *page;
  }
  if (page != nullptr || kept_.is_full()) flush();
  if (kept_.empty()) turns_->add(*this);
  KeptPages::Page& added = kept_.add(address);
  added.begin = begin;
  added.end = end;
  return added;
}

void ProcessMemory::flush() {
  if (kept_.empty()) return;
  const StallGuard::Access access(guard_, process_.get());
  for (std::size_t first = 0; first < kept_.size() && alive_ && owns_its_number();) {
    first += write_some(first);
    if (first == kept_.size() || has_exited()) break;
    if (!write_by_force(kept_[first])) lose(kept_[first]);
    ++first;
  }
  kept_.clear();
  turns_->remove(*this);
}

// Writes ranges until one is not mapped. Returns the number of complete ranges.
std::size_t ProcessMemory::write_some(std::size_t first) {
  const std::size_t count = kept_.size() - first;
  from_.clear();
  to_.clear();
  for (std::size_t i = first; i < kept_.size(); ++i) {
    const auto written = kept_[i].written();
    from_.push_back({written.data(), written.size()});
    to_.push_back({reinterpret_cast<void*>(kept_[i].address + kept_[i].begin), written.size()});
  }
  ssize_t written = ::process_vm_writev(pid_, from_.data(), count, to_.data(), count, 0);
  std::size_t whole = 0;
  while (whole < count && written >= ssize_t(to_[whole].iov_len)) written -= ssize_t(to_[whole++].iov_len);
  return whole;
}

// The device keeps access to a page whose protection the process has reduced since the page was pinned.
bool ProcessMemory::write_by_force(KeptPages::Page& page) {
  const Descriptor memory = open_memory(O_RDWR);
  const auto bytes = page.written();
  return memory && !has_exited() &&
         ::pwrite(memory.get(), bytes.data(), bytes.size(), off_t(page.address + page.begin)) == ssize_t(bytes.size());
}

Descriptor ProcessMemory::open_memory(int flags) const {
  return Descriptor(::open(fmt::format("/proc/{}/mem", pid_).c_str(), flags | O_CLOEXEC));
}

void ProcessMemory::lose(const KeptPages::Page& page) {
  lost_.insert(page.bus_address / kPage);
  if (lost_write) lost_write(page.bus_address + page.begin, page.end - page.begin);
}

bool ProcessMemory::is_lost(std::uint64_t address, std::uint64_t bytes) const {
  if (lost_.empty() || bytes == 0) return false;
  const auto page = lost_.lower_bound(address / kPage);
  return page != lost_.end() && *page <= (address + bytes - 1) / kPage;
}

// --- Pinned pages.

// Memory shared with the simulator is mapped by the process after it was pinned. If the range is refused, the known
// shared pages stay as they are, since they may be pinned already.
int ProcessMemory::admit(std::uint64_t address, std::uint64_t bytes, bool writable) {
  if (shared(address, bytes)) return 0;
  const std::uint64_t begin = page_of(address);
  const std::uint64_t end = pages_end(address + bytes);
  std::vector<std::pair<std::uint64_t, SharedRange>> found;
  for (const Piece& piece : pieces(begin, end - begin)) {
    const auto mappings = host::mappings_of(pid_, piece.address, piece.bytes);
    if (const int error = host::may_be_pinned(mappings, piece.address, piece.bytes, writable)) return error;
    for (const host::Mapping& mapping : mappings) {
      if (!mapping.shared) continue;
      const auto first = std::max(mapping.begin, piece.address);
      const auto last = std::min(mapping.end, piece.address + piece.bytes);
      const auto bus = begin + piece.offset + (first - piece.address);
      const host::SharedPage page{mapping.device, mapping.inode, (mapping.offset + (first - mapping.begin)) / kPage};
      found.push_back({bus, {bus + (last - first), page}});
    }
  }
  forget_shared(begin, end);
  lost_.erase(lost_.lower_bound(begin / kPage), lost_.lower_bound(end / kPage));
  shared_.insert(found.begin(), found.end());
  return 0;
}

void ProcessMemory::forget_shared(std::uint64_t begin, std::uint64_t end) {
  auto range = shared_.upper_bound(begin);
  if (range != shared_.begin()) --range;
  while (range != shared_.end() && range->first < end) {
    const auto [first, old] = *range;
    range = old.end <= begin ? std::next(range) : shared_.erase(range);
    if (old.end <= begin) continue;
    if (first < begin) shared_[first] = {begin, old.first};
    if (old.end <= end) continue;
    auto rest = old.first;
    rest.index += (end - first) / kPage;
    shared_[end] = {old.end, rest};
  }
}

std::optional<host::SharedPage> ProcessMemory::shared_page(std::uint64_t address) const {
  const auto behind = shared_.upper_bound(address);
  if (behind == shared_.begin()) return std::nullopt;
  const auto& [begin, range] = *std::prev(behind);
  if (address >= range.end) return std::nullopt;
  auto page = range.first;
  page.index += (address - begin) / kPage;
  return page;
}

bool ProcessMemory::is_shared(std::uint64_t address, std::uint64_t bytes) const {
  const auto behind = shared_.lower_bound(address + bytes);
  return behind != shared_.begin() && std::prev(behind)->second.end > address;
}

// --- Pages that move.

std::vector<ProcessMemory::Piece> ProcessMemory::pieces(std::uint64_t address, std::uint64_t bytes) const {
  std::vector<Piece> found;
  const std::uint64_t end = address + bytes;
  auto place = moved_.upper_bound(address);
  if (place != moved_.begin() && std::prev(place)->second.end > address) --place;
  for (std::uint64_t at = address; at < end;) {
    const bool inside = place != moved_.end() && place->first <= at;
    const std::uint64_t next = inside ? place->second.end : place != moved_.end() ? place->first : end;
    const std::uint64_t until = std::min(next, end);
    found.push_back({inside ? place->second.address + (at - place->first) : at, at - address, until - at});
    if (inside) ++place;
    at = until;
  }
  return found;
}

std::uint64_t ProcessMemory::bus_address_for(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = page_of(address);
  const std::uint64_t end = pages_end(address + bytes);
  for (const auto& [bus, place] : moved_)  // pinned memory that the process has moved has a bus address already
    if (begin >= place.address && end - place.address <= place.end - bus) return bus + (address - place.address);
  const auto next = moved_.lower_bound(end);
  if (next == moved_.begin() || std::prev(next)->second.end <= begin) return address;
  const std::uint64_t bus = aligned_like(begin, next_bus_address_);
  next_bus_address_ = bus + (end - begin);
  moved_[bus] = {next_bus_address_, begin};
  return bus + (address - begin);
}

// Splits the moved range that contains bus address `at`.
void ProcessMemory::cut(std::uint64_t at) {
  const auto behind = moved_.lower_bound(at);
  if (behind == moved_.begin()) return;
  auto& [bus, place] = *std::prev(behind);
  if (place.end <= at) return;
  moved_[at] = {place.end, place.address + (at - bus)};
  place.end = at;
}

std::vector<ProcessMemory::Range> ProcessMemory::still_in_place(const Range& range, const FirstPinned& pinned) const {
  std::vector<Range> found;
  for (const Piece& piece : pieces(range.begin, range.bytes)) {
    if (piece.address != range.begin + piece.offset) continue;
    const std::uint64_t end = piece.address + piece.bytes;
    for (std::uint64_t at = piece.address; at < end;) {
      const auto run = pinned({at, end - at});
      if (!run) break;
      const std::uint64_t begin = page_of(run->begin);
      at = std::min(pages_end(run->begin + run->bytes), end);
      found.push_back({begin, at - begin});
    }
  }
  return found;
}

std::optional<ProcessMemory::Range> ProcessMemory::first_pinned_pages(const Range& range, const FirstPinned& pinned,
                                                                      bool own_only) const {
  auto found = still_in_place(range, pinned);
  const std::uint64_t end = range.begin + range.bytes;
  for (const auto& [bus, place] : moved_) {
    const auto first = std::max(place.address, range.begin);
    const auto last = std::min(place.address + (place.end - bus), end);
    if (first < last) found.push_back({first, last - first});
  }
  if (own_only) found = without_shared(found);
  const auto first = std::ranges::min_element(found, {}, &Range::begin);
  return first == found.end() ? std::nullopt : std::optional(*first);
}

std::vector<ProcessMemory::Range> ProcessMemory::without_shared(const std::vector<Range>& ranges) const {
  std::vector<Range> own;
  for (const Range& range : ranges)
    for (const host::Mapping& mapping : host::mappings_of(pid_, range.begin, range.bytes)) {
      const auto first = std::max(mapping.begin, range.begin);
      const auto last = std::min(mapping.end, range.begin + range.bytes);
      if (!mapping.shared && first < last) own.push_back({first, last - first});
    }
  return own;
}

void ProcessMemory::move(const Range& range, std::uint64_t to, const FirstPinned& pinned) {
  flush();
  const std::uint64_t end = range.begin + range.bytes;
  const auto in_place = still_in_place(range, pinned);
  std::vector<std::uint64_t> cuts;
  for (const auto& [bus, place] : moved_)
    for (const std::uint64_t edge : {range.begin, end})
      if (edge > place.address && edge - place.address < place.end - bus) cuts.push_back(bus + (edge - place.address));
  for (const std::uint64_t at : cuts) cut(at);
  for (auto& [bus, place] : moved_)
    if (place.address >= range.begin && place.address < end) place.address = to + (place.address - range.begin);
  for (const Range& pages : in_place)
    moved_[pages.begin] = {pages.begin + pages.bytes, to + (pages.begin - range.begin)};
}

std::uint64_t ProcessMemory::place_aside(const Range& range) {
  const std::uint64_t place = aligned_like(range.begin, next_aside_);
  next_aside_ = place + range.bytes;
  return place;
}

void ProcessMemory::unpinned(const Range& bus, const FirstPinned& pinned, std::vector<Range>& free) {
  if (moved_.empty()) return;
  const std::uint64_t begin = page_of(bus.begin);
  const std::uint64_t end = pages_end(bus.begin + bus.bytes);
  for (std::uint64_t at = begin; at < end;) {
    const auto run = pinned({at, end - at});
    give_up({at, (run ? page_of(run->begin) : end) - at}, free);
    at = run ? pages_end(run->begin + run->bytes) : end;
  }
}

// The process is not asked to unmap ranges aside that become free; they stay mapped.
void ProcessMemory::left_bus(std::uint64_t address, std::uint64_t bytes) {
  std::vector<Range> nothing_aside;
  if (first_pinned) unpinned({address, bytes}, first_pinned, nothing_aside);
}

void ProcessMemory::give_up(const Range& bus, std::vector<Range>& free) {
  const std::uint64_t end = bus.begin + bus.bytes;
  cut(bus.begin);
  cut(end);
  for (auto place = moved_.lower_bound(bus.begin); place != moved_.end() && place->first < end;) {
    const auto [address, bytes] = Range{place->second.address, place->second.end - place->first};
    place = moved_.erase(place);
    const bool aside = address >= abi::kAsideAddress && address < next_aside_;
    const bool wanted = std::ranges::any_of(moved_, [&, address = address, bytes = bytes](const auto& entry) {
      const auto& [other, kept] = entry;
      return kept.address < address + bytes && address < kept.address + (kept.end - other);
    });
    if (aside && !wanted) free.push_back({address, bytes});
  }
}

std::uint64_t ProcessMemory::bytes_of_object_at(std::uint64_t address) const {
  std::uint64_t end = address;
  std::uint64_t inode = 0;
  for (const host::Mapping& mapping : host::mappings_of(pid_, address, ~address)) {
    if (mapping.begin != end || (end != address && mapping.inode != inode)) break;
    inode = mapping.inode;
    end = mapping.end;
  }
  return end - address;
}

}  // namespace rnicsim::sim
