// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/processes/children.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "sim/host/shim/next.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

RNICSIM_NEXT(wait4);

namespace rnicsim::clock {
namespace {

// Signal handlers search the table: an entry never moves, and a free entry is used for the next child.
class Children {
 public:
  void remember(const Child& child) {
    if (Child* free = find(0)) {
      *free = child;
      return;
    }
    Block* last = &first_;
    while (last->next != nullptr) last = last->next;
    auto* more = new Block;
    more->entries.front() = child;
    last->next = more;
  }
  void forget(pid_t virtual_pid) {
    if (Child* child = find(virtual_pid)) *child = {};
  }
  Child* find(pid_t virtual_pid) {
    return find_if([&](const Child& child) { return child.virtual_pid == virtual_pid; });
  }
  Child* find_real(pid_t real_pid) {
    return find_if([&](const Child& child) { return child.real_pid == real_pid; });
  }
  Child* find_outside() {
    return find_if([](const Child& child) { return child.outside; });
  }
  // In a forked child: forgets the parent's children.
  void clear() {
    for (Block* block = &first_; block != nullptr; block = block->next) block->entries = {};
  }

 private:
  struct Block {
    std::array<Child, 256> entries;
    std::atomic<Block*> next{nullptr};
  };
  template <class Wanted>
  Child* find_if(Wanted wanted) {
    for (Block* block = &first_; block != nullptr; block = block->next)
      if (const auto found = std::ranges::find_if(block->entries, wanted); found != block->entries.end())
        return &*found;
    return nullptr;
  }
  Block first_;
};
constinit Children children;

}  // namespace

pid_t announce(abi::Call code, pid_t real_pid) {
  abi::ThreadSlot* slot = own_slot();
  if (slot == nullptr) return real_pid;
  const int error = call(*slot, code, {std::uint64_t(real_pid)});
  if (!simulated()) return real_pid;
  if (error == EAGAIN) {
    raw_call(SYS_kill, real_pid, SIGKILL);
    next_wait4(real_pid, nullptr, 0, nullptr);
    errno = EAGAIN;
    return -1;
  }
  const pid_t seen = error == 0 ? pid_t(slot->value) : real_pid;
  children.remember({seen, real_pid, error != 0});
  return seen;
}

const Child* find_child(pid_t virtual_pid) { return children.find(virtual_pid); }
const Child* find_child_outside() { return children.find_outside(); }
const Child* find_real_child(pid_t real_pid) { return children.find_real(real_pid); }
void forget_child(pid_t virtual_pid) { children.forget(virtual_pid); }
void forget_children() { children.clear(); }

}  // namespace rnicsim::clock
