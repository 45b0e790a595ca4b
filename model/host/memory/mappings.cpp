// SPDX-License-Identifier: Apache-2.0
#include "model/host/memory/mappings.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>

namespace rnicsim::host {
namespace {

// Fields of a line, parsed one after the other: 10,000 registrations read all lines 10,000 times.
class Fields {
 public:
  explicit Fields(std::string_view line) : at_(line.data()), end_(at_ + line.size()) {}

  std::optional<std::uint64_t> number(int base) {
    std::uint64_t value = 0;
    const auto [rest, error] = std::from_chars(at_, end_, value, base);
    at_ = rest;
    return error == std::errc() ? std::optional(value) : std::nullopt;
  }
  void skip(std::size_t characters) { at_ = std::size_t(end_ - at_) < characters ? end_ : at_ + characters; }
  char take() { return at_ == end_ ? '\0' : *at_++; }

 private:
  const char* at_;
  const char* end_;
};

// "7f0000000000-7f0000001000 rw-p 00000000 fd:01 1234   /path"
std::optional<Mapping> mapping_of(std::string_view line) {
  Fields fields(line);
  Mapping mapping;
  const auto begin = fields.number(16);
  fields.skip(1);
  const auto end = fields.number(16);
  fields.skip(1);
  mapping.readable = fields.take() == 'r';
  mapping.writable = fields.take() == 'w';
  fields.skip(1);
  mapping.shared = fields.take() == 's';
  fields.skip(1);
  const auto offset = fields.number(16);
  fields.skip(1);
  const auto major = fields.number(16);
  fields.skip(1);
  const auto minor = fields.number(16);
  fields.skip(1);
  const auto inode = fields.number(10);
  if (!begin || !end || !offset || !major || !minor || !inode) return std::nullopt;
  mapping.begin = *begin;
  mapping.end = *end;
  mapping.offset = *offset;
  mapping.device = makedev(unsigned(*major), unsigned(*minor));
  mapping.inode = *inode;
  return mapping;
}

}  // namespace

std::vector<Mapping> mappings_of(pid_t pid, std::uint64_t begin, std::uint64_t bytes) {
  std::vector<Mapping> found;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(fmt::format("/proc/{}/maps", pid).c_str(), "re"), &std::fclose);
  if (!file) return found;
  char* line = nullptr;
  std::size_t room = 0;
  for (ssize_t length; (length = ::getline(&line, &room, file.get())) > 0;) {
    const auto mapping = mapping_of({line, std::size_t(length)});
    if (!mapping || mapping->end <= begin) continue;
    if (mapping->begin > begin && mapping->begin - begin >= bytes) break;
    found.push_back(*mapping);
  }
  std::free(line);
  return found;
}

int may_be_pinned(std::span<const Mapping> mappings, std::uint64_t begin, std::uint64_t bytes, bool writable) {
  std::uint64_t at = begin;
  for (const Mapping& mapping : mappings) {
    if (mapping.begin > at) break;
    if (mapping.end <= at) continue;
    if (!mapping.readable || (writable && !mapping.writable)) return EFAULT;
    at = mapping.end;
    if (at - begin >= bytes) return 0;
  }
  return bytes == 0 ? 0 : EFAULT;
}

}  // namespace rnicsim::host
