// SPDX-License-Identifier: Apache-2.0
// The gate for one queue pair's packets: rate and window of its congestion control. The engine shell asks when the next
// packet may begin, and reports sent and received packets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "model/base/telemetry.h"
#include "model/base/units.h"
#include "model/nic/engine/unanswered_packets.h"
#include "model/roce/congestion.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

// State of a control, and its window.
struct ControlView {
  roce::ControlState state;
  std::uint64_t window = roce::Allowance::kNoWindow;  // bytes
  bool operator==(const ControlView&) const = default;
};

class CongestionGate {
 public:
  static constexpr Duration kNever = roce::CongestionControl::kNever;

  // Without a control no packet is delayed.
  CongestionGate() = default;
  // `ack_every`: packets between acknowledgement requests, if the control wants acknowledgements.
  CongestionGate(std::unique_ptr<roce::CongestionControl> control, std::uint32_t ack_every)
      : control_(std::move(control)),
        tracks_(control_ && control_->wants_acknowledgements()),
        ack_every_(ack_every),
        wants_delay_(control_ && control_->wants_endpoint_delay()),
        telemetry_(control_ && control_->wants_telemetry() ? std::make_unique<TelemetryReader>() : nullptr) {}

  explicit operator bool() const { return control_ != nullptr; }
  bool at_rest() const { return control_ && control_->at_rest(); }
  bool wants_marks() const { return control_ && control_->wants_marks(); }
  // Telemetry that requests carry for the control; nullopt: requests carry none.
  std::optional<Telemetry> carried() const;

  // Time at which the next packet may begin, or at which to ask again; kNever: only after an input. `same`: the
  // unacknowledged packets of its kind (requests, or READ responses); nullptr: the window does not apply to the packet.
  // `other`: further unacknowledged bytes.
  Duration not_before(Duration now, const UnansweredPackets* same, std::uint64_t other = 0);
  // A packet of `bytes` bytes on the wire has begun.
  void sent(std::uint32_t bytes, Duration now);

  // --- Requests, for the window and for round-trip times. `end`: one past the packet's PSNs.
  // `asks`: the packet requests an acknowledgement anyway. True: the packet must request one.
  bool request_sent(roce::Psn end, std::uint32_t bytes, bool asks, Duration now);
  // True if a packet of `bytes` bytes, not yet in `same`, must request an acknowledgement.
  bool is_to_ask(const UnansweredPackets& same, std::uint32_t bytes, std::uint64_t other, Duration now);
  void request_left(roce::Psn end, Duration now) {  // the last bit left the port
    if (tracks_) requests_.left(end, now);
  }
  const UnansweredPackets& requests() const { return requests_; }
  // Takes the telemetry of an acknowledgement. Call before acknowledged(), which passes it to the control.
  void take_telemetry(const Telemetry& block, Duration now);
  // Requests before `oldest` are acknowledged; `marked`: with an ECN echo.
  void acknowledged(roce::Psn oldest, bool marked, Duration now);
  void rewound() { requests_.clear(); }  // all requests are resent
  // The same for packets that the caller tracks; `in_flight`: all bytes that are still unacknowledged.
  void answered(const UnansweredPackets::Answered& packets, std::uint64_t in_flight, bool marked, Duration now);

  void notified(Duration now) { control_for_input().notified(now); }
  void lost(Duration now) { control_for_input().lost(now); }
  void timed_out(Duration now) { control_for_input().timed_out(now); }

  // For traces: the view at `now`; nullopt: unchanged since the last call. Has no other effect.
  std::optional<ControlView> new_view(Duration now);

 private:
  void settle(double rate, Duration now);
  const roce::Allowance& allowed(Duration now);
  // The control, for an input, which may change its allowance.
  roce::CongestionControl& control_for_input() {
    allowed_until_ = {};
    return *control_;
  }

  std::unique_ptr<roce::CongestionControl> control_;
  bool tracks_ = false;
  std::uint32_t ack_every_ = 1;
  bool marked_ = false;  // an ECN echo that was not yet passed to the control
  bool wants_delay_ = false;
  Duration endpoint_{};                         // delay inside the receiver that was not yet passed to the control
  std::unique_ptr<TelemetryReader> telemetry_;  // nullptr: the control wants no telemetry
  std::span<const HopChange> hops_;             // changes of ports that were not yet passed to the control
  // Time at which the packets sent so far are paid for at `rate_`.
  double rate_ = roce::Allowance::kUnlimited;
  Duration paid_at_{};
  // The control's last answer, and the time until which it holds without an input: a packet needs it several times.
  roce::Allowance allowed_;
  Duration allowed_until_{};
  UnansweredPackets requests_;
  std::unique_ptr<ControlView> last_view_;  // nullptr: new_view() was never called
};

}  // namespace rnicsim::nic
