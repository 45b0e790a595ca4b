// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/proc_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "sim/host/kernel/files/random.h"
#include "sim/host/kernel/processes/affinity.h"
#include "sim/host/kernel/processes/huge_pages.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(open);
RNICSIM_NEXT(read);
RNICSIM_NEXT(write);
RNICSIM_NEXT(close);

namespace rnicsim::clock {
namespace {

constexpr unsigned long long kHugePageKilobytes = abi::kHugePageBytes / 1024;

// The text of a file. All objects share one buffer, because no other thread gets a turn while one is in use.
class Text {
 public:
  Text() = default;
  explicit Text(const char* path) {
    const int real = next_open(path, O_RDONLY | O_CLOEXEC, 0);
    for (ssize_t got; room() > kMostLine && (got = next_read(real, bytes_ + length_, room() - kMostLine)) > 0;)
      length_ += std::size_t(got);
    if (real >= 0) next_close(real);
    bytes_[length_] = 0;
  }

  template <class... Values>
  void add(const char* format, Values... values) {
    length_ += std::size_t(snprintf(bytes_ + length_, room(), format, values...));
  }
  // Replaces the whole line that begins with `label`, if there is one.
  template <class... Values>
  void replace(const char* label, const char* format, Values... values) {
    if (char* line = find(label)) replace_at(line, format, values...);
  }
  // Lines have the form "label: number unit". Replaces each number by number_of(label, number); the label has no colon.
  template <class NumberOf>
  void renumber(NumberOf number_of) {
    for (char* line = bytes_; *line != 0;) {
      char label[64], unit[16] = "";
      unsigned long long number = 0;
      int blanks = 0;  // column where the blanks begin
      if (sscanf(line, "%63[^:\n]:%n %llu%15[^\n]", label, &blanks, &number, unit) >= 2) {
        const int column = std::string_view(label).starts_with("Node ") ? 31 : 24;  // column at which the number ends
        replace_at(line, "%s:%*llu%s", label, std::max(column - blanks, 2), number_of(label, number), unit);
      }
      line = strchrnul(line, '\n');
      if (*line != 0) ++line;
    }
  }

  // A file in memory with this text; -1: the text is empty.
  int open(int flags) const {
    if (length_ == 0) return -1;
    const int fd = ::memfd_create("proc", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
    if (fd < 0) return -1;
    for (std::size_t done = 0; done < length_;) {
      const ssize_t part = next_write(fd, bytes_ + done, length_ - done);
      if (part <= 0) break;
      done += std::size_t(part);
    }
    ::lseek(fd, 0, SEEK_SET);
    return fd;
  }

 private:
  static constexpr std::size_t kMostLine = 512;
  std::size_t room() const { return sizeof bytes_ - length_; }
  template <class... Values>
  void replace_at(char* line, const char* format, Values... values) {
    char made[kMostLine];
    const std::size_t bytes = std::min(std::size_t(snprintf(made, sizeof made, format, values...)), sizeof made - 1);
    char* end = strchrnul(line, '\n');
    const std::size_t rest = std::size_t(bytes_ + length_ - end);
    memmove(line + bytes, end, rest + 1);
    memcpy(line, made, bytes);
    length_ = std::size_t(line - bytes_) + bytes + rest;
  }
  static char* find(const char* label) {
    const std::size_t length = strlen(label);
    for (char* line = bytes_; line != nullptr; line = strchr(line, '\n')) {
      if (*line == '\n') ++line;
      if (strncmp(line, label, length) == 0) return line;
    }
    return nullptr;
  }

  static char bytes_[256 * 1024];
  std::size_t length_ = 0;
};
char Text::bytes_[256 * 1024];

timespec since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return time;
}

int open_uptime(int flags) {
  const timespec time = since_boot();
  const auto seconds = static_cast<long long>(time.tv_sec);
  const long hundredths = time.tv_nsec / 10'000'000;
  Text text;
  text.add("%lld.%02ld %lld.%02ld\n", seconds, hundredths, seconds, hundredths);
  return text.open(flags);
}

// The machine's file with the boot time of the host.
int open_stat(int flags) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const auto boot = static_cast<long long>(now.tv_sec - since_boot().tv_sec);
  Text text("/proc/stat");
  text.replace("btime ", "btime %lld", boot);
  return text.open(flags);
}

// The machine's sizes, with the free memory that free_memory() gives.
int open_memory(const char* path, int flags) {
  Text text(path);
  unsigned long long memory = 0, total = 0;
  const HugePageCounts huge = huge_pages();
  text.renumber([&](std::string_view label, unsigned long long number) {
    if (label.ends_with("HugePages_Total")) return huge.total;
    if (label.ends_with("HugePages_Free")) return huge.free;
    if (label == "Hugepagesize") return kHugePageKilobytes;
    if (label == "Hugetlb") return huge.total * kHugePageKilobytes;
    if (label.ends_with("MemTotal")) memory = number;
    if (label.ends_with("Total")) return total = number;
    if (label.ends_with("MemFree") || label.ends_with("MemAvailable")) return free_memory(memory);
    if (label.ends_with("MemUsed")) return memory - free_memory(memory);
    if (label.ends_with("Free")) return total;
    return label == "CommitLimit" ? number : 0ull;
  });
  return text.open(flags);
}

int open_number(unsigned long long number, int flags) {
  Text text;
  text.add("%llu\n", number);
  return text.open(flags);
}

int open_load(int flags) {
  Text text;
  text.add("0.00 0.00 0.00 1/1 %u\n", session()->header().virtual_pid);
  return text.open(flags);
}

// Mask of processors as the kernel writes it: words of 32 bits, the highest first, without leading zero words.
class Mask {
 public:
  explicit Mask(const abi::ProcessorSet& set) {
    std::size_t words = std::size(set.bits) * 2;
    while (words > 1 && word(set, words - 1) == 0) --words;
    for (char* at = text_; words-- > 0;)
      at += snprintf(at, std::size_t(std::end(text_) - at), words != 0 ? "%08x," : "%08x", word(set, words));
  }
  const char* text() const { return text_; }

