// Congestion control of one queue pair: how fast its requests and the packets of its READ responses may leave, and how
// many bytes may be unanswered. Acknowledgements are never held back.
//
// A control is told of what happens (inputs below) and answers allowance(): a rate and a window. The engine shell
// (model/nic/engine/congestion_gate.h) does the pacing. A control has no clock and no timers: it computes its state
// from the time that has passed since the last call. Calls come in the order of time.
//
// A control is a source of its own in model/roce/congestion/ that registers itself (model/base/policy.h) with
// parameters of its own (model/base/policy_params.h). docs/congestion.md tells what each does.
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

// What a queue pair may send.
struct Allowance {
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  static constexpr std::uint64_t kNoWindow = std::numeric_limits<std::uint64_t>::max();

  double rate = kUnlimited;                // bits a second on the wire: headers, FCS, preamble and gap count
  std::uint64_t window = kNoWindow;        // bytes on the wire that are sent and not acknowledged
};

// An acknowledgement that acknowledges something new.
struct AckFacts {
  Duration rtt{};                          // since the newest packet that it acknowledges left the port; 0: not known
  std::uint64_t bytes = 0;                 // on the wire, of the packets that it acknowledges
  std::uint64_t in_flight = 0;             // bytes that are still unanswered
  // Between the arrival of the newest packet that it acknowledges at the receiver and its own leaving the receiver's
  // engine; 0: not known.
  Duration endpoint{};
  bool marked = false;                     // an ECN echo: a packet that came since the last one had a mark
  // Telemetry: the ports on the way, in its order, between two packets. Valid during the call only. Empty: none came,
  // or there is none before to compare with.
  std::span<const HopChange> hops{};
};

// For traces: what a control believes. Only somebody who follows the control asks for its state, at any time. So
// state() must not change what allowance() answers later.
struct ControlState {
  double rate = Allowance::kUnlimited;     // bits a second
  double target = Allowance::kUnlimited;   // bits a second that the rate rises to
  double alpha = 0;                        // estimate of congestion, 0 .. 1
  bool operator==(const ControlState&) const = default;
};

class CongestionControl {
 public:
  static constexpr Duration kNever{std::numeric_limits<std::int64_t>::max()};

  // `params`: what was registered with the name; nullptr for a control without parameters. `line`: the port's rate.
  // Returns nullptr for a control that never holds anything back.
  using Make = std::unique_ptr<CongestionControl> (*)(const PolicyParams* params, BitRate line);

  virtual ~CongestionControl() = default;

  // The state at `now`.
  virtual Allowance allowance(Duration now) = 0;
  // The next time at which allowance() changes without an input; kNever: at no time. Call allowance() first.
  virtual Duration next_change() const { return kNever; }
  virtual ControlState state(Duration /*now*/) { return {}; }

  // True: the control holds nothing back and remembers nothing, as a control that was just made. Until the next CNP it
  // need not be told of anything, and may be destroyed. So a queue pair without congestion costs nothing.
  virtual bool at_rest() const { return false; }

  // True: acknowledged() wants to be called, with round-trip times. The queue pair then asks for more
  // acknowledgements than it needs.
  virtual bool wants_acknowledgements() const { return false; }
  // True: acknowledged() wants to know of marks.
  virtual bool wants_marks() const { return false; }
  // True: acknowledged() wants telemetry. Requests then carry it, which makes them longer on the line.
  virtual bool wants_telemetry() const { return false; }
  // True: acknowledged() wants to know the delay inside the receiver. Requests and acknowledgements are then 8 bytes
  // longer on the line. A control that wants telemetry does not get the delay.
  virtual bool wants_endpoint_delay() const { return false; }

  // --- Inputs.
  virtual void sent(std::uint32_t /*bytes on the wire*/, Duration /*now*/) {}
  virtual void acknowledged(const AckFacts&, Duration /*now*/) {}
  virtual void notified(Duration /*now*/) {}      // a CNP (IBTA annex A17.9.3)
  virtual void lost(Duration /*now*/) {}          // a NAK tells of a gap in the sequence of PSNs
  virtual void timed_out(Duration /*now*/) {}     // the ACK timer expired
};

}  // namespace rnicsim::roce
