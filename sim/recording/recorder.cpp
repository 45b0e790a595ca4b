// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "model/fabric/fault_injector.h"
#include "model/host/cm/rdma_cm.h"
#include "model/host/host_kernel.h"
#include "model/host/kernel_agent.h"
#include "model/host/root_complex.h"
#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/config/config.h"
#include "sim/config/config_error.h"
#include "sim/processes/boundary.h"

namespace rnicsim::sim {
namespace {

template <class Enum>
std::uint64_t number(Enum value) {
  return static_cast<std::uint64_t>(value);
}

// Fields that distinguish messages of the connection manager of the same kind.
struct CmDetails {
  std::uint64_t local_id = 0, remote_id = 0, qpn = 0, psn = 0, value = 0;
};
template <class Message>
CmDetails details_of(const Message& m) {
  return {m.local_id, m.remote_id};
}
CmDetails details_of(const cm::ConnectRequest& m) { return {m.local_id, 0, m.local_qpn, m.starting_psn, m.service_id}; }
CmDetails details_of(const cm::ConnectReply& m) { return {m.local_id, m.remote_id, m.local_qpn, m.starting_psn}; }
CmDetails details_of(const cm::MessageReceiptAck& m) { return {m.local_id, m.remote_id, 0, 0, m.service_timeout}; }
CmDetails details_of(const cm::ConnectReject& m) { return {m.local_id, m.remote_id, 0, 0, number(m.reason)}; }
CmDetails details_of(const cm::DisconnectRequest& m) { return {m.local_id, m.remote_id, m.remote_qpn}; }
CmDetails details_of(const cm::ServiceIdRequest& m) { return {m.request_id, 0, 0, 0, m.service_id}; }
CmDetails details_of(const cm::ServiceIdReply& m) { return {0, m.request_id, m.qpn, 0, number(m.status)}; }

// Programs of hosts have the same addresses in every run; software inside the simulator (`bench`) does not.
Addresses addresses_in(const TraceHeader& header) {
  const auto is_of_host = [](const std::string& command) { return !command.starts_with("bench "); };
  return std::ranges::any_of(header.commands, is_of_host) ? Addresses::shown : Addresses::hidden;
}

}  // namespace

Recorder::Recorder(System& system, EventSink& sink, Addresses addresses, RecordLevel level)
    : sink_(sink), addresses_(addresses), level_(level), boundary_(system.boundary()) {
  for (std::uint32_t i = 0; i < system.adapters(); ++i) {
    Adapter& host = system.adapter(i);
    watch_nic(i, host.nic().blocks());
    if (auto* cable = system.faults(i); cable != nullptr && level_ == RecordLevel::all) watch_cable(i, *cable);
    if (host.in_guest()) continue;
    watch_host(i, host);
    watch_root(i, host.root_complex(), host.device());
  }
}

void Recorder::watch_cable(std::uint32_t host, fabric::FaultInjector& cable) {
  cable.entered.subscribe([this, host](const fabric::FaultTrace& entered) {
    if (const auto* fault = entered.fault)
      write(host, EventKind::frame_fault, {fault->position + 1, number(fault->action), entered.frame.size()});
  });
}

void Recorder::watch_host(std::uint32_t host, Adapter& watched) {
  watched.agent().command_answered.subscribe([this, host](const host::CommandAnswered& command) {
    write(host, EventKind::command,
          {command.process, number(command.opcode), command.object, std::uint64_t(command.error),
           number(command.status), command.syndrome});
  });
  watched.agent().event_taken.subscribe([this, host](const host::EventTaken& event) {
    write(host, EventKind::event_taken, {number(event.type), event.number});
  });
  host::RdmaCm& cm = watched.kernel().cm();
  cm.message.subscribe([this, host, device = watched.device()](const host::CmMessage& message) {
    if (message.device != device) return;
    const auto details = std::visit([](const auto& content) { return details_of(content); }, message.content);
    write(host, message.sent ? EventKind::cm_sent : EventKind::cm_received,
          {message.content.index(), details.local_id, details.remote_id, details.qpn, details.psn, details.value});
  });
  // Connections belong to the host, so record them for its first device only.
  if (watched.device() == 0)
    cm.state_changed.subscribe([this, host](const cm::Transition& change) {
      write(host, EventKind::cm_state, {change.id, number(change.from), number(change.to)});
    });
}

Recording::Recording(System& system, TraceHeader header, const std::filesystem::path& path, const RecordedParts& parts)
    : path_(path),
      events_(system.boundary(), [this](Duration at, std::uint32_t host,
                                        std::span<const std::byte> note) { write_noted(at, host, note); }),
      recorder_(system, *this, addresses_in(header), parts.level) {
  if (parts.software && parts.level != RecordLevel::all)
    throw ConfigError("--record-software needs packets and frames, which --record-level verbs leaves out");
  EventSink& sink = *this;
  if (parts.software) {
    software_.emplace(system, sink);
    Config config = system.config();
    header.system = to_toml(config);
  }
  if (parts.calls) calls_.emplace(system, sink);
  if (parts.tlps) tlps_.emplace(system, sink, addresses_in(header));
  if (!system.writes_files()) return;
  file_.open(path, std::ios::binary | std::ios::trunc);
  if (!file_) throw ConfigError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  writer_.emplace(file_, header);
}

void Recording::write(const TraceEvent& event) {
  std::array<std::byte, kNoteStart + EncodedEvent::kMostFieldBytes> note;
  const auto qp = qp_of(event);
  note[0] = std::byte(event.kind);
  note[1] = std::byte(qp.has_value());
  const std::uint32_t number = qp.value_or(0);
  std::memcpy(&note[2], &number, sizeof number);
  const auto* const end = encode_fields(event, note.data() + kNoteStart);
  const bool arrives = event.kind == EventKind::frame_received;
  events_.add(event.at, event.host, arrives ? InOrder::Origin::arrival : InOrder::Origin::own, {note.data(), end});
}

void Recording::write_noted(Duration at, std::uint32_t host, std::span<const std::byte> note) {
  EncodedEvent event{at, host, EventKind(note[0]), {}, note.subspan(kNoteStart)};
  if (note[1] != std::byte{0}) std::memcpy(&event.qp.emplace(), &note[2], sizeof(std::uint32_t));
  writer_->write(event);
}

void Recording::finish() {
  events_.finish();
  if (!writer_) return;
  writer_->finish(now());
  file_.close();
  if (!file_) throw ConfigError(fmt::format("{}: cannot be written", path_.string()));
}

}  // namespace rnicsim::sim
