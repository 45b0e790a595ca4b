// SPDX-License-Identifier: Apache-2.0
#include "sim/host/kernel/files/event_descriptors.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim/host/kernel/files/known_descriptors.h"
#include "sim/host/shim/raw_call.h"
#include "sim/host/shim/session.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

int first_of_signals(std::uint32_t signals) {
  int fd = next_known(0);
  while (fd >= 0 && known(fd).value_or(KnownDescriptor{}).signals != signals) fd = next_known(fd + 1);
  return fd;
}

// Replaces the descriptors that show another process's signals by one that shows this process's.
void show_own_signals(std::uint32_t signals) {
  const int first = first_of_signals(signals);
  const auto own = int(raw_call(SYS_eventfd2, 0, raw_call(SYS_fcntl, first, F_GETFL) & O_NONBLOCK));
  if (own < 0 || !send_descriptors({&own, 1})) return;
  call(*simulated_slot(), abi::Call::watch_signals, {signals});
  for (int fd = first; fd >= 0; fd = next_known(fd + 1)) {
    const auto descriptor = known(fd);
    if (!descriptor || descriptor->signals != signals) continue;
    const bool closes = (raw_call(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC) != 0;
    raw_call(SYS_dup3, own, fd, closes ? O_CLOEXEC : 0);
  }
  raw_call(SYS_close, own);
}

std::uint32_t event_behind(int fd) {
  const auto descriptor = simulated_slot() != nullptr ? known(fd) : std::nullopt;
  return descriptor ? descriptor->timer | descriptor->signals : 0;
}

}  // namespace

bool is_of_event(int fd) { return event_behind(fd) != 0; }

void let_go_of_event(int fd) {
  const std::uint32_t number = event_behind(fd);
  if (number == 0) return;
  const bool is_timer = known(fd)->timer != 0;
  forget(fd);
  if (is_known_event(number)) return;
  call(*simulated_slot(), is_timer ? abi::Call::delete_timer : abi::Call::unwatch_signals, {number});
}

void know_event(int fd) {
  abi::ThreadSlot* slot = simulated_slot();
  if (slot == nullptr || known(fd) || !send_descriptors({&fd, 1}) || call(*slot, abi::Call::find_event) != 0) return;
  const auto number = std::uint32_t(slot->value);
  if (slot->argument[1] == 1) {
    remember(fd, {.timer = number, .timer_clock = clockid_t(slot->argument[2])});
  } else {
    const bool is_own = slot->argument[3] != 0;
    remember(fd, {.signals = number});
    if (!is_own) show_own_signals(number);
  }
}

void take_inherited_signals() {
  if (simulated_slot() == nullptr) return;
  for (int fd = next_known(0); fd >= 0; fd = next_known(fd + 1)) {
    const auto signals = known(fd).value_or(KnownDescriptor{}).signals;
    if (signals != 0 && first_of_signals(signals) == fd) show_own_signals(signals);
  }
}

}  // namespace rnicsim::clock
