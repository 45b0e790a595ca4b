// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/native/processors.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace rnicsim::sim {
namespace {

constexpr std::chrono::milliseconds kStay{10};

int count(const abi::ProcessorSet& set) {
  int count = 0;
  for (const std::uint64_t bits : set.bits) count += std::popcount(bits);
  return count;
}

// May be refused by a container or a tool; the thread then stays on its processors.
void bind(pid_t thread, const abi::ProcessorSet& set) {
  ::syscall(SYS_sched_setaffinity, thread, sizeof set.bits, set.bits);
}

// To inspect a thread that spins on the same processor, this process must preempt it. With a short time slice it may
// do so at once (Linux 6.12; earlier kernels let a woken thread preempt anyway). Programs do not inherit the slice.
void look_promptly() {
  struct {
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline, period;
  } attributes{
      sizeof attributes, SCHED_OTHER, SCHED_FLAG_RESET_ON_FORK, ::getpriority(PRIO_PROCESS, 0), 0, 100'000, 0, 0};
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

abi::ProcessorSet own_processors() {
  abi::ProcessorSet set;
  if (::syscall(SYS_sched_getaffinity, 0, sizeof set.bits, set.bits) < 0) std::ranges::fill(set.bits, ~0ull);
  return set;
}

void Companionship::weigh(int gain) {
  gain_ = std::clamp(gain_ + gain, -kDecided, kDecided);
  if (gain_ == kDecided) together_ = true;
  if (gain_ == -kDecided) together_ = false;
}

Processors::Processors(Contention contention) : several_(count(all_) > 1), contention_(std::move(contention)) {
  look_promptly();
}

void Processors::place(pid_t thread) {
  if (several_ && placed_.insert(thread).second) bind(thread, together() ? home_ : all_);
}

void Processors::place_within(pid_t thread, const abi::ProcessorSet& set) {
  if (!several_) return;
  bind(thread, set);
  placed_.erase(thread);
}

void Processors::turn_began(bool of_another, std::chrono::steady_clock::time_point now) {
  if (!several_) return;
  const bool were_together = together();
  const auto later = now - std::exchange(turn_began_, now);
  if (of_another)
    companionship_.turn_of_another();
  else
    companionship_.turn_of_the_same(std::chrono::duration_cast<std::chrono::microseconds>(later));
  if (were_together)
    contention_.shared(now);
  else
    contention_.apart(now);
  follow(were_together);
}

void Processors::looked() {
  if (!several_) return;
  const bool were_together = together();
  companionship_.looked();
  follow(were_together);
}

void Processors::follow(bool were_together) {
  if (were_together == together()) return;
  placed_.clear();
  if (together())
    settle();
  else
    bind(0, all_);
}

void Processors::settle() {
  const auto processor = std::uint32_t(::sched_getcpu());
  if (processor / 64 >= std::size(home_.bits)) return;
  abi::ProcessorSet here;
  here.bits[processor / 64] = 1ull << processor % 64;
  if (!std::ranges::equal(here.bits, home_.bits)) placed_.clear();
  home_ = here;
  bind(0, home_);
  floats_ = false;
  settled_ = std::chrono::steady_clock::now();
}

void Processors::before_sleep() {
  if (apart() || !several_ || floats_ || std::chrono::steady_clock::now() - settled_ < kStay) return;
  bind(0, all_);
  floats_ = true;
}

void Processors::after_sleep() {
  if (std::exchange(floats_, false) && together()) settle();
}

}  // namespace rnicsim::sim
