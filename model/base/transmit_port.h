// A port's way out: a queue of frames for each priority, and one of control frames ahead of all. Frames leave one after
// another, in the order of their queue; of several queues the highest priority sends, or the one that a discipline
// chooses (queue_discipline.h). What leaves next is decided as late as it can matter: until its first bit is out, a
// pause stops it and another frame may go first.
//
// There is one event a departure, and none else: a frame is put in ahead of the time from which on it may leave, and a
// pause ends by itself.
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
#include "model/base/priority_map.h"
#include "model/base/queue_discipline.h"
#include "model/base/stats.h"

namespace rnicsim {

class TransmitPort {
 public:
  static constexpr std::uint8_t kControl = kPriorities;  // of control frames, which no pause stops
  static constexpr ByteCount kUnlimited{std::numeric_limits<std::uint64_t>::max()};

  struct Departure {
    Frame frame;
    Duration wanted;           // its first bit could leave, but for others and pauses
    Duration began;            // it left
    Duration took;             // until its last bit, which leaves now
    std::uint32_t origin = 0;
    std::uint8_t priority = 0;
    std::uint64_t behind = 0;  // bytes that waited as its first bit left
    Duration waited() const { return began - wanted; }
  };

  // `due` is called as a last bit leaves: while (port.pop_due(departure)) ...
  // Frames of the priorities of `lossless`, a bit each, are not counted against the capacity. Without a discipline the
  // highest priority goes first.
  explicit TransmitPort(Alarm::Action due, ByteCount capacity = kUnlimited, std::uint8_t lossless = 0,
                        std::unique_ptr<QueueDiscipline> discipline = nullptr)
      : capacity_(capacity.bytes), lossless_(lossless), discipline_(std::move(discipline)), alarm_(std::move(due)) {}

  // Of the capacity, beside what waits and leaves.
  bool has_room(const Frame& frame, std::uint8_t priority) const {
    return !counts(priority) || counted_bytes_ + frame.size() <= capacity_;
  }
  // There is room. Its first bit may leave at `from`, absolute; of a frame that is cut through, that may be past. It
  // takes `took` on the line, and does not end before the present. `origin` comes out with it.
  void send(Frame&& frame, Duration from, Duration took, std::uint8_t priority, std::uint32_t origin = 0);
  bool pop_due(Departure& departure) {
    popping_ = next_ != kNone && next_ends_ <= now();
    if (popping_)
      pop(departure);
    else if (next_ != kNone)
      alarm_.arm(next_ends_);
    return popping_;
  }

  // A frame whose first bit is out leaves all the same. A later call takes the place of an earlier one; one for the
  // present time ends the pause.
  void pause(std::uint8_t priority, Duration until);

  // Takes out the frames that wait of a priority, the newest first. A frame whose first bit is out leaves all the same.
  struct Dropped {
    Frame frame;
    std::uint32_t origin = 0;
  };
  std::vector<Dropped> drop_waiting(std::uint8_t priority);

  // The time from which the first frame of a priority was ready, whatever others and pauses do. nullopt: no frame
  // waits.
  std::optional<Duration> waits_since(std::uint8_t priority) const {
    return queues_[priority].empty() ? std::nullopt : std::optional(queues_[priority].front().from);
  }
  // Frames of a priority that wait or leave, each with its origin.
  template <class Visit>
  void for_each(std::uint8_t priority, Visit&& visit) const {
    for (const auto& waiting : queues_[priority]) visit(waiting.frame, waiting.origin);
  }
  std::size_t frames() const { return frames_; }  // that wait or leave
  Counter bytes() const { return bytes_; }
  std::uint64_t bytes(std::uint8_t priority) const { return bytes_of_[priority]; }
  Counter most_bytes() const { return most_bytes_; }
  Counter most_bytes(std::uint8_t priority) const { return most_bytes_of_[priority]; }
  Counter paused_ps() const;                      // of all priorities together
  Counter paused_ps(std::uint8_t priority) const { return paused_ps_of_[priority] + pause_so_far(priority); }

  void clear();                                   // forgets everything but what it counted (device reset)

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
  // Of the queue's first frame.
  Duration may_begin(std::size_t queue) const { return std::max(queues_[queue].front().from, not_before_[queue]); }
  void pop(Departure& departure);
  void forget(std::uint8_t queue, const Frame& frame);  // in what is counted
  void choose();
  std::uint8_t choose_by_discipline(Duration begins);
  void choose_anew();
  Counter pause_so_far(std::size_t priority) const;

  const std::uint64_t capacity_;
  const std::uint8_t lossless_;
  const std::unique_ptr<QueueDiscipline> discipline_;
  std::uint8_t next_ = kNone;                     // the queue of the frame that leaves next, or is leaving
  bool popping_ = false;                          // pop_due() will arm the alarm
  std::uint16_t filled_ = 0;                      // a bit a queue that is not empty
  Duration next_begins_;
  Duration next_ends_;
  Duration free_;                                 // the last frame's last bit was out
  std::uint64_t bytes_later_ = 0;                 // that came since the first bit of the frame that is leaving
  std::size_t frames_ = 0;
  Counter bytes_ = 0;
  std::uint64_t counted_bytes_ = 0;               // against the capacity
  Counter most_bytes_ = 0;
  std::array<std::uint64_t, kQueues> bytes_of_{};  // by queue
  std::array<Counter, kQueues> most_bytes_of_{};
  Alarm alarm_;
  std::array<Fifo<Waiting>, kQueues> queues_;
  std::array<Duration, kQueues> not_before_{};    // by queue: when its pause ends
  std::array<Duration, kPriorities> paused_since_{};
  std::array<Counter, kPriorities> paused_ps_of_{};  // of pauses that ended, or were given anew
};

}  // namespace rnicsim
