// The gate in front of one queue pair's packets: the rate and the window of its congestion control. The engine shell
// asks when the next packet may begin, and tells the gate of sent and received packets.
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

// The state of a control, and the window that the control allows.
struct ControlView {
  roce::ControlState state;
  std::uint64_t window = roce::Allowance::kNoWindow;  // bytes
  bool operator==(const ControlView&) const = default;
};

class CongestionGate {
 public:
  static constexpr Duration kNever = roce::CongestionControl::kNever;

  // Without a control nothing is held back.
  CongestionGate() = default;
  // `ack_every`: how often an acknowledgement is asked for, in packets, if the control wants them.
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

  // When the next packet may begin, or when to ask again; kNever: not before an input. `same`: the unanswered packets
  // of its kind (requests, or READ responses); nullptr: the window does not count for the packet. `other`: bytes that
  // are unanswered beside these.
  Duration not_before(Duration now, const UnansweredPackets* same, std::uint64_t other = 0);
  // A packet has begun: so many bytes on the wire.
  void sent(std::uint32_t bytes, Duration now);

  // --- Of requests, for the window and round-trip times. `end`: one past the packet's PSNs.
  // `asks`: the packet asks for an acknowledgement anyway. True: the packet is to ask for one.
  bool request_sent(roce::Psn end, std::uint32_t bytes, bool asks, Duration now);
  // Whether a packet of so many bytes is to ask, which `same` does not have yet.
  bool is_to_ask(const UnansweredPackets& same, std::uint32_t bytes, std::uint64_t other, Duration now);
  void request_left(roce::Psn end, Duration now) {        // its last bit left the port
    if (tracks_) requests_.left(end, now);
  }
  const UnansweredPackets& requests() const { return requests_; }
  // The telemetry of an acknowledgement. Call this function before acknowledged(), which tells the control.
  void take_telemetry(const Telemetry& block, Duration now);
  // All before that; `marked`: with an ECN echo.
  void acknowledged(roce::Psn oldest, bool marked, Duration now);
  void rewound() { requests_.clear(); }                   // all are sent again
  // The same of packets that somebody else keeps; `in_flight`: bytes that are still unanswered, of all.
  void answered(const UnansweredPackets::Answered& packets, std::uint64_t in_flight, bool marked, Duration now);

  void notified(Duration now) { control_->notified(now); }
  void lost(Duration now) { control_->lost(now); }
  void timed_out(Duration now) { control_->timed_out(now); }

  // For traces: the view at `now`; nullopt: the last call returned the same view. Nothing else of the gate changes.
  std::optional<ControlView> new_view(Duration now);

 private:
  void settle(double rate, Duration now);

  std::unique_ptr<roce::CongestionControl> control_;
  bool tracks_ = false;
  std::uint32_t ack_every_ = 1;
  bool marked_ = false;                    // an ECN echo came that the control was not told of
  bool wants_delay_ = false;
  Duration endpoint_{};                    // a delay inside the receiver that the control was not told of
  std::unique_ptr<TelemetryReader> telemetry_;  // nullptr: the control wants none
  std::span<const HopChange> hops_;        // of it, that the control was not told of
  // At `rate_`, the packets that were sent have had their time on the line at `paid_at_`.
  double rate_ = roce::Allowance::kUnlimited;
  Duration paid_at_{};
  UnansweredPackets requests_;
  std::unique_ptr<ControlView> last_view_;  // nullptr: new_view() was not called yet
};

}  // namespace rnicsim::nic
