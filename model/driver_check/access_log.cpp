// SPDX-License-Identifier: Apache-2.0
#include "model/driver_check/access_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/driver_check/finding.h"

namespace rnicsim::driver_check {
namespace {

constexpr std::uint32_t kMsixEntryBytes = 16;
constexpr std::uint32_t kPageBytes = 4096;

bool within(std::uint64_t offset, std::uint64_t begin, std::uint64_t bytes) {
  return offset >= begin && offset - begin < bytes;
}

}  // namespace

void AccessLog::add(Duration at, const nic::HostAccess& access) {
  ++count_;
  auto& one = last();
  one = {.at = at, .space = access.space, .write = access.write, .offset = access.offset, .size = access.bytes.size()};
  if (access.write) keep(one, access.bytes);
}

void AccessLog::answer(const nic::HostAnswer& answer) {
  if (!answer.accepted) return refuse();
  keep(last(), answer.bytes);
}

void AccessLog::refuse() { last().refused = true; }

void AccessLog::keep(Access& access, std::span<const std::byte> bytes) {
  access.has_bytes = true;
  std::ranges::copy(bytes.first(std::min(bytes.size(), kBytesKept)), access.bytes.begin());
}

std::span<const std::byte> AccessLog::last_bytes() const {
  const auto& access = last();
  return std::span(access.bytes).first(access.has_bytes ? std::min(access.size, kBytesKept) : 0);
}

std::vector<std::string> AccessLog::lines() const {
  std::vector<std::string> lines;
  for (auto at = count_ - std::min<std::uint64_t>(count_, kKept); at < count_; ++at)
    lines.push_back(line(kept_[at % kKept]));
  return lines;
}

std::string AccessLog::line(const Access& access) const {
  std::string value;
  if (access.has_bytes) {
    value = access.write ? ": 0x" : " gives 0x";
    const auto shown = std::min(access.size, kBytesKept);
    // Bytes in bus order give the number of a BAR register (big-endian); configuration space is little-endian.
    const bool turned = access.space == Space::config;
    for (std::size_t i = 0; i < shown; ++i)
      value += fmt::format("{:02x}", std::to_integer<unsigned>(access.bytes[turned ? shown - 1 - i : i]));
    if (access.size > shown) value += "...";
  }
  return fmt::format("{}: {} of {} bytes {} {}{}{}", in_words(access.at), access.write ? "write" : "read", access.size,
                     access.write ? "to" : "of", place(access.space, access.offset), value,
                     access.refused ? ": refused" : "");
}

const nic::RegisterTerm* AccessLog::register_at(std::uint64_t offset) const {
  const auto base = personality_.layout.pci.registers;
  for (const auto& one : terms_.registers())
    if (within(offset, base + one.offset, one.bits / 8)) return &one;
  return nullptr;
}

const nic::DoorbellTerm* AccessLog::doorbell_at(std::uint64_t offset) const {
  const auto& map = personality_.layout.pci;
  if (!within(offset, map.uar, std::uint64_t{map.uar_pages} * map.uar_page_bytes)) return nullptr;
  for (const auto& one : terms_.doorbells())
    if (one.offset == (offset - map.uar) % map.uar_page_bytes) return &one;
  return nullptr;
}

std::string AccessLog::place(Space space, std::uint64_t offset) const {
  if (space == Space::config) {
    const auto* name = terms_.config_name(offset);
    return fmt::format("configuration space + {:#05x}{}", offset, name != nullptr ? fmt::format(" ({})", name) : "");
  }
  const auto& map = personality_.layout.pci;
  const auto named = [offset](const std::string& name) { return fmt::format("BAR0 + {:#05x} ({})", offset, name); };
  if (const auto* one = register_at(offset)) return named(one->name);
  if (within(offset, map.msix_table, std::uint64_t{map.msix_vectors} * kMsixEntryBytes))
    return named(fmt::format("MSI-X table, vector {}", (offset - map.msix_table) / kMsixEntryBytes));
  if (within(offset, map.msix_pending, sizeof(std::uint64_t))) return named("MSI-X pending bits");
  if (within(offset, map.uar, std::uint64_t{map.uar_pages} * map.uar_page_bytes)) {
    const auto page = (offset - map.uar) / map.uar_page_bytes;
    const auto* doorbell = doorbell_at(offset);
    if (doorbell != nullptr) return named(fmt::format("UAR page {}, {}", page, doorbell->name));
    return named(fmt::format("UAR page {} + {:#05x}", page, (offset - map.uar) % map.uar_page_bytes));
  }
  if (within(offset, map.device_memory, map.most_device_memory)) return named("device memory");
  return named(within(offset, map.registers, kPageBytes) ? "no register" : "nothing");
}

}  // namespace rnicsim::driver_check
