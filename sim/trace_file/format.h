// SPDX-License-Identifier: Apache-2.0
// Format of recorded traces: the kinds of events, and the encoding of header and events. Manual: traces/README.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/base/units.h"

namespace rnicsim::sim {

// Increase the version when the layout changes, or the meaning of a kind or field. New kinds and fields need no new
// version: the schema in the header names them. Traces of kOldestTraceVersion and later are readable.
inline constexpr std::uint32_t kTraceVersion = 2, kOldestTraceVersion = 1;

// The trace cannot be read; the text gives the reason.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class EventKind : std::uint8_t {
  end,  // last event of a complete recording
  command,
  device_command,
  doorbell,
  cq_arm,
  eq_doorbell,
  doorbell_refused,
  wqe_fetch,
  wqe,
  packet_sent,
  packet_received,
  packet_dropped,
  frame_sent,
  frame_received,
  frame_fault,
  cqe,
  eqe,
  eqe_lost,
  interrupt,
  event_taken,
  qp_state,
  dma_abort,
  cm_sent,
  cm_received,
  cm_state,
  refused,
  // The software's side: requests of the host to the device. Recorded on request.
  mmio_write,
  mmio_read,
  config_write,
  config_read,
  memory,
  memory_pinned,
  memory_absent,
  memory_on_demand,
  process,
  awaited,
  // Calls of the verbs library, and TLPs. Recorded on request.
  command_bytes,
  posted,
  polled,
  tlp,
  count
};
inline constexpr bool is_of_software(EventKind kind) {
  return kind >= EventKind::mmio_write && kind <= EventKind::awaited;
}

// Type and display format of a field.
enum class FieldStyle : std::uint8_t {
  number,
  hex,
  bytes,     // a number of bytes
  duration,  // ps
  packet_opcode,
  send_opcode,
  cqe_opcode,
  cqe_syndrome,
  event_type,
  qp_state,
  command_opcode,
  command_status,
  queue,
  drop_cause,
  doorbell_kind,
  doorbell_reason,
  refused_what,
  refused_why,
  abort_reason,
  fault_action,
  cm_message,
  cm_state,
  tlp_direction,
  tlp_type,
  count
};
// True: the values are numbers without names.
inline constexpr bool is_plain(FieldStyle style) { return style <= FieldStyle::duration; }

struct FieldInfo {
  const char* name;
  FieldStyle style;
  bool always = true;  // false: not shown when 0
};

struct KindInfo {
  EventKind kind;
  const char* name;
  std::vector<FieldInfo> fields;
};
const KindInfo& info(EventKind kind);

struct TraceEvent {
  static constexpr std::size_t kMostFields = 24;

  Duration at;
  std::uint32_t host = 0;  // index in TraceHeader::hosts
  EventKind kind = EventKind::end;
  std::array<std::uint64_t, kMostFields> fields{};  // in the order of the kind's FieldInfo; 0 beyond

  bool operator==(const TraceEvent&) const = default;
};
inline TraceEvent make_event(Duration at, std::uint32_t host, EventKind kind,
                             std::initializer_list<std::uint64_t> fields) {
  TraceEvent event{at, host, kind, {}};
  std::size_t count = 0;
  for (const auto value : fields) event.fields[count++] = value;
  return event;
}

// First field of an `awaited` event: the output of a device that the host's software saw before it continued.
enum class Awaited : std::uint64_t { memory = 1, interrupt, answer };

// Values of the fields of a `tlp` event.
enum class TlpDirection : std::uint8_t { to_host, to_device };
enum class TlpType : std::uint8_t { memory_read, memory_write, config_read, config_write, completion };

// Receiver of a recorder's events.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void write(const TraceEvent& event) = 0;
};

// --- Number of the QP that the event concerns, on the event's host; nullopt: none.
// For kinds of events whose other fields decide whether the event concerns a QP.
std::optional<std::uint32_t> qp_by_fields(const TraceEvent& event);
inline std::optional<std::uint32_t> qp_of(const TraceEvent& event) {
  enum Rule : std::uint8_t { none, first_field, by_fields };
  constexpr auto kRules = [] {
    using enum EventKind;
    std::array<Rule, std::size_t(count)> rules{};
    for (const auto kind : {doorbell, wqe_fetch, wqe, packet_sent, packet_received, cqe, qp_state})
      rules[std::size_t(kind)] = first_field;
    for (const auto kind : {posted, refused, command, command_bytes, device_command, eqe, eqe_lost, event_taken})
      rules[std::size_t(kind)] = by_fields;
    return rules;
  }();
  const auto rule = kRules[std::size_t(event.kind)];
  if (rule == by_fields) [[unlikely]]
    return qp_by_fields(event);
  return rule == first_field ? std::optional(std::uint32_t(event.fields[0])) : std::nullopt;
}
// The event as one line: time, host, kind, fields.
std::string to_text(const TraceEvent& event, std::span<const std::string> hosts);
std::string to_text(const FieldInfo& field, std::uint64_t value);
// The same text, appended to `out`: faster for many events.
void append_text(std::string& out, const TraceEvent& event, std::span<const std::string> hosts);
void append_text(std::string& out, const FieldInfo& field, std::uint64_t value);
// Name of a value (an opcode, a state, a syndrome); nullptr: the value has no name.
const char* value_name(const FieldInfo& field, std::uint64_t value);

struct TraceHeader {
  std::string program;  // version of rnicsim
  std::string title;    // only for a golden trace: the behaviour that it shows
  std::uint64_t seed = 0;
  std::string time;                // "sim" or "real"
  std::vector<std::string> hosts;  // names
  std::vector<std::string> commands;
  std::vector<std::pair<std::string, std::string>> configuration;  // resolved: path, value with unit
  std::string system;  // with the software's side: the resolved configuration as TOML (to_toml()); else empty
};

}  // namespace rnicsim::sim
