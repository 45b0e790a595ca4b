// SPDX-License-Identifier: Apache-2.0
#include "sim/guest/transactor/guest_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "sim/guest/transactor/shared_copy.h"

namespace rnicsim::sim {
namespace {

std::string range_text(std::uint64_t address, std::uint64_t bytes) {
  return fmt::format("{} bytes at bus address {:#x}", bytes, address);
}

// fstat() tells the length of a regular file only. For other files mmap() decides, and shared_copy.h guards the access.
void refuse_short_file(int file, std::uint64_t bytes, std::uint64_t offset) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0)
    throw MapError(errno, fmt::format("descriptor of the memory: {}", std::strerror(errno)));
  if (!S_ISREG(facts.st_mode)) return;
  const auto held = static_cast<std::uint64_t>(std::max<off_t>(facts.st_size, 0));
  if (offset > held || bytes > held - offset)
    throw MapError(
        EINVAL, fmt::format("the file of the descriptor has {} bytes, but the range ends at {}", held, offset + bytes));
}

}  // namespace

const char* to_string(GuestMemory::Answer answer) {
  switch (answer) {
    case GuestMemory::Answer::done: return "done";
    case GuestMemory::Answer::unmapped: return "no memory of the guest is mapped at this address";
    case GuestMemory::Answer::no_right: return "the guest did not map the memory for this access";
    case GuestMemory::Answer::taken_away: return "the guest removed the memory: its file became smaller";
    case GuestMemory::Answer::refused: return "the guest refused the access";
  }
  return "";
}

void GuestMemory::map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Descriptor& file,
                      std::uint64_t offset) {
  refuse_overlap(address, bytes);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (offset % page != 0 || offset + bytes < offset || offset + bytes > std::uint64_t{INT64_MAX})
    throw MapError(EINVAL, fmt::format("offset {:#x} in the file is not a page, or is too large", offset));
  refuse_short_file(file.get(), bytes, offset);
  const int protection = (rights.read ? PROT_READ : 0) | (rights.write ? PROT_READ | PROT_WRITE : 0);
  void* shared = ::mmap(nullptr, bytes, protection, MAP_SHARED, file.get(), static_cast<off_t>(offset));
  if (shared == MAP_FAILED) throw MapError(errno, fmt::format("mmap: {}", std::strerror(errno)));
  ranges_[address] = {bytes, rights, static_cast<std::byte*>(shared), {}};
}

void GuestMemory::map(std::uint64_t address, std::uint64_t bytes, Rights rights, const Messages& messages) {
  refuse_overlap(address, bytes);
  ranges_[address] = {bytes, rights, nullptr, messages};
}

void GuestMemory::refuse_overlap(std::uint64_t address, std::uint64_t bytes) const {
  if (bytes == 0 || address + (bytes - 1) < address)
    throw MapError(EINVAL, fmt::format("{} is not a range", range_text(address, bytes)));
  const auto next = ranges_.lower_bound(address);
  const bool ahead = next != ranges_.end() && next->first - address < bytes;
  const bool behind = next != ranges_.begin() && address - std::prev(next)->first < std::prev(next)->second.bytes;
  if (ahead || behind)
    throw MapError(EEXIST, fmt::format("a part of {} is already mapped", range_text(address, bytes)));
}

bool GuestMemory::unmap(std::uint64_t address, std::uint64_t bytes) {
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.bytes != bytes) return false;
  release(found->second);
  ranges_.erase(found);
  return true;
}

void GuestMemory::clear() {
  for (const auto& [address, range] : ranges_) release(range);
  ranges_.clear();
}

void GuestMemory::release(const Range& range) {
  if (range.shared != nullptr) ::munmap(range.shared, range.bytes);
}

GuestMemory::Ranges::iterator GuestMemory::range_at(std::uint64_t address) {
  auto behind = ranges_.upper_bound(address);
  if (behind == ranges_.begin()) return ranges_.end();
  const auto found = std::prev(behind);
  return address - found->first < found->second.bytes ? found : ranges_.end();
}

bool GuestMemory::holds(std::uint64_t address, std::uint64_t bytes) const {
  auto& self = const_cast<GuestMemory&>(*this);
  return self.each_piece(address, bytes, [](const Range&, auto, auto, auto) { return Answer::done; }) == Answer::done;
}

// Calls `visit(range, offset in the range, offset in the access, bytes)` for each part of the access.
template <class Visit>
GuestMemory::Answer GuestMemory::each_piece(std::uint64_t address, std::uint64_t bytes, Visit&& visit) {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto found = range_at(address + done);
    if (found == ranges_.end() || address + done < address) return Answer::unmapped;
    const auto at = address + done - found->first;
    const auto piece = std::min(bytes - done, found->second.bytes - at);
    if (const auto answer = visit(found->second, at, done, piece); answer != Answer::done) return answer;
    done += piece;
  }
  return Answer::done;
}

GuestMemory::Answer GuestMemory::read(std::uint64_t address, std::span<std::byte> bytes) {
  const auto may = each_piece(address, bytes.size(), [](const Range& range, auto, auto, auto) {
    return range.rights.read ? Answer::done : Answer::no_right;
  });
  if (may != Answer::done) return may;
  return each_piece(address, bytes.size(), [&](const Range& range, auto at, auto done, auto piece) {
    const auto part = bytes.subspan(done, piece);
    if (range.shared != nullptr) return copy_from_shared(part, range.shared + at) ? Answer::done : Answer::taken_away;
    return range.messages.read(address + done, part) ? Answer::done : Answer::refused;
  });
}

bool GuestMemory::peek(std::uint64_t address, std::span<std::byte> bytes) {
  return each_piece(address, bytes.size(), [&](const Range& range, auto at, auto done, auto piece) {
           if (range.shared == nullptr) return Answer::refused;
           return copy_from_shared(bytes.subspan(done, piece), range.shared + at) ? Answer::done : Answer::refused;
         }) == Answer::done;
}

GuestMemory::Answer GuestMemory::write(std::uint64_t address, std::span<const std::byte> bytes) {
  const auto may = each_piece(address, bytes.size(), [](const Range& range, auto, auto, auto) {
    return range.rights.write ? Answer::done : Answer::no_right;
  });
  if (may != Answer::done) return may;
  return each_piece(address, bytes.size(), [&](const Range& range, auto at, auto done, auto piece) {
    const auto part = bytes.subspan(done, piece);
    if (range.shared != nullptr) return copy_to_shared(range.shared + at, part) ? Answer::done : Answer::taken_away;
    return range.messages.write(address + done, part) ? Answer::done : Answer::refused;
  });
}

}  // namespace rnicsim::sim
