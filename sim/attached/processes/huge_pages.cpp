// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/processes/huge_pages.h"

#include <fmt/format.h>
#include <sys/shm.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "model/abi/attach.h"
#include "model/host/memory/mappings.h"

namespace rnicsim::sim {
namespace {

constexpr std::uint64_t kSmallestHugePage = 64 << 10;
constexpr std::uint64_t kKibi = 1024;

// The number in a line such as "Hugetlb: 2048 kB"; nullopt: the line has another name.
std::optional<std::uint64_t> kibibytes(const std::string& line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  return std::strtoull(line.c_str() + name.size(), nullptr, 10);
}

// False on most machines, where no huge pages are reserved: smaps need not be read.
bool machine_has_any() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (const auto value = kibibytes(line, "Hugetlb:")) return *value != 0;
  return false;
}

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t inode = 0;
};

// Parses the first line of a mapping in maps or smaps; nullopt: another line.
std::optional<Mapping> mapping_of(const std::string& line) {
  Mapping mapping;
  const int fields = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*4s %*x %*x:%*x %" SCNu64, &mapping.begin,
                                 &mapping.end, &mapping.inode);
  return fields == 3 ? std::optional(mapping) : std::nullopt;
}

bool overlaps(const Mapping& mapping, std::uint64_t begin, std::uint64_t bytes) {
  return begin < mapping.end && (begin >= mapping.begin || mapping.begin - begin < bytes);
}

// Huge pages belong to a file, and the mapping consists of whole pages.
bool may_be_huge(const Mapping& mapping) {
  return mapping.inode != 0 && mapping.begin % kSmallestHugePage == 0 && mapping.end % kSmallestHugePage == 0;
}

// The kernel walks every page of the process to write smaps, so smaps is read only if some mapping may be huge.
bool is_worth_a_look(pid_t pid, std::uint64_t begin, std::uint64_t bytes) {
  return std::ranges::any_of(host::mappings_of(pid, begin, bytes), [](const host::Mapping& mapping) {
    return may_be_huge({mapping.begin, mapping.end, mapping.inode});
  });
}

std::vector<HugeMapping> mappings_of_machine(pid_t pid, std::uint64_t begin, std::uint64_t bytes) {
  std::vector<HugeMapping> found;
  if (!machine_has_any() || !is_worth_a_look(pid, begin, bytes)) return found;
  std::ifstream file(fmt::format("/proc/{}/smaps", pid));
  std::optional<Mapping> current;
  for (std::string line; std::getline(file, line);) {
    if (const auto next = mapping_of(line)) {
      current = next;
    } else if (const auto size = kibibytes(line, "KernelPageSize:"); size && current) {
      if (*size * kKibi >= kSmallestHugePage && may_be_huge(*current) && overlaps(*current, begin, bytes))
        found.push_back({current->begin, current->end, ByteCount{*size * kKibi}});
    }
  }
  return found;
}

struct NamedMapping {
  Mapping mapping;
  std::uint64_t offset = 0;
  std::string name;
};
bool is_mapped_huge(const NamedMapping& named) { return named.name.find(abi::kHugePagesName) != std::string::npos; }
bool is_of_segment(const NamedMapping& named, const std::set<int>& segments) {
  return named.name.starts_with("/SYSV") && segments.contains(static_cast<int>(named.mapping.inode));
}

// File mappings of a process.
std::vector<NamedMapping> named_mappings(pid_t pid) {
  std::vector<NamedMapping> found;
  std::ifstream file(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(file, line);) {
    const auto mapping = mapping_of(line);
    const auto name = line.find('/');
    if (!mapping || name == line.npos) continue;
    std::uint64_t offset = 0;
    std::sscanf(line.c_str(), "%*x-%*x %*4s %" SCNx64, &offset);
    found.push_back({*mapping, offset, line.substr(name)});
  }
  return found;
}

}  // namespace

std::vector<HugeMapping> HugePages::mappings(pid_t process, std::uint64_t begin, std::uint64_t bytes) const {
  std::vector<HugeMapping> found;
  if (count_ != 0)
    for (const auto& named : named_mappings(process))
      if (overlaps(named.mapping, begin, bytes) && (is_mapped_huge(named) || is_of_segment(named, segments_)))
        found.push_back({named.mapping.begin, named.mapping.end, ByteCount{abi::kHugePageBytes}});
  for (const auto& mapping : mappings_of_machine(process, begin, bytes)) found.push_back(mapping);
  std::ranges::sort(found, {}, &HugeMapping::begin);
  return found;
}

std::uint64_t HugePages::free(std::span<const pid_t> processes) const {
  std::set<std::pair<std::uint64_t, std::uint64_t>> mapped;  // file and page
  for (const pid_t process : processes)
    for (const auto& [mapping, offset, name] : named_mappings(process))
      if (is_mapped_huge({mapping, offset, name}))
        for (std::uint64_t at = 0; at < mapping.end - mapping.begin; at += abi::kHugePageBytes)
          mapped.emplace(mapping.inode, (offset + at) / abi::kHugePageBytes);
  std::uint64_t taken = mapped.size();
  for (const int number : segments_) {
    shmid_ds segment{};
    if (::shmctl(number, IPC_STAT, &segment) == 0) taken += segment.shm_segsz / abi::kHugePageBytes;
  }
  return count_ - std::min<std::uint64_t>(count_, taken);
}

}  // namespace rnicsim::sim
