// SPDX-License-Identifier: Apache-2.0
#include "model/fabric/pause_deadlock.h"

#include <algorithm>

#include "model/base/kernel.h"
#include "model/fabric/switch.h"

namespace rnicsim::fabric {

void PauseDeadlock::add(Switch& box) {
  boxes_.push_back(&box);
  box.pause_sent.subscribe([this](const Frame&) { arm(); });
}

void PauseDeadlock::connect(End one, End other) {
  cables_[one] = other;
  cables_[other] = one;
}

void PauseDeadlock::arm() {
  if (armed_ || !found_.empty() || boxes_.size() < 2) return;
  armed_ = true;
  alarm_.arm(now() + kLook);
}

// Checks for a deadlock; schedules the next check while pauses are in effect.
void PauseDeadlock::look() {
  armed_ = false;
  const auto buffers = stopped();
  auto locked_now = locked(buffers);
  if (locked_now != before_) {
    before_ = std::move(locked_now);
    before_since_ = now();
  } else if (!before_.empty() && !watchdog_may_act()) {
    found_ = text(buffers, before_);
    return;
  }
  if (!buffers.empty()) arm();
}

// True: a watchdog may still drop or forward waiting frames, and so break the deadlock.
bool PauseDeadlock::watchdog_may_act() const {
  return std::ranges::any_of(before_, [this](const Buffer& name) {
    const auto within = boxes_[std::get<0>(name)]->watchdog().acts_within();
    return within != Duration{} && now() < before_since_ + within + 2 * kLook;
  });
}

PauseDeadlock::Buffers PauseDeadlock::stopped() const {
  Buffers buffers;
  for (std::uint32_t box = 0; box < boxes_.size(); ++box)
    for (const auto& buffer : boxes_[box]->stopped_buffers())
      buffers[{box, buffer.port, buffer.priority}] = {buffer, {}};
  if (buffers.empty()) return buffers;
  for (std::uint32_t box = 0; box < boxes_.size(); ++box)
    for (const auto& bytes : boxes_[box]->paused_bytes()) {
      const auto holder = buffers.find({box, bytes.from, bytes.priority});
      const auto cable = cables_.find({box, bytes.to});
      if (holder == buffers.end() || cable == cables_.end()) continue;
      const auto [peer, port] = cable->second;
      holder->second.waits.push_back({{peer, port, bytes.priority}, bytes.bytes});
    }
  return buffers;
}

// Largest set of buffers in which each holds more than XON because of pauses of the set. Starts with all buffers and
// removes those that can drain to XON without the others, until none can.
std::set<PauseDeadlock::Buffer> PauseDeadlock::locked(const Buffers& buffers) {
  std::set<Buffer> set;
  for (const auto& [name, held] : buffers) set.insert(name);
  const auto is_locked = [&](const Buffer& name) {
    const auto& held = buffers.at(name);
    std::uint64_t bytes = 0;
    for (const auto& [awaited, waiting] : held.waits)
      if (set.contains(awaited)) bytes += waiting;
    return bytes > held.buffer.xon;
  };
  while (std::erase_if(set, [&](const Buffer& name) { return !is_locked(name); }) != 0) {}
  return set;
}

std::string PauseDeadlock::text(const Buffers& buffers, const std::set<Buffer>& locked) const {
  std::string text =
      "PFC deadlock: each of these buffers waits for the end of the next buffer's pauses, and no pause can end";
  for (const auto& name : locked) {
    const auto& [box, port, priority] = name;
    const auto& held = buffers.at(name);
    text += "\n  " + name_({box, port}) + ", priority " + std::to_string(priority) + ": holds " +
            std::to_string(held.buffer.bytes) + " B, and has its sender pause since " + to_string(held.buffer.since) +
            "; waits for";
    std::string separator = " ";
    for (const auto& [awaited, bytes] : held.waits) {
      if (!locked.contains(awaited)) continue;
      text += separator + name_({std::get<0>(awaited), std::get<1>(awaited)});
      separator = ", ";
    }
  }
  return text;
}

}  // namespace rnicsim::fabric
