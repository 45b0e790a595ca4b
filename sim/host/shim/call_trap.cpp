// SPDX-License-Identifier: Apache-2.0
#include "sim/host/shim/call_trap.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <linux/audit.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <cstdint>

#include "sim/host/kernel/signals/kernel_signals.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/counter/counter_trap.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/real_calls.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

// Constants of <linux/prctl.h> and <asm-generic/siginfo.h>, which older headers lack.
constexpr int kSetUserDispatch = 59, kDispatchOn = 1, kUserDispatch = 2;

struct Text {
  std::uintptr_t begin = 0;
  std::uintptr_t bytes = 0;
  bool has(std::uintptr_t address) const { return address - begin < bytes; }
};

// The executable segment that contains an address.
Text text_around(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    Text found;
  } search{address, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* opaque) {
        auto& wanted = *static_cast<Search*>(opaque);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& segment = object->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
          const Text text{object->dlpi_addr + segment.p_vaddr, segment.p_memsz};
          if (text.has(wanted.address)) wanted.found = text;
        }
        return wanted.found.bytes != 0 ? 1 : 0;
      },
      &search);
  return search.found;
}

Text text_of_image(std::uintptr_t base) {
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  return base != 0 ? text_around(base + header->e_entry) : Text{};
}

// File name of the object that contains an address, in any namespace (LD_AUDIT, dlmopen); "" for the program itself.
const char* file_around(std::uintptr_t address) {
  dl_find_object object;
  return ::_dl_find_object(reinterpret_cast<void*>(address), &object) == 0 ? object.dlfo_link_map->l_name : "";
}

// Code from which system calls go on to the kernel: the C library, the loader, which runs before it, and the vDSO,
// which passes reads of CPU-time clocks on to the kernel. An auditor's copy of the C library is trusted, too.
struct Trusted {
  std::uintptr_t inside = reinterpret_cast<std::uintptr_t>(&::gnu_get_libc_version);
  Text library = text_around(inside);
  const char* library_file = file_around(inside);
  Text loader = text_of_image(::getauxval(AT_BASE));

  bool has(std::uintptr_t address) const {
    return loader.has(address) || in_vdso(address) || ::strcmp(file_around(address), library_file) == 0;
  }
};
const Trusted& trusted() {
  static const Trusted the;
  return the;
}

long answer(abi::ThreadSlot& slot, long number, const Words& words, ucontext_t& context) {
  switch (number) {
    case SYS_rt_sigreturn: return_from_signal(context);
    case SYS_rt_sigprocmask: return change_mask(words, context.uc_sigmask);
    case SYS_sigaltstack: return change_signal_stack(words, context);
    default: return answer_call(slot, number, words);
  }
}

}  // namespace

void trap_calls() {
  if (tool() != Tool::none) return;  // the tools handle system calls themselves
  ::prctl(kSetUserDispatch, kDispatchOn, trusted().library.begin, trusted().library.bytes, nullptr);
}

bool emulate_call(const siginfo_t& info, void* opaque) {
  if (info.si_code != kUserDispatch) return false;
  const Uncancelled as_by_linux;
  auto& context = *static_cast<ucontext_t*>(opaque);
  auto& registers = context.uc_mcontext.gregs;
  const Words words{registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                    registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  const long number = info.si_syscall;
  abi::ThreadSlot* slot = simulated_slot();
  if (info.si_arch != AUDIT_ARCH_X86_64) {  // int 0x80: numbers of another table
    registers[REG_RAX] = -ENOSYS;
    return true;
  }
  const bool is_real = slot == nullptr || trusted().has(std::uintptr_t(registers[REG_RIP]));
  const long result = is_real ? checked_call(number, words[0], words[1], words[2], words[3], words[4], words[5])
                              : answer(*slot, number, words, context);
  registers[REG_RAX] = result == -1 ? -errno : result;
  return true;
}

}  // namespace rnicsim::clock
