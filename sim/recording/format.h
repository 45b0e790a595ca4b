// Recorded traces: what an event is, and how header and events are written as bytes. traces/README.md is its manual.
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

// Every change of the layout, of a kind's number or of a kind's fields makes another version; but for a kind behind the
// last one, and a field behind the last one of a kind, which an older trace does without.
inline constexpr std::uint32_t kTraceVersion = 1;

// A trace that cannot be read, and why.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class EventKind : std::uint8_t {
  end,  // after the last event: the recording is whole
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
  // The software's side: what reaches the device from its host. Recorded on request.
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
  count
};
inline constexpr bool is_of_software(EventKind kind) { return kind >= EventKind::mmio_write; }

// How a field reads.
enum class FieldStyle : std::uint8_t {
  number,
  hex,
  duration,
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
};

struct FieldInfo {
  const char* name;
  FieldStyle style;
  bool always = true;  // shown when 0, too
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
TraceEvent make_event(Duration at, std::uint32_t host, EventKind kind, std::initializer_list<std::uint64_t> fields);

// What a host's software saw before it went on: the first field of an awaited event.
enum class Awaited : std::uint64_t { memory = 1, interrupt, answer };

// Where a recorder's events go.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void write(const TraceEvent& event) = 0;
};

// The QP of its host that an event is about.
std::optional<std::uint32_t> qp_of(const TraceEvent& event);
// One line: time, host, kind, fields.
std::string to_text(const TraceEvent& event, std::span<const std::string> hosts);
std::string to_text(const FieldInfo& field, std::uint64_t value);
// The same at the end of `out`, for many events.
void append_text(std::string& out, const TraceEvent& event, std::span<const std::string> hosts);
void append_text(std::string& out, const FieldInfo& field, std::uint64_t value);
// The name of a value (an opcode, a state, a syndrome); nullptr: it has none.
const char* value_name(const FieldInfo& field, std::uint64_t value);

struct TraceHeader {
  std::string program;  // version of rnicsim
  std::string title;    // of a golden trace: what it shows
  std::uint64_t seed = 0;
  std::string time;                // "sim" or "real"
  std::vector<std::string> hosts;  // names
  std::vector<std::string> commands;
  std::vector<std::pair<std::string, std::string>> configuration;  // resolved: path, value with unit
  std::string system;  // with the software's side: the resolved configuration as TOML (to_toml()); else empty
};

// --- Bytes. Decoding checks everything: TraceError.
void encode_header(const TraceHeader& header, std::vector<std::byte>& out);
TraceHeader decode_header(std::span<const std::byte> bytes);

// Events in the order of their times.
class EventEncoder {
 public:
  void encode(const TraceEvent& event, std::vector<std::byte>& out);

 private:
  Duration last_;
};
class EventDecoder {
 public:
  explicit EventDecoder(std::size_t hosts);
  // Takes one event off the front of `bytes`, which is not empty. After a TraceError `event` is any event.
  void decode(std::span<const std::byte>& bytes, TraceEvent& event);

 private:
  std::span<const KindInfo> rows_;  // in the order of EventKind
  std::size_t hosts_;
  Duration last_;
};

}  // namespace rnicsim::sim
