// SPDX-License-Identifier: Apache-2.0
#include "sim/attached/time/descriptor_waits.h"

#include <poll.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace rnicsim::sim {

using abi::ThreadSlot;

bool DescriptorWaits::wait(Thread& thread, ThreadSlot& slot, std::optional<Duration> until) {
  WaitForDescriptors wait;
  if (const std::uint64_t sent = slot.argument[1]; sent != 0) {
    auto descriptors = thread.process->receive_descriptors(thread.index);
    // Without all copies the wait might never end. The kernel gives out the lowest free number: when the last copy has
    // a number of watched_end or more, all lower numbers are in use.
    const bool refused = descriptors.size() != sent || descriptors.back().get() >= watched_end_;
    if (refused) {
      if (on_refusal) on_refusal(*thread.process);
      return answer(slot, ENOMEM);
    }
    std::uint32_t events[abi::kMaxDescriptors];
    std::memcpy(events, slot.input, sizeof events);
    for (std::size_t i = 0; i < descriptors.size(); ++i)
      wait.watched.push_back({std::move(descriptors[i]), short(events[i])});
  }
  if (is_ready(wait)) return true;
  threads_.wait(thread, ThreadState::awaiting_descriptors, until, std::move(wait));
  return false;
}

void DescriptorWaits::poll() {
  threads_.take_descriptors_changed();
  std::vector<pollfd> watched;
  std::vector<Thread*> owner;
  for (const auto& process : threads_.processes())
    for (Thread& thread : process->threads)
      if (const auto* wait = std::get_if<WaitForDescriptors>(&thread.wait))
        for (const auto& descriptor : wait->watched) {
          watched.push_back({descriptor.fd.get(), descriptor.events, 0});
          owner.push_back(&thread);
        }
  if (watched.empty() || ::poll(watched.data(), nfds_t(watched.size()), 0) <= 0) return;
  for (std::size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0 && owner[i]->state == ThreadState::awaiting_descriptors) threads_.wake(*owner[i]);
}

void DescriptorWaits::await_pipe(Thread& thread, const Descriptor& pipe) {
  threads_.wait(thread, ThreadState::awaiting_descriptors, std::nullopt, WaitForDescriptors{.pipe = &pipe});
}

void DescriptorWaits::pipe_written(Process& process, const Descriptor& pipe) {
  for (Thread& thread : process.threads)
    if (const auto* wait = std::get_if<WaitForDescriptors>(&thread.wait); wait != nullptr && wait->pipe == &pipe)
      threads_.wake(thread);
}

bool DescriptorWaits::is_ready(const WaitForDescriptors& wait) {
  std::vector<pollfd> watched;
  for (const auto& descriptor : wait.watched) watched.push_back({descriptor.fd.get(), descriptor.events, 0});
  return !watched.empty() && ::poll(watched.data(), nfds_t(watched.size()), 0) > 0;
}

}  // namespace rnicsim::sim
