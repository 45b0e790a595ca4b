// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/counter/counter_sites.h"

#include <Zydis/Zydis.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "sim/host/shim/counter/fast_counter.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/spin/loop_marks.h"
#include "sim/host/shim/text.h"

namespace rnicsim::clock {
namespace {

constexpr std::uint32_t kOften = 64;  // traps before the jump is written, which costs as much as a few of them

constexpr std::size_t kReadBytes = 2;  // rdtsc
constexpr std::size_t kJumpBytes = 5;  // jmp rel32
constexpr std::size_t kMostBehind = ZYDIS_MAX_INSTRUCTION_LENGTH;

struct Site {
  std::uintptr_t place = 0;  // 0: free entry
  std::uint32_t reads = 0;
  std::uintptr_t displaced = 0;  // address of the moved instruction behind rdtsc; 0: not moved
};
std::array<Site, 64> sites;

Site* site_at(std::uintptr_t place) {
  const auto found = std::ranges::find(sites, place, &Site::place);
  return found != sites.end() ? &*found : nullptr;
}

const Site* site_before(std::uintptr_t place) {
  const Site* site = site_at(place - kReadBytes);
  return site != nullptr && site->displaced != 0 ? site : nullptr;
}

// Length of the instruction behind rdtsc if it can be executed elsewhere and is long enough for the jump; else 0.
std::size_t bytes_behind(std::uintptr_t place) {
  ZydisDecoder decoder;
  ZydisDecodedInstruction instruction;
  ::ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  const auto* code = reinterpret_cast<const void*>(place + kReadBytes);
  const bool decoded =
      ZYAN_SUCCESS(::ZydisDecoderDecodeInstruction(&decoder, nullptr, code, kMostBehind, &instruction));
  if (!decoded || instruction.length < kJumpBytes - kReadBytes) return 0;
  constexpr std::array kStay{ZYDIS_CATEGORY_CALL,      ZYDIS_CATEGORY_RET,     ZYDIS_CATEGORY_COND_BR,
                             ZYDIS_CATEGORY_UNCOND_BR, ZYDIS_CATEGORY_SYSCALL, ZYDIS_CATEGORY_INTERRUPT};
  const bool moves = (instruction.attributes & ZYDIS_ATTRIB_IS_RELATIVE) == 0 &&
                     std::ranges::find(kStay, instruction.meta.category) == kStay.end();
  return moves ? instruction.length : 0;
}

// True: the object has a note of Go. The stacks of a Go program are no larger than its compiler found necessary.
bool is_of_go(std::uintptr_t place) {
  dl_find_object object;
  if (::_dl_find_object(reinterpret_cast<void*>(place), &object) != 0) return false;
  const auto* image = static_cast<const std::byte*>(object.dlfo_map_start);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image);
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(image + header->e_phoff);
  return std::any_of(segments, segments + header->e_phnum, [&](const ElfW(Phdr) & segment) {
    struct Note {
      ElfW(Nhdr) header;
      char name[4];
    } note{};
    if (segment.p_type != PT_NOTE || segment.p_filesz < sizeof note) return false;
    memcpy(&note, image + segment.p_offset, sizeof note);
    return memcmp(note.name, "Go", 3) == 0;
  });
}

// The generated code that a site jumps to. It skips the 128 bytes below the stack pointer, which may be in use.
class Detour {
 public:
  static constexpr std::size_t kMostBytes = 96;
  static constexpr std::size_t kDisplaced = 0x30;

