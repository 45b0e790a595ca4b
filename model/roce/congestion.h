// SPDX-License-Identifier: Apache-2.0
// Congestion control of one queue pair: the rate at which its requests and the packets of its READ responses may leave,
// and the bytes that may be unacknowledged. Acknowledgements are never delayed.
//
// A control gets events (inputs below) and returns allowance(): a rate and a window. The engine shell
// (model/nic/engine/congestion_gate.h) paces the packets. A control has no clock and no timers: it computes its state
// from the time that has passed since the last call. Calls come in the order of time.
//
// A control is a source file in model/roce/congestion/ that registers itself (model/base/policy.h) with parameters of
// its own (model/base/policy_params.h). docs/congestion.md describes each.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/telemetry.h"
#include "model/base/units.h"

namespace rnicsim {
class PolicyParams;
}  // namespace rnicsim

namespace rnicsim::roce {

// Limits for a queue pair's packets.
struct Allowance {
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t kNoWindow = std::numeric_limits<std::uint64_t>::max();

  double rate = kUnlimited;          // bits a second on the wire: headers, FCS, preamble and gap count
  std::uint64_t window = kNoWindow;  // bytes on the wire that are sent and not acknowledged
};

// An acknowledgement of at least one new packet.
struct AckFacts {
  Duration rtt{};               // since the newest acknowledged packet left the port; 0: not known
  std::uint64_t bytes = 0;      // on the wire, of the acknowledged packets
  std::uint64_t in_flight = 0;  // bytes that are still unacknowledged
  // Time from the arrival of the newest acknowledged packet at the receiver until the acknowledgement left the
  // receiver's engine; 0: not known.
  Duration endpoint{};
  bool marked = false;  // ECN echo: a packet since the last acknowledgement had a mark
  // Telemetry: changes of the ports on the path, in the order of the path, between two packets. Valid during the call
  // only. Empty: no telemetry came, or there is no earlier block to compare with.
  std::span<const HopChange> hops{};
};

// State of a control, for traces. Observers may ask for it at any time, so state() must not change later results of
// allowance().
struct ControlState {
  double rate = Allowance::kUnlimited;    // bits a second
  double target = Allowance::kUnlimited;  // bits a second that the rate rises to
  double alpha = 0;                       // estimate of congestion, 0 .. 1
  bool operator==(const ControlState&) const = default;
};

// The longest round trip through the empty fabric with which one queue pair can still use the whole line.
struct RoundTripLimit {
  Duration most{};
  const char* parameters = "";  // the control's parameters that determine it, for messages: "base_rtt"
};

class CongestionControl {
 public:
  static constexpr Duration kNever{std::numeric_limits<std::int64_t>::max()};

  // `params`: the parameters that were registered with the name; nullptr for a control without parameters. `line`: the
  // port's rate. Returns nullptr for a control that never limits.
  using Make = std::unique_ptr<CongestionControl> (*)(const PolicyParams* params, BitRate line);

  virtual ~CongestionControl() = default;

  // The state at `now`.
  virtual Allowance allowance(Duration now) = 0;
  // The next time at which allowance() changes without an input; kNever: at no time. Call allowance() first.
  virtual Duration next_change() const { return kNever; }
  virtual ControlState state(Duration /*now*/) { return {}; }

  // True: the control limits nothing and has no history, as a new control. Until the next CNP it needs no input and may
  // be destroyed, so a queue pair without congestion costs nothing.
  virtual bool at_rest() const { return false; }

  // True: acknowledged() needs round-trip times. The queue pair then requests more acknowledgements than the protocol
  // needs.
  virtual bool wants_acknowledgements() const { return false; }
  // True: the control slows down at CNPs, that is, only if marks or losses cause CNPs.
  virtual bool wants_cnps() const { return false; }
  // True: acknowledged() needs marks.
  virtual bool wants_marks() const { return false; }
  // True: acknowledged() needs telemetry. Requests then carry telemetry, which makes them longer on the line.
  virtual bool wants_telemetry() const { return false; }
  // True: acknowledged() needs the delay inside the receiver. Requests and acknowledgements are then 8 bytes longer on
  // the line. A control that wants telemetry does not get the delay.
  virtual bool wants_endpoint_delay() const { return false; }
  // nullopt: the parameters fit any round trip.
  virtual std::optional<RoundTripLimit> round_trip_limit() const { return std::nullopt; }

  // --- Inputs.
  virtual void sent(std::uint32_t /*bytes on the wire*/, Duration /*now*/) {}
  virtual void acknowledged(const AckFacts&, Duration /*now*/) {}
  virtual void notified(Duration /*now*/) {}   // a CNP (IBTA annex A17.9.3)
  virtual void lost(Duration /*now*/) {}       // a NAK reported a gap in the sequence of PSNs
  virtual void timed_out(Duration /*now*/) {}  // the ACK timer expired
};

}  // namespace rnicsim::roce
