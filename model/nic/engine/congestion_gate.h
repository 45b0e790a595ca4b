// What holds one queue pair back: its congestion control's rate and window, packet by packet. The shell asks when the
// next packet may begin, and tells what was sent and what came.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model/base/fifo.h"
#include "model/base/units.h"
#include "model/roce/congestion.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

class CongestionGate {
 public:
  static constexpr Duration kNever = roce::CongestionControl::kNever;

  // Without a control nothing is held back.
  CongestionGate() = default;
  explicit CongestionGate(std::unique_ptr<roce::CongestionControl> control)
      : control_(std::move(control)), tracks_(control_ && control_->wants_acknowledgements()) {}

  explicit operator bool() const { return control_ != nullptr; }

  // When the next packet may begin, or when to ask again; kNever: not before an input. `windowed`: the window counts
  // for it (requests, not READ responses).
  Duration not_before(Duration now, bool windowed);
  // A packet has begun: so many bytes on the wire.
  void sent(std::uint32_t bytes, Duration now);

  // --- Of requests, for the window and round-trip times. `end`: one past the packet's PSNs.
  void request_sent(roce::Psn end, std::uint32_t bytes);
  void request_left(roce::Psn end, Duration now);         // its last bit left the port
  void acknowledged(roce::Psn oldest, Duration now);      // all before that
  void rewound() { unanswered_.clear(), in_flight_ = 0; }  // all are sent again

  void notified(Duration now) { control_->notified(now); }
  void lost(Duration now) { control_->lost(now); }
  void timed_out(Duration now) { control_->timed_out(now); }

 private:
  struct Sent {
    roce::Psn end;
    std::uint32_t bytes = 0;
    Duration left{};                     // 0: it has not
  };

  void settle(double rate, Duration now);

  std::unique_ptr<roce::CongestionControl> control_;
  bool tracks_ = false;
  // At `rate_`, the packets that were sent have had their time on the line at `paid_at_`.
  double rate_ = roce::Allowance::kUnlimited;
  Duration paid_at_{};
  Fifo<Sent> unanswered_;
  std::uint64_t in_flight_ = 0;
};

}  // namespace rnicsim::nic
