// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/own_counter.h"

#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include "sim/host/shim/counter/counter_trap.h"

namespace rnicsim::sim {
namespace {

struct sigaction other_faults;

// The instruction is executed again: either the thread may read the counter from now on, or the fault comes again, for
// the handler of other faults. Another process's signal has no such instruction, and is sent again.
void on_fault(int, siginfo_t* info, void* context) {
  const auto address = std::uintptr_t(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  const bool is_sent = info->si_code <= 0;
  if (!is_sent && clock::counter_read_at(address) != clock::CounterRead::none) return clock::untrap_counter();
  ::sigaction(SIGSEGV, &other_faults, nullptr);
  if (is_sent) ::raise(SIGSEGV);
}

// valgrind reads the counter itself, and would die of the fault.
bool under_valgrind() {
  const char* preloaded = ::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::string_view(preloaded).find("vgpreload") != std::string_view::npos;
}

void prepare_for_traps() {
  clock::leave_vdso(::getauxval(AT_SYSINFO_EHDR));
  struct sigaction fault {};
  fault.sa_sigaction = on_fault;
  fault.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &fault, &other_faults);
  // The fault would kill the loader of the image that a child executes.
  ::pthread_atfork(nullptr, nullptr, clock::untrap_counter);
}

}  // namespace

OwnCounter::OwnCounter() {
  static std::once_flag prepared;
  if (under_valgrind()) return;
  std::call_once(prepared, prepare_for_traps);
  is_refused_ = !clock::trap_counter();
}
OwnCounter::~OwnCounter() { clock::untrap_counter(); }

}  // namespace rnicsim::sim
