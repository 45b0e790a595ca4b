// Congestion control in the engine shell: what a queue pair's control is told, CNPs that come (the reaction point), and
// what the notification point is told.
#include "model/base/kernel.h"
#include "model/base/policy.h"
#include "model/nic/engine/engine_shell.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {
namespace {

// Bytes of the packet's frame on the line: headers, payload, ICRC, telemetry, and the overhead of a frame.
std::uint32_t line_bytes(const Qp& qp, const Packet& packet, std::uint32_t payload, std::uint32_t overhead) {
  const bool ipv4 = roce::is_ipv4_mapped(qp.context.path.remote_gid);
  const auto network = roce::kEthernetBytes + (ipv4 ? roce::kIpv4Bytes : roce::kIpv6Bytes) + roce::kUdpBytes;
  const auto transport = roce::encoded_size(roce::info(packet.headers.bth.opcode)) + roce::kIcrcBytes;
  const auto telemetry = packet.telemetry() != nullptr ? packet.telemetry()->size() : 0;
  return static_cast<std::uint32_t>(network + transport + (payload + 3) / 4 * 4 + telemetry + overhead);
}

}  // namespace

CongestionGate EngineShell::make_gate() const {
  const auto& control = limits_.congestion.control;
  return CongestionGate(make_policy<roce::CongestionControl>(control.name, control.params(control.name), limits_.line),
                        limits_.congestion.ack_every);
}

bool EngineShell::wake_control(Qp& qp) {
  if (!qp.congestion && control_rests_) {
    qp.congestion = make_gate();
    tell_control(qp);
  }
  return static_cast<bool>(qp.congestion);
}

bool EngineShell::echoes_marks() const {
  const auto& echo = limits_.congestion.np.ecn_echo;
  if (echo == NotificationParams::kEchoWords[0]) return make_gate().wants_marks();
  return echo == NotificationParams::kEchoWords[1];
}

// A packet that is sent again, alone, is in the window already, and asks for an acknowledgement.
// Nothing that answers a READ's request could give telemetry back, and the ports of its way are not those of the data.
void EngineShell::control_sent(Qp& qp, Packet& packet, std::uint32_t payload, bool is_request, bool again) {
  const bool acknowledged = is_request && qp.reliable();
  const auto operation = roce::info(packet.headers.bth.opcode).operation;
  const auto carried = qp.congestion.carried();
  if (acknowledged && carried && operation != roce::Operation::read) packet.carry(*carried);
  const auto bytes = line_bytes(qp, packet, payload, limits_.line_overhead);
  qp.congestion.sent(bytes, now());
  tell_control(qp);
  if (control_rests_ && qp.congestion.at_rest()) return void(qp.congestion = {});
  if (!acknowledged) return;
  auto& asks = packet.headers.bth.ack_request;
  if (again) return void(asks = true);
  asks = qp.congestion.request_sent(qp.requests.last().end, bytes, asks, now());
}

void EngineShell::control_heard(Qp& qp, const roce::ResponseOutcome& outcome, roce::Psn oldest,
                                const Packet& packet) {
  using Kind = roce::ResponseOutcome::Kind;
  wake_control(qp);
  const auto* telemetry = packet.telemetry();
  if (telemetry != nullptr) qp.congestion.take_telemetry(*telemetry, now());
  qp.congestion.acknowledged(oldest, packet.headers.bth.becn, now());
  if (outcome.kind == Kind::sequence_error || outcome.kind == Kind::implied_sequence_error) qp.congestion.lost(now());
  if (outcome.rewound) control_rewound(qp);
  tell_control(qp);
}

void EngineShell::control_timed_out(Qp& qp, bool rewound) {
  wake_control(qp);
  qp.congestion.timed_out(now());
  if (rewound) control_rewound(qp);
  tell_control(qp);
}

void EngineShell::control_rewound(Qp& qp) {
  qp.congestion.rewound();
  if (!limits_.congestion.cnp_on_retransmit) return;
  ++counters_.roce_slow_restart_cnps;
  qp.congestion.notified(now());
}

void EngineShell::tell_control(Qp& qp) {
  if (!trace_.control_changed) return;
  if (const auto view = qp.congestion.new_view(now())) trace_.control_changed({qp.qpn, view->state, view->window});
}

// A connected queue pair hears its own peer alone: nobody else slows it down. A queue pair of datagrams hears
// every sender.
void EngineShell::take_notification(Qp& qp, const PacketIn& packet) {
  const bool works = qp.transport != roce::Transport::raw && (qp.sends() || qp.responds());
  const bool counts = works && came_by_path(packet, qp.context) && wake_control(qp);
  if (!counts) return void(++counters_.rp_cnp_ignored);
  ++counters_.rp_cnp_handled;
  trace_.cnp_taken({qp.qpn});
  qp.congestion.notified(now());
  tell_control(qp);
}

// What has come back already is for this side's own control.
void EngineShell::keep_telemetry(Qp& qp, const PacketIn& packet, const Telemetry& telemetry) const {
  if (telemetry.goes_back() || !qp.reliable()) return;
  if (!qp.returns) qp.returns = std::make_unique<TelemetryReturns>();
  qp.returns->came(telemetry, packet.headers().bth.psn, now() - limits_.receive_latency);
}

void EngineShell::give_back_telemetry(Qp& qp, Packet& answer) const {
  if (const auto block = qp.returns->take(answer.headers, now())) answer.carry(*block);
  if (qp.returns->empty()) qp.returns = nullptr;
}

// The answer goes back by the queue pair's path; a datagram's, to where the datagram came from.
void EngineShell::tell_congestion(const Qp& qp, const PacketIn& packet, CongestionSeen::Cause cause) {
  const auto& came = packet.packet->addresses;
  CongestionSeen seen{.cause = cause, .qpn = qp.qpn, .peer = {qp.context.remote_qpn},
                      .gid_index = packet.gid_index, .traffic_class = came.traffic_class, .to = {}};
  if (qp.connected()) {
    address(seen.to, qp.context.path);
  } else if (packet.headers().deth) {
    seen.peer = packet.headers().deth->source;
    seen.to.destination = came.source;
    seen.to.destination_mac = came.source_mac;
  } else {
    return;
  }
  out_.congestion_seen(seen);
}

}  // namespace rnicsim::nic
