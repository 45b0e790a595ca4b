// SPDX-License-Identifier: Apache-2.0
#include "sim/trace_file/format.h"

#include <algorithm>

#include "model/abi/command.h"
#include "model/abi/queue.h"

namespace rnicsim::sim {
namespace {

using enum FieldStyle;
constexpr bool kIfSet = false;

std::vector<FieldInfo> packet_fields() {
  return {{"qp", hex},
          {"opcode", packet_opcode},
          {"psn", number},
          {"destination_qp", hex},
          {"ack_request", number, kIfSet},
          {"solicited", number, kIfSet},
          {"payload_bytes", bytes},
          {"payload_crc", hex, kIfSet},
          {"aeth_syndrome", hex, kIfSet},
          {"msn", number, kIfSet},
          {"reth_length", bytes, kIfSet},
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
      {K::doorbell, "doorbell", {{"qp", hex}, {"producer", number}, {"wqe_bytes", bytes}, {"page", number}}},
      {K::cq_arm, "cq_arm", {{"cq", hex}, {"consumer", number}, {"solicited_only", number, kIfSet}}},
      {K::eq_doorbell, "eq_doorbell", {{"eq", number}, {"consumer", number}}},
      {K::doorbell_refused,
       "doorbell_refused",
       {{"page", number}, {"kind", doorbell_kind}, {"reason", doorbell_reason}}},
      {K::wqe_fetch, "wqe_fetch", {{"qp", hex}, {"queue", queue}, {"bytes", bytes}}},
      {K::wqe,
       "wqe",
       {{"qp", hex},
        {"queue", queue},
        {"index", number},
        {"opcode", send_opcode},
        {"bytes", bytes},
        {"signaled", number, kIfSet}}},
      {K::packet_sent, "packet_sent", packet_fields()},
      {K::packet_received, "packet_received", packet_fields()},
      {K::packet_dropped, "packet_dropped", {{"cause", drop_cause}}},
      {K::frame_sent, "frame_sent", {{"bytes", bytes}}},
      {K::frame_received, "frame_received", {{"bytes", bytes}, {"arrives_in", duration, kIfSet}}},
      {K::frame_fault, "frame_fault", {{"rule", number}, {"action", fault_action}, {"bytes", bytes}}},
      {K::cqe,
       "cqe",
       {{"qp", hex},
        {"cq", hex},
        {"index", number},
        {"opcode", cqe_opcode},
        {"wqe_counter", number},
        {"syndrome", cqe_syndrome},
        {"byte_count", bytes},
        {"send_opcode", send_opcode, kIfSet},
        {"immediate", hex, kIfSet}}},
      {K::eqe, "eqe", {{"eq", number}, {"type", event_type}, {"number", hex}}},
      {K::eqe_lost, "eqe_lost", {{"eq", number}, {"type", event_type}, {"number", hex}}},
      {K::interrupt, "interrupt", {{"vector", number}}},
      {K::event_taken, "event_taken", {{"type", event_type}, {"number", hex}}},
      {K::qp_state, "qp_state", {{"qp", hex}, {"from", FieldStyle::qp_state}, {"to", FieldStyle::qp_state}}},
      {K::dma_abort,
       "dma_abort",
       {{"process", number}, {"write", number}, {"reason", abort_reason}, {"bytes", bytes}, {"address", hex, kIfSet}}},
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
      {K::mmio_write, "mmio_write", with_words({{"offset", hex}, {"bytes", bytes}, {"part", number, kIfSet}})},
      {K::mmio_read, "mmio_read", {{"offset", hex}, {"bytes", bytes}}},
      {K::config_write, "config_write", {{"offset", hex}, {"bytes", bytes}, {"value", hex}}},
      {K::config_read, "config_read", {{"offset", hex}, {"bytes", bytes}}},
      {K::memory, "memory",
       with_words({{"process", number}, {"address", hex}, {"bytes", bytes}, {"since", duration, kIfSet}})},
      {K::memory_pinned,
       "memory_pinned",
       {{"process", number}, {"address", hex}, {"bytes", bytes}, {"writable", number}, {"pinned", number}}},
      {K::memory_absent, "memory_absent", {{"process", number}, {"address", hex}, {"bytes", bytes}}},
      {K::memory_on_demand, "memory_on_demand", {{"process", number}, {"address", hex}, {"bytes", bytes}}},
      {K::process, "process", {{"process", number}, {"state", number}}},
      {K::awaited,
       "awaited",
       {{"what", number}, {"owner", number}, {"address", hex}, {"count", number}, {"came", duration}}},
      {K::command_bytes, "command_bytes",
       with_words({{"process", number},
                   {"opcode", command_opcode},
                   {"object", hex},
                   {"answer", number, kIfSet},
                   {"bytes", bytes},
                   {"part", number, kIfSet}})},
      {K::posted,
       "posted",
       {{"qp", hex, kIfSet},
        {"queue", queue},
        {"index", number},
        {"wqes", number},
        {"called", duration},
        {"process", number},
        {"srq", hex, kIfSet}}},
      {K::polled,
       "polled",
       {{"cq", hex}, {"consumer", number}, {"cqes", number}, {"called", duration}, {"process", number}}},
      {K::tlp,
       "tlp",
       {{"direction", FieldStyle::tlp_direction},
        {"type", FieldStyle::tlp_type},
        {"bytes", bytes},
        {"tag", number, kIfSet},
        {"process", number, kIfSet},
        {"address", hex, kIfSet}}},
  };
  return table;
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

const KindInfo& info(EventKind kind) {
  static const auto& table = kinds();
  return table.at(std::size_t(kind));
}

std::optional<std::uint32_t> qp_by_fields(const TraceEvent& event) {
  const auto& fields = event.fields;
  switch (event.kind) {
    case EventKind::posted: return fields[0] != 0 ? std::optional(std::uint32_t(fields[0])) : std::nullopt;
    case EventKind::refused: return fields[2] != 0 ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::command:
    case EventKind::command_bytes:
      return is_qp_command(fields[1]) ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::device_command:
      return is_qp_command(fields[0]) ? std::optional(std::uint32_t(fields[1])) : std::nullopt;
    case EventKind::eqe:
    case EventKind::eqe_lost: return is_qp_event(fields[1]) ? std::optional(std::uint32_t(fields[2])) : std::nullopt;
    case EventKind::event_taken: return is_qp_event(fields[0]) ? std::optional(std::uint32_t(fields[1])) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace rnicsim::sim
