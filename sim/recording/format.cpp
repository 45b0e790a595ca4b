// SPDX-License-Identifier: Apache-2.0
#include "sim/recording/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "model/abi/command.h"
#include "model/abi/queue.h"
#include "sim/recording/header_start.h"
#include "sim/results/json.h"

namespace rnicsim::sim {
namespace {

constexpr std::string_view kMagic = "rnicsim trace\n";
constexpr std::size_t kMostHosts = 1 << 16;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using enum FieldStyle;
constexpr bool kIfSet = false;

std::vector<FieldInfo> packet_fields() {
  return {{"qp", hex},
          {"opcode", packet_opcode},
          {"psn", number},
          {"destination_qp", hex},
          {"ack_request", number, kIfSet},
          {"solicited", number, kIfSet},
          {"payload_bytes", number},
          {"payload_crc", hex, kIfSet},
          {"aeth_syndrome", hex, kIfSet},
          {"msn", number, kIfSet},
          {"reth_length", number, kIfSet},
          {"rkey", hex, kIfSet},
          {"immediate", hex, kIfSet},
          {"invalidate_rkey", hex, kIfSet},
          {"qkey", hex, kIfSet},
          {"source_qp", hex, kIfSet},
          {"swap_add", hex, kIfSet},
          {"compare", hex, kIfSet},
          {"original", hex, kIfSet},
          {"fecn", number, kIfSet},
          {"becn", number, kIfSet}};
}

// local_id is the sender's ID and remote_id the receiver's. `value`: reason of a REJ, status of a SIDR_REP, service
// timeout of an MRA.
std::vector<FieldInfo> cm_message_fields() {
  return {{"message", FieldStyle::cm_message},
          {"local_id", hex, kIfSet},
          {"remote_id", hex, kIfSet},
          {"qp", hex, kIfSet},
          {"psn", number, kIfSet},
          {"value", number, kIfSet}};
}

std::vector<FieldInfo> with_words(std::vector<FieldInfo> fields) {
  for (const char* name : {"word0", "word1", "word2", "word3", "word4", "word5", "word6", "word7"})
    fields.push_back({name, hex, kIfSet});
  return fields;
}

// Rows in the order of EventKind.
const std::vector<KindInfo>& kinds() {
  using K = EventKind;
  static const std::vector<KindInfo> table{
      {K::end, "end", {{"events", number}}},
      {K::command,
       "command",
       {{"process", number},
        {"opcode", command_opcode},
        {"object", hex},
        {"errno", number, kIfSet},
        {"status", command_status},
        {"syndrome", hex, kIfSet}}},
      {K::device_command,
       "device_command",
       {{"opcode", command_opcode}, {"object", hex}, {"status", command_status}, {"syndrome", hex, kIfSet}}},
      {K::doorbell, "doorbell", {{"qp", hex}, {"producer", number}, {"wqe_bytes", number}, {"page", number}}},
      {K::cq_arm, "cq_arm", {{"cq", hex}, {"consumer", number}, {"solicited_only", number, kIfSet}}},
      {K::eq_doorbell, "eq_doorbell", {{"eq", number}, {"consumer", number}}},
      {K::doorbell_refused,
       "doorbell_refused",
       {{"page", number}, {"kind", doorbell_kind}, {"reason", doorbell_reason}}},
      {K::wqe_fetch, "wqe_fetch", {{"qp", hex}, {"queue", queue}, {"bytes", number}}},
      {K::wqe,
       "wqe",
       {{"qp", hex},
        {"queue", queue},
        {"index", number},
        {"opcode", send_opcode},
        {"bytes", number},
        {"signaled", number, kIfSet}}},
      {K::packet_sent, "packet_sent", packet_fields()},
      {K::packet_received, "packet_received", packet_fields()},
      {K::packet_dropped, "packet_dropped", {{"cause", drop_cause}}},
      {K::frame_sent, "frame_sent", {{"bytes", number}}},
      {K::frame_received, "frame_received", {{"bytes", number}, {"arrives_in", duration, kIfSet}}},
      {K::frame_fault, "frame_fault", {{"rule", number}, {"action", fault_action}, {"bytes", number}}},
      {K::cqe,
       "cqe",
       {{"qp", hex},
        {"cq", hex},
        {"index", number},
        {"opcode", cqe_opcode},
        {"wqe_counter", number},
        {"syndrome", cqe_syndrome},
        {"byte_count", number},
        {"send_opcode", send_opcode, kIfSet},
        {"immediate", hex, kIfSet}}},
      {K::eqe, "eqe", {{"eq", number}, {"type", event_type}, {"number", hex}}},
      {K::eqe_lost, "eqe_lost", {{"eq", number}, {"type", event_type}, {"number", hex}}},
      {K::interrupt, "interrupt", {{"vector", number}}},
      {K::event_taken, "event_taken", {{"type", event_type}, {"number", hex}}},
      {K::qp_state, "qp_state", {{"qp", hex}, {"from", FieldStyle::qp_state}, {"to", FieldStyle::qp_state}}},
      {K::dma_abort,
       "dma_abort",
       {{"process", number}, {"write", number}, {"reason", abort_reason}, {"bytes", number}, {"address", hex, kIfSet}}},
      {K::cm_sent, "cm_sent", cm_message_fields()},
      {K::cm_received, "cm_received", cm_message_fields()},
      {K::cm_state, "cm_state", {{"id", hex}, {"from", FieldStyle::cm_state}, {"to", FieldStyle::cm_state}}},
      {K::refused,
       "refused",
       {{"what", refused_what},
        {"object", hex, kIfSet},
        {"qp", hex, kIfSet},
        {"why", refused_why},
        {"address", hex, kIfSet}}},
      {K::mmio_write, "mmio_write", with_words({{"offset", hex}, {"bytes", number}, {"part", number, kIfSet}})},
      {K::mmio_read, "mmio_read", {{"offset", hex}, {"bytes", number}}},
      {K::config_write, "config_write", {{"offset", hex}, {"bytes", number}, {"value", hex}}},
      {K::config_read, "config_read", {{"offset", hex}, {"bytes", number}}},
      {K::memory, "memory",
       with_words({{"process", number}, {"address", hex}, {"bytes", number}, {"since", duration, kIfSet}})},
      {K::memory_pinned,
       "memory_pinned",
       {{"process", number}, {"address", hex}, {"bytes", number}, {"writable", number}, {"pinned", number}}},
      {K::memory_absent, "memory_absent", {{"process", number}, {"address", hex}, {"bytes", number}}},
      {K::memory_on_demand, "memory_on_demand", {{"process", number}, {"address", hex}, {"bytes", number}}},
      {K::process, "process", {{"process", number}, {"state", number}}},
      {K::awaited,
       "awaited",
       {{"what", number}, {"owner", number}, {"address", hex}, {"count", number}, {"came", duration}}},
  };
  return table;
}

// --- Encoding.

// LEB128: seven bits a byte, least significant first; the top bit means that more bytes follow.
std::byte* put_number(std::byte* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = std::byte(value | 0x80);
  *at++ = std::byte(value);
  return at;
}

void append_number(std::vector<std::byte>& out, std::uint64_t value) {
  std::byte bytes[10];
  out.insert(out.end(), bytes, put_number(bytes, value));
}

std::uint64_t take_long_number(std::span<const std::byte>& bytes) {
  constexpr std::size_t kMostBytes = 10;
  const auto* at = bytes.data();
  const auto* const end = at + std::min(bytes.size(), kMostBytes);
  std::uint64_t value = 0;
  for (unsigned shift = 0; at != end; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(*at++);
    value |= (byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    if (shift == 63 && byte > 1) break;
    bytes = bytes.subspan(std::size_t(at - bytes.data()));
    return value;
  }
  throw TraceError(bytes.size() < kMostBytes ? "a number is cut short" : "a number of more than 64 bits");
}

// Fast path: most numbers of a trace are one byte.
inline std::uint64_t take_number(std::span<const std::byte>& bytes) {
  if (bytes.empty() || std::to_integer<unsigned>(bytes.front()) >= 0x80) return take_long_number(bytes);
  const auto value = std::to_integer<std::uint64_t>(bytes.front());
  bytes = bytes.subspan(1);
  return value;
}

template <class Value>
Value member(const Json& json, const char* name) {
  try {
    return json.at(name).get<Value>();
  } catch (const JsonError&) {
    throw TraceError(fmt::format("its header has no '{}', or a wrong one", name));
  }
}

bool is_qp_command(std::uint64_t opcode) {
  using enum abi::CommandOpcode;
  return opcode >= std::uint64_t(create_qp) && opcode <= std::uint64_t(query_qp);
}

bool is_qp_event(std::uint64_t type) {
  using enum abi::EventType;
  const auto is = [type](abi::EventType other) { return type == std::uint64_t(other); };
  return is(communication_established) || is(send_queue_drained) || is(last_wqe_reached) || is(qp_fatal) ||
         is(qp_request_error) || is(qp_access_error);
}

}  // namespace

const KindInfo& info(EventKind kind) { return kinds().at(std::size_t(kind)); }

EventDecoder::EventDecoder(std::size_t hosts) : rows_(kinds()), hosts_(hosts) {}

TraceEvent make_event(Duration at, std::uint32_t host, EventKind kind, std::initializer_list<std::uint64_t> fields) {
  TraceEvent event{at, host, kind, {}};
  std::ranges::copy(fields, event.fields.begin());
  return event;
}

std::optional<std::uint32_t> qp_of(const TraceEvent& event) {
  const auto& fields = event.fields;
  switch (event.kind) {
    case EventKind::doorbell:
    case EventKind::wqe_fetch:
    case EventKind::wqe:
    case EventKind::packet_sent:
    case EventKind::packet_received:
    case EventKind::cqe:
    case EventKind::qp_state: return std::uint32_t(fields[0]);
    case EventKind::refused: return fields[2] != 0 ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::command: return is_qp_command(fields[1]) ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::device_command:
      return is_qp_command(fields[0]) ? std::optional(std::uint32_t(fields[1])) : std::nullopt;
    case EventKind::eqe:
    case EventKind::eqe_lost: return is_qp_event(fields[1]) ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::event_taken: return is_qp_event(fields[0]) ? std::optional(std::uint32_t(fields[1])) : std::nullopt;
    default: return std::nullopt;
  }
}

void encode_header(const TraceHeader& header, std::vector<std::byte>& out) {
  Json json;
  json["program"] = header.program;
  if (!header.title.empty()) json["title"] = header.title;
  json["seed"] = header.seed;
  json["time"] = header.time;
  json["hosts"] = header.hosts;
  if (!header.commands.empty()) json["commands"] = header.commands;
  if (!header.system.empty()) json["system"] = header.system;
  auto& configuration = json["configuration"] = Json::object();
  for (const auto& [path, value] : header.configuration) configuration[path] = value;
  // Arguments of a program need not be UTF-8; dump() replaces invalid bytes.
  const auto text = json.dump(1);
  const auto append = [&out](std::string_view characters) {
    const auto bytes = std::as_bytes(std::span(characters));
    out.insert(out.end(), bytes.begin(), bytes.end());
  };
  append(kMagic);
  append_number(out, kTraceVersion);
  append_number(out, text.size());
  append(text);
}

void check_header_start(std::span<const std::byte> bytes) {
  if (!as_text(bytes).starts_with(kMagic)) throw TraceError("not a trace of rnicsim");
  bytes = bytes.subspan(kMagic.size());
  const auto version = take_number(bytes);
  if (version != kTraceVersion)
    throw TraceError(fmt::format("format version {}; this program reads version {}", version, kTraceVersion));
}

TraceHeader decode_header(std::span<const std::byte> bytes) {
  check_header_start(bytes);
  bytes = bytes.subspan(kMagic.size());
  take_number(bytes);  // skips the version
  if (take_number(bytes) != bytes.size()) throw TraceError("the length in the header is wrong");
  const auto parsed = Json::parse_if_valid(as_text(bytes));
  if (!parsed || !parsed->is_object()) throw TraceError("its header is not JSON");
  const Json& json = *parsed;
  TraceHeader header;
  header.program = member<std::string>(json, "program");
  if (json.contains("title")) header.title = member<std::string>(json, "title");
  header.seed = member<std::uint64_t>(json, "seed");
  header.time = member<std::string>(json, "time");
  header.hosts = member<std::vector<std::string>>(json, "hosts");
  if (header.hosts.size() > kMostHosts) throw TraceError("its header names too many hosts");
  if (json.contains("commands")) header.commands = member<std::vector<std::string>>(json, "commands");
  if (json.contains("system")) header.system = member<std::string>(json, "system");
  const auto configuration = member<Json>(json, "configuration");
  if (!configuration.is_object()) throw TraceError("its header has a configuration that is no object");
  for (const auto& [path, value] : configuration.items()) {
    if (!value.is_string()) throw TraceError("its header has a configuration that is not text");
    header.configuration.emplace_back(path, value.get<std::string>());
  }
  return header;
}

void EventEncoder::encode(const TraceEvent& event, std::vector<std::byte>& out) {
  std::byte body[10 * (TraceEvent::kMostFields + 3)];
  std::byte* end = put_number(body, std::uint64_t(event.kind));
  end = put_number(end, event.host);
  end = put_number(end, std::uint64_t((event.at - last_).ps));
  last_ = event.at;
  // Trailing zero fields are not stored.
  std::size_t count = info(event.kind).fields.size();
  while (count > 0 && event.fields[count - 1] == 0) --count;
  for (std::size_t i = 0; i < count; ++i) end = put_number(end, event.fields[i]);
  append_number(out, std::uint64_t(end - body));
  out.insert(out.end(), body, end);
}

void EventDecoder::decode(std::span<const std::byte>& bytes, TraceEvent& event) {
  const auto length = take_number(bytes);
  if (length > bytes.size()) throw TraceError("an event is cut short");
  auto body = bytes.first(length);
  bytes = bytes.subspan(length);
  const auto kind = take_number(body);
  if (kind >= std::uint64_t(EventKind::count)) throw TraceError(fmt::format("an event of unknown kind {}", kind));
  const auto host = take_number(body);
  if (host >= hosts_ && kind != std::uint64_t(EventKind::end)) throw TraceError("an event of a host that is not there");
  const auto later = take_number(body);
  if (later > std::uint64_t(std::numeric_limits<std::int64_t>::max() - last_.ps))
    throw TraceError("an event at an impossible time");
  last_.ps += std::int64_t(later);
  event.at = last_;
  event.host = std::uint32_t(host);
  event.kind = EventKind(kind);
  const auto& row = rows_[kind];
  const auto most = row.fields.size();
  std::size_t count = 0;
  for (; !body.empty(); ++count) {
    if (count == most) throw TraceError(fmt::format("an event '{}' with too many fields", row.name));
    event.fields[count] = take_number(body);
  }
  std::fill(event.fields.begin() + std::ptrdiff_t(count), event.fields.end(), 0);
}

}  // namespace rnicsim::sim