 private:
  static std::uint32_t word(const abi::ProcessorSet& set, std::size_t index) {
    return std::uint32_t(set.bits[index / 2] >> index % 2 * 32);
  }
  char text_[300];
};
// List of processors, for example "0-3,8".
class List {
 public:
  explicit List(const abi::ProcessorSet& set) {
    constexpr unsigned kEnd = std::size(decltype(set.bits){}) * 64;
    const auto has = [&](unsigned n) { return n < kEnd && (set.bits[n / 64] >> n % 64 & 1) != 0; };
    for (unsigned n = 0; n < kEnd; ++n) {
      if (!has(n)) continue;
      const unsigned first = n;
      while (has(n + 1)) ++n;
      add(first, n);
    }
  }
  const char* text() const { return text_; }

 private:
  void add(unsigned first, unsigned last) {
    const char* comma = length_ != 0 ? "," : "";
    const std::size_t room = sizeof text_ - length_;
    const int bytes = first == last ? snprintf(text_ + length_, room, "%s%u", comma, first)
                                    : snprintf(text_ + length_, room, "%s%u-%u", comma, first, last);
    length_ = std::min(length_ + std::size_t(bytes), sizeof text_ - 1);
  }
  char text_[400] = {};
  std::size_t length_ = 0;
};

// The real process's file with the host's numbers and the affinity that the program sees.
int open_status(abi::ThreadSlot& slot, int flags) {
  const abi::ControlHeader& header = session()->header();
  abi::ProcessorSet affinity;
  get_affinity(slot, header.virtual_pid, affinity);
  Text text("/proc/self/status");
  const auto label_of = [&](const char* label, std::uint32_t number) { text.replace(label, "%s\t%u", label, number); };
  for (const char* label : {"Tgid:", "Pid:", "NStgid:", "NSpid:"}) label_of(label, header.virtual_pid);
  label_of("PPid:", header.virtual_parent_pid);
  text.replace("Cpus_allowed:", "Cpus_allowed:\t%s", Mask(affinity).text());
  text.replace("Cpus_allowed_list:", "Cpus_allowed_list:\t%s", List(affinity).text());
  return text.open(flags);
}

// A new UUID at each opening, of version 4 (RFC 4122).
int open_uuid(int flags) {
  unsigned char bytes[16];
  draw(bytes, sizeof bytes);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  Text text;
  for (int i = 0; i < 16; ++i) text.add(i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
  text.add("\n");
  return text.open(flags);
}

bool is(const char* path, const char* name) { return strcmp(path, name) == 0; }

// True: a file such as "/sys/devices/system/node/node0/meminfo".
bool is_of_node(std::string_view path, std::string_view file) {
  return path.starts_with("/sys/devices/system/node/node") && path.substr(path.rfind('/') + 1) == file;
}

bool is_of_huge_pages(std::string_view path, std::string_view file) {
  constexpr std::string_view kFolder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  return path.starts_with(kFolder) && path.substr(kFolder.size()) == file;
}

bool is_own_status(const char* path) {
  char own[64];
  snprintf(own, sizeof own, "/proc/%u/status", session()->header().virtual_pid);
  return is(path, "/proc/self/status") || is(path, own);
}

}  // namespace

int open_proc_file(const char* path, int flags) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr) return -1;
  if (is(path, "/proc/uptime")) return open_uptime(flags);
  if (is(path, "/proc/stat")) return open_stat(flags);
  if (is(path, "/proc/loadavg")) return open_load(flags);
  if (is(path, "/proc/sys/kernel/random/uuid")) return open_uuid(flags);
  if (is(path, "/proc/meminfo") || is_of_node(path, "meminfo")) return open_memory(path, flags);
  if (is(path, "/proc/sys/vm/nr_hugepages") || is_of_huge_pages(path, "nr_hugepages"))
    return open_number(huge_pages().total, flags);
  if (is_of_huge_pages(path, "free_hugepages")) return open_number(huge_pages().free, flags);
  return is_own_status(path) ? open_status(*slot, flags) : -1;
}

}  // namespace rnicsim::clock