  Detour(std::uintptr_t place, std::size_t behind) {
    const auto function = std::uint8_t(kDisplaced + behind + 14 - 0x0c);
    add({0x48, 0x8d, 0x64, 0x24, 0x80});                    // 00: lea -128(%rsp), %rsp
    add({0x9c});                                            // 05: pushfq
    add({0xff, 0x15, function, 0x00, 0x00, 0x00});          // 06: call *function(%rip)
    add({0x48, 0x85, 0xc0});                                // 0c: test %rax, %rax
    add({0x74, 0x14});                                      // 0f: je 25
    add({0x48, 0x89, 0xc2});                                // 11: mov %rax, %rdx
    add({0x48, 0xc1, 0xea, 0x20});                          // 14: shr $32, %rdx
    add({0x89, 0xc0});                                      // 18: mov %eax, %eax
    add({0x9d});                                            // 1a: popfq
    add({0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});  // 1b: lea 128(%rsp), %rsp
    add({0xeb, 0x0b});                                      // 23: jmp 30
    add({0x9d});                                            // 25: popfq
    add({0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00});  // 26: lea 128(%rsp), %rsp
    add({0x0f, 0x31});                                      // 2e: rdtsc
    add(reinterpret_cast<const void*>(place + kReadBytes), behind);
    add({0xff, 0x25, 0x00, 0x00, 0x00, 0x00});  // jmp *0(%rip)
    const std::uintptr_t back = place + kReadBytes + behind;
    add(&back, sizeof back);
    const auto entry = reinterpret_cast<std::uintptr_t>(&fast_counter);
    add(&entry, sizeof entry);
  }
  void put_at(std::uintptr_t address) const { memcpy(reinterpret_cast<void*>(address), code_.data(), size_); }

 private:
  void add(std::initializer_list<std::uint8_t> bytes) { add(bytes.begin(), bytes.size()); }
  void add(const void* bytes, std::size_t count) {
    memcpy(&code_[size_], bytes, count);
    size_ += count;
  }

  std::array<std::uint8_t, kMostBytes> code_{};
  std::size_t size_ = 0;
};

// An address for the detour, near enough for a jump. The second byte of the jump's distance is where the instruction
// behind rdtsc began, and must be a breakpoint instruction. 0: no room.
std::uintptr_t room_for_detour(std::uintptr_t place) {
  constexpr std::intptr_t kBreakpoint = 0xcc00, kStep = 1 << 16, kMostSteps = 0x7ff0;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  for (std::intptr_t step = 1; step < kMostSteps; ++step) {
    for (const std::intptr_t distance : {-step * kStep + kBreakpoint, step * kStep + kBreakpoint}) {
      std::uintptr_t address = place + kJumpBytes + std::uintptr_t(distance);
      // The detour must not cross a page boundary.
      if (kPageBytes - address % kPageBytes < Detour::kMostBytes) address += Detour::kMostBytes;
      const std::uintptr_t page = address & ~(kPageBytes - 1);
      const long mapped = raw_call(SYS_mmap, page, kPageBytes, PROT_READ | PROT_WRITE | PROT_EXEC, kFlags, -1, 0);
      if (mapped == long(page)) return address;
    }
  }
  return 0;
}

void divert(Site& site) {
  const std::size_t behind = bytes_behind(site.place);
  if (behind == 0 || LoopMark::was_at(site.place + kReadBytes)) return;
  if (!is_of_a_file(site.place) || is_of_go(site.place) || !make_writable(site.place, kJumpBytes)) return;
  const std::uintptr_t detour = room_for_detour(site.place);
  if (detour == 0) return;
  Detour(site.place, behind).put_at(detour);
  site.displaced = detour + Detour::kDisplaced;
  const auto distance = std::int32_t(detour - site.place - kJumpBytes);
  auto* code = reinterpret_cast<std::uint8_t*>(site.place);
  memcpy(code + 1, &distance, sizeof distance);
  *code = 0xe9;  // jmp rel32
}

}  // namespace

bool note_counter_read(std::uintptr_t place) {
  Site* site = site_at(place);
  if (site == nullptr) site = site_at(0);
  if (site == nullptr) return false;
  // Other code has come to a place where a jump stood.
  if (site->displaced != 0) *site = {};
  site->place = place;
  if (++site->reads == kOften) divert(*site);
  return site->displaced != 0;
}

bool is_behind_counter_read(std::uintptr_t place) { return site_before(place) != nullptr; }

bool resume_behind_counter_read(ucontext_t& context) {
  greg_t& place = context.uc_mcontext.gregs[REG_RIP];
  const Site* site = site_before(std::uintptr_t(place) - 1);
  if (site == nullptr) return false;
  place = greg_t(site->displaced);
  return true;
}

}  // namespace rnicsim::clock
