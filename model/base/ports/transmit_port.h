// SPDX-License-Identifier: Apache-2.0
// The transmit side of a port: one queue of frames for each priority, and one of control frames, which go first. Frames
// of a queue leave in order. Among queues the highest priority sends, or the queue that a discipline chooses
// (queue_discipline.h). The choice of the next frame is final when its first bit is sent: until then a pause stops the
// frame, and another frame may take its place.
//
// Each departure costs one event. Frames are queued ahead of the time from which they may leave, and the end of a pause
// needs no event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/agenda.h"
#include "model/base/fifo.h"
#include "model/base/frame.h"
#include "model/base/kernel.h"
#include "model/base/ports/priority_map.h"
#include "model/base/ports/queue_discipline.h"
#include "model/base/stats.h"

namespace rnicsim {

class TransmitPort {
 public:
  static constexpr std::uint8_t kControl = kPriorities;  // the queue of control frames, which no pause stops
  static constexpr ByteCount kUnlimited{std::numeric_limits<std::uint64_t>::max()};

  struct Departure {
    Frame frame;
    Duration wanted;  // when the first bit could have left without other frames and pauses
    Duration began;   // when the first bit left
    Duration took;    // time on the line; the last bit leaves now
    std::uint32_t origin = 0;
    std::uint8_t priority = 0;
    std::uint64_t behind = 0;  // bytes waiting when the frame's first bit left
    Duration waited() const { return began - wanted; }
  };

  // `due` is called when a last bit leaves: while (port.pop_due(departure)) ... `capacity` limits the bytes that wait
  // or leave; frames of the priorities in `lossless`, a bit each, do not count. Without a discipline the highest
  // priority goes first.
  explicit TransmitPort(Alarm::Action due, ByteCount capacity = kUnlimited, std::uint8_t lossless = 0,
                        std::unique_ptr<QueueDiscipline> discipline = nullptr)
      : capacity_(capacity.bytes), lossless_(lossless), discipline_(std::move(discipline)), alarm_(std::move(due)) {}

  // True if the frame fits into the capacity beside the frames that wait or leave.
  bool has_room(const Frame& frame, std::uint8_t priority) const {
    return !counts(priority) || counted_bytes_ + frame.size() <= capacity_;
  }
  // Queues a frame that has room. `from`: absolute time from which its first bit may leave; may be in the past for a
  // frame that is cut through. `took`: time on the line; the last bit does not leave before now(). `origin` is returned
  // with the departure.
  void send(Frame&& frame, Duration from, Duration took, std::uint8_t priority, std::uint32_t origin = 0);
  bool pop_due(Departure& departure) {
    popping_ = next_ != kNone && next_ends_ <= now();
    if (popping_)
      pop(departure);
    else if (next_ != kNone)
      alarm_.arm(next_ends_);
    return popping_;
  }

  // Stops a priority until `until`. A frame whose first bit is sent leaves all the same. A later call replaces an
  // earlier one; `until` = now() ends the pause.
  void pause(std::uint8_t priority, Duration until);

  // Removes the waiting frames of a priority, the newest first. A frame whose first bit is sent leaves all the same.
  struct Dropped {
    Frame frame;
    std::uint32_t origin = 0;
  };
  std::vector<Dropped> drop_waiting(std::uint8_t priority);

  // Time from which the first frame of the priority was ready to leave, ignoring other frames and pauses. nullopt: no
  // frame waits.
  std::optional<Duration> waits_since(std::uint8_t priority) const {
    return queues_[priority].empty() ? std::nullopt : std::optional(queues_[priority].front().from);
  }
  // Visits the frames of a priority that wait or leave, each with its origin.
  template <class Visit>
  void for_each(std::uint8_t priority, Visit&& visit) const {
    for (const auto& waiting : queues_[priority]) visit(waiting.frame, waiting.origin);
  }
  std::size_t frames() const { return frames_; }  // waiting or leaving
  Counter bytes() const { return bytes_; }
  std::uint64_t bytes(std::uint8_t priority) const { return bytes_of_[priority]; }
  Counter most_bytes() const { return most_bytes_; }
  Counter most_bytes(std::uint8_t priority) const { return most_bytes_of_[priority]; }
  // Priorities with a frame so far, a bit each.
  std::uint32_t used_priorities() const {
    std::uint32_t bits = 0;
    for (std::size_t priority = 0; priority < kPriorities; ++priority)
      if (most_bytes_of_[priority] != 0) bits |= 1u << priority;
    return bits;
  }
  Counter paused_ps() const;  // sum over all priorities
  Counter paused_ps(std::uint8_t priority) const { return paused_ps_of_[priority] + pause_so_far(priority); }

  void clear();  // drops all frames and pauses, keeps the counts (device reset)

 private:
  static constexpr std::size_t kQueues = kPriorities + 1;
  static constexpr std::uint8_t kNone = kQueues;
  struct Waiting {
    Frame frame;
    Duration from;
    Duration took;
    std::uint32_t origin = 0;
  };

  bool counts(std::uint8_t priority) const { return priority != kControl && (lossless_ >> priority & 1) == 0; }
  // Earliest time at which the queue's first frame may begin.
  Duration may_begin(std::size_t queue) const { return std::max(queues_[queue].front().from, not_before_[queue]); }
  void pop(Departure& departure);
  void forget(std::uint8_t queue, const Frame& frame);  // removes the frame from the byte and frame counts
  void choose();
  std::uint8_t choose_by_discipline(Duration begins);
  void choose_anew();
  Counter pause_so_far(std::size_t priority) const;

  const std::uint64_t capacity_;
  const std::uint8_t lossless_;
  const std::unique_ptr<QueueDiscipline> discipline_;
  std::uint8_t next_ = kNone;  // the queue of the frame that leaves next, or is leaving
  bool popping_ = false;       // pop_due() will arm the alarm
  std::uint16_t filled_ = 0;   // a bit for each queue with frames
  Duration next_begins_;
  Duration next_ends_;
  Duration free_;                  // when the last bit of the last frame left
  std::uint64_t bytes_later_ = 0;  // bytes queued since the first bit of the leaving frame left
  std::size_t frames_ = 0;
  Counter bytes_ = 0;
  std::uint64_t counted_bytes_ = 0;  // bytes that count against the capacity
  Counter most_bytes_ = 0;
  std::array<std::uint64_t, kQueues> bytes_of_{};  // by queue
  std::array<Counter, kQueues> most_bytes_of_{};
  Alarm alarm_;
  std::array<Fifo<Waiting>, kQueues> queues_;
  std::array<Duration, kQueues> not_before_{};  // by queue: end of its pause
  std::array<Duration, kPriorities> paused_since_{};
  std::array<Counter, kPriorities> paused_ps_of_{};  // pauses that ended or were replaced
};

}  // namespace rnicsim
