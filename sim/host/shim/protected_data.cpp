// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/protected_data.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace rnicsim::clock {
namespace {

struct Search {
  std::uintptr_t address;
  std::span<std::uintptr_t> found;
};

int look_at(dl_phdr_info* object, std::size_t, void* opaque) {
  auto& search = *static_cast<Search*>(opaque);
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
    if (header.p_type != PT_GNU_RELRO) continue;
    if (object->dlpi_addr != search.address && search.address - begin >= header.p_memsz) continue;
    search.found = {reinterpret_cast<std::uintptr_t*>(begin), header.p_memsz / sizeof(std::uintptr_t)};
    return 1;
  }
  return 0;
}

}  // namespace

ProtectedData::ProtectedData(std::uintptr_t address) {
  Search search{address, {}};
  ::dl_iterate_phdr(look_at, &search);
  words_ = search.found;
  if (!protect(PROT_READ | PROT_WRITE)) words_ = {};
}
ProtectedData::~ProtectedData() { protect(PROT_READ); }

// Whole pages only: a last page that contains other data was never protected.
bool ProtectedData::protect(int rights) const {
  const auto page = std::uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(words_.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(words_.data() + words_.size()) / page * page;
  return !words_.empty() && ::mprotect(reinterpret_cast<void*>(begin), end - begin, rights) == 0;
}

}  // namespace rnicsim::clock
