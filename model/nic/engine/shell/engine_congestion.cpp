// SPDX-License-Identifier: Apache-2.0
// Congestion control in the engine shell: inputs of a queue pair's control, received CNPs (the reaction point), and
// inputs of the notification point.
#include <utility>

#include "model/base/kernel.h"
#include "model/base/policy.h"
#include "model/nic/engine/shell/engine_shell.h"
#include "model/roce/icrc.h"
#include "model/roce/packet.h"

namespace rnicsim::nic {
namespace {

// Bytes of the packet's frame on the line: headers, payload, ICRC, telemetry, VLAN tag, and overhead of a frame.
std::uint32_t line_bytes(const Qp& qp, const Packet& packet, std::uint32_t payload, std::size_t overhead) {
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

void EngineShell::control_sent(Qp& qp, std::uint32_t bytes) {
  qp.congestion.sent(bytes, now());
  tell_control(qp);
  if (control_rests_ && qp.congestion.at_rest()) qp.congestion = {};
}

// A packet that is resent alone is already in the window; it requests an acknowledgement. A READ request carries no
// telemetry: no answer could return it, and the ports of its path are not those of the data.
void EngineShell::request_sent(Qp& qp, Packet& packet, std::uint32_t payload, bool again) {
  const auto operation = roce::info(packet.headers.bth.opcode).operation;
  const auto carried = qp.congestion.carried();
  if (carried && qp.reliable() && operation != roce::Operation::read) packet.carry(*carried);
  const auto bytes = line_bytes(qp, packet, payload, limits_.line_overhead + tag_of(qp.context.path).bytes());
  control_sent(qp, bytes);
  if (!qp.congestion || !qp.reliable()) return;
  auto& asks = packet.headers.bth.ack_request;
  if (again) return void(asks = true);
  asks = qp.congestion.request_sent(qp.requests.last().end, bytes, asks, now());
}

void EngineShell::control_left(Qp& qp, const Leaving& packet) {
  if (packet.is_request) return qp.congestion.request_left(packet.end, now());
  if (qp.read_acks && packet.bytes != 0) qp.read_acks->unanswered.left(packet.end, now());
}

void EngineShell::control_heard(Qp& qp, const roce::ResponseOutcome& outcome, roce::Psn oldest, const Packet& packet) {
  using Kind = roce::ResponseOutcome::Kind;
  wake_control(qp);
  const auto* telemetry = packet.telemetry();
  if (telemetry != nullptr) qp.congestion.take_telemetry(*telemetry, now());
  qp.congestion.acknowledged(oldest, packet.headers.bth.becn, now());
  if (outcome.kind == Kind::sequence_error || outcome.kind == Kind::implied_sequence_error) qp.congestion.lost(now());
  if (outcome.rewound) control_rewound(qp);
  tell_control(qp);
  if (acks_reads_) schedule_answers(qp);
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

// A connected queue pair accepts CNPs of its own peer only, so that no other host can slow it down. A datagram queue
// pair accepts CNPs of every sender.
void EngineShell::take_notification(Qp& qp, const PacketIn& packet) {
  if (packet.headers().bth.opcode == roce::Opcode::read_acknowledge) return take_read_acknowledgement(qp, packet);
  const bool works = qp.transport != roce::Transport::raw && (qp.sends() || qp.responds());
  const bool counts = works && came_by_path(packet, qp.context) && wake_control(qp);
  if (!counts) return void(++counters_.rp_cnp_ignored);
  ++counters_.rp_cnp_handled;
  trace_.cnp_taken({qp.qpn});
  qp.congestion.notified(now());
  tell_control(qp);
}

// A returned block is for this side's control.
void EngineShell::keep_telemetry(Qp& qp, const PacketIn& packet, const Telemetry& telemetry) const {
  if (telemetry.goes_back() || !qp.reliable()) return;
  const auto& bth = packet.headers().bth;
  const auto arrived = now() - limits_.receive_latency;
  if (roce::info(bth.opcode).response()) return read_acks(qp).returns.came(telemetry, bth.psn, arrived);
  if (!qp.returns) qp.returns = std::make_unique<TelemetryReturns>();
  qp.returns->came(telemetry, bth.psn, arrived);
}

void EngineShell::give_back_telemetry(Qp& qp, Packet& answer) const {
  if (const auto block = qp.returns->take(answer.headers, now())) answer.carry(*block);
  if (qp.returns->empty()) qp.returns = nullptr;
}

// --- Acknowledgements of READ responses. A responder requests them (AckReq of a response): then its control gets round
// trips and marks, and windows and most_in_flight apply to responses. The requester requests lost responses again, by
// READs, which tell the responder as much as a NAK.
ReadAcks& EngineShell::read_acks(Qp& qp) {
  if (!qp.read_acks) qp.read_acks = std::make_unique<ReadAcks>();
  return *qp.read_acks;
}

bool EngineShell::response_allowed(Qp& qp) {
  if (*core_->next_answer(qp.slot) == 0) return true;
  const auto* unanswered = acks_reads_ ? &read_acks(qp).unanswered : nullptr;
  const auto most = limits_.transport.most_in_flight;
  if (unanswered != nullptr && most != 0 && unanswered->packets() >= most) return false;
  if (!qp.congestion) return true;
  return !holds_back(qp, qp.congestion.not_before(now(), unanswered, qp.congestion.requests().bytes()));
}

void EngineShell::response_sent(Qp& qp, PacketLane::Entry& entry, std::uint32_t payload) {
  auto& packet = *entry.packet;
  auto& bth = packet.headers.bth;
  const auto carried = qp.congestion.carried();
  if (acks_reads_ && carried) packet.carry(*carried);
  const auto bytes = line_bytes(qp, packet, payload, limits_.line_overhead + tag_of(qp.context.path).bytes());
  if (qp.congestion) control_sent(qp, bytes);
  if (!acks_reads_) return;
  auto& unanswered = read_acks(qp).unanswered;
  const auto most = limits_.transport.most_in_flight;
  bth.ack_request = roce::info(bth.opcode).ends() || (most != 0 && unanswered.packets() + 1 >= most) ||
                    (qp.congestion ? qp.congestion.is_to_ask(unanswered, bytes, qp.congestion.requests().bytes(), now())
                                   : unanswered.unasked() + 1 >= limits_.congestion.ack_every);
  entry.end = bth.psn + 1;
  unanswered.sent(entry.end, bytes, bth.ack_request);
}

// The requester requests a response again: responses sent before no longer count.
void EngineShell::responses_lost(Qp& qp) {
  qp.read_acks->unanswered.clear();
  if (!qp.congestion) return;
  qp.congestion.lost(now());
  tell_control(qp);
}

// The acknowledgement takes no credit, so that queued data does not delay it.
void EngineShell::acknowledge_response(Qp& qp, roce::Psn oldest) {
  auto packet = Packet::make();
  auto& headers = packet->headers;
  headers.bth.opcode = roce::Opcode::read_acknowledge;
  headers.bth.destination = {qp.context.remote_qpn};
  headers.bth.psn = oldest - 1;
  headers.aeth = roce::Aeth{.syndrome = roce::Aeth::kAck | roce::Aeth::kNoCredits, .msn = 0};
  if (qp.read_acks) {
    headers.bth.becn = std::exchange(qp.read_acks->mark_to_echo, false);
    if (const auto block = qp.read_acks->returns.take(headers, now())) packet->carry(*block);
  }
  const auto& path = qp.context.path;
  address(packet->addresses, path);
  out_.packet({qp.qpn, path.sgid_index, std::move(packet), false, class_of(path)});
}

void EngineShell::take_read_acknowledgement(Qp& qp, const PacketIn& packet) {
  if (!qp.reliable() || !qp.responds()) return void(++counters_.wrong_state);
  if (!came_by_path(packet, qp.context)) return void(++counters_.wrong_path);
  if (!qp.read_acks) return;
  const auto& bth = packet.headers().bth;
  auto& unanswered = qp.read_acks->unanswered;
  const auto answered = unanswered.answered(bth.psn + 1, now());
  if (qp.congestion) {
    if (const auto* telemetry = packet.packet->telemetry()) qp.congestion.take_telemetry(*telemetry, now());
    qp.congestion.answered(answered, unanswered.bytes() + qp.congestion.requests().bytes(), bth.becn, now());
    tell_control(qp);
  }
  schedule(qp);
}

// The CNP goes back on the queue pair's path; for a datagram, to the datagram's source.
void EngineShell::tell_congestion(const Qp& qp, const PacketIn& packet, CongestionSeen::Cause cause) {
  const auto& came = packet.packet->addresses;
  CongestionSeen seen{.cause = cause,
                      .qpn = qp.qpn,
                      .peer = {qp.context.remote_qpn},
                      .gid_index = packet.gid_index,
                      .traffic_class = came.traffic_class,
                      .tag = came.tagged() ? VlanTag(came.tag()) : VlanTag(),
                      .to = {}};
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
