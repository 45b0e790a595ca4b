// SPDX-License-Identifier: Apache-2.0
// Text form of events.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "model/abi/command.h"
#include "model/abi/queue.h"
#include "model/cm/connection.h"
#include "model/cm/messages.h"
#include "model/fabric/fault_rules.h"
#include "model/host/memory/iommu.h"
#include "model/nic/packets/packet_tx.h"
#include "model/nic/queues/doorbell.h"
#include "model/nic/seam/refusal.h"
#include "model/roce/opcode.h"
#include "sim/results/text_number.h"
#include "sim/trace_file/format.h"

namespace rnicsim::sim {
namespace {

// Without `default`, so that the compiler reports an enumerator without a name.
const char* name_of(abi::CommandOpcode opcode) {
  using enum abi::CommandOpcode;
  switch (opcode) {
    case query_device: return "query_device";
    case initialize: return "initialize";
    case teardown: return "teardown";
    case map_icm: return "map_icm";
    case unmap_icm: return "unmap_icm";
    case query_port: return "query_port";
    case set_gid: return "set_gid";
    case query_port_counters: return "query_port_counters";
    case create_eq: return "create_eq";
    case destroy_eq: return "destroy_eq";
    case create_cq: return "create_cq";
    case destroy_cq: return "destroy_cq";
    case query_cq: return "query_cq";
    case modify_cq: return "modify_cq";
    case resize_cq: return "resize_cq";
    case create_mpt: return "create_mpt";
    case destroy_mpt: return "destroy_mpt";
    case query_mpt: return "query_mpt";
    case modify_mpt: return "modify_mpt";
    case create_qp: return "create_qp";
    case destroy_qp: return "destroy_qp";
    case modify_qp: return "modify_qp";
    case query_qp: return "query_qp";
    case create_srq: return "create_srq";
    case destroy_srq: return "destroy_srq";
    case query_srq: return "query_srq";
    case modify_srq: return "modify_srq";
    case attach_multicast: return "attach_multicast";
    case detach_multicast: return "detach_multicast";
    case create_rss: return "create_rss";
    case destroy_rss: return "destroy_rss";
    case create_flow: return "create_flow";
    case destroy_flow: return "destroy_flow";
    case create_counter: return "create_counter";
    case destroy_counter: return "destroy_counter";
    case query_counter: return "query_counter";
  }
  return nullptr;
}

const char* name_of(abi::CommandStatus status) {
  using enum abi::CommandStatus;
  switch (status) {
    case ok: return "ok";
    case internal_error: return "internal_error";
    case bad_opcode: return "bad_opcode";
    case bad_parameter: return "bad_parameter";
    case bad_resource: return "bad_resource";
    case resource_busy: return "resource_busy";
    case exceeds_limit: return "exceeds_limit";
    case bad_state: return "bad_state";
    case bad_input_length: return "bad_input_length";
    case bad_output_length: return "bad_output_length";
    case not_supported: return "not_supported";
    case bad_mailbox: return "bad_mailbox";
  }
  return nullptr;
}

const char* name_of(abi::SendOpcode opcode) {
  using enum abi::SendOpcode;
  switch (opcode) {
    case nop: return "NOP";
    case send_with_inv: return "SEND_WITH_INV";
    case write: return "WRITE";
    case write_with_imm: return "WRITE_WITH_IMM";
    case send: return "SEND";
    case send_with_imm: return "SEND_WITH_IMM";
    case read: return "READ";
    case compare_swap: return "COMPARE_SWAP";
    case fetch_add: return "FETCH_ADD";
    case tso: return "TSO";
    case atomic_write: return "ATOMIC_WRITE";
    case bind_window: return "BIND_WINDOW";
    case fast_register: return "FAST_REGISTER";
    case local_inv: return "LOCAL_INV";
  }
  return nullptr;
}

const char* name_of(abi::CqeOpcode opcode) {
  using enum abi::CqeOpcode;
  switch (opcode) {
    case requester: return "requester";
    case receive_write_with_imm: return "receive_write_with_imm";
    case receive_send: return "receive_send";
    case receive_send_with_imm: return "receive_send_with_imm";
    case receive_send_with_inv: return "receive_send_with_inv";
    case requester_error: return "requester_error";
    case responder_error: return "responder_error";
    case invalid: return "invalid";
  }
  return nullptr;
}

const char* name_of(abi::CqeSyndrome syndrome) {
  using enum abi::CqeSyndrome;
  switch (syndrome) {
    case success: return "success";
    case local_length_error: return "local_length_error";
    case local_qp_operation_error: return "local_qp_operation_error";
    case local_protection_error: return "local_protection_error";
    case flushed_error: return "flushed_error";
    case memory_window_bind_error: return "memory_window_bind_error";
    case bad_response_error: return "bad_response_error";
    case local_access_error: return "local_access_error";
    case remote_invalid_request_error: return "remote_invalid_request_error";
    case remote_access_error: return "remote_access_error";
    case remote_operation_error: return "remote_operation_error";
    case transport_retry_exceeded: return "transport_retry_exceeded";
    case rnr_retry_exceeded: return "rnr_retry_exceeded";
    case remote_aborted_error: return "remote_aborted_error";
    case fatal_error: return "fatal_error";
    case general_error: return "general_error";
  }
  return nullptr;
}

const char* name_of(abi::EventType type) {
  using enum abi::EventType;
  switch (type) {
    case completion: return "completion";
    case communication_established: return "communication_established";
    case send_queue_drained: return "send_queue_drained";
    case last_wqe_reached: return "last_wqe_reached";
    case srq_limit: return "srq_limit";
    case cq_error: return "cq_error";
    case qp_fatal: return "qp_fatal";
    case qp_request_error: return "qp_request_error";
    case qp_access_error: return "qp_access_error";
    case srq_error: return "srq_error";
    case port_active: return "port_active";
    case port_error: return "port_error";
    case device_fatal: return "device_fatal";
  }
  return nullptr;
}

const char* packet_name(std::uint64_t opcode) {
  const auto* row = opcode < 256 ? roce::find_opcode(std::uint8_t(opcode)) : nullptr;
  return row != nullptr ? row->name : nullptr;
}

// Names by value, for enumerations without gaps.
constexpr const char* kQpStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
constexpr const char* kQueues[] = {"send", "receive", "shared_receive"};
constexpr const char* kDropCauses[] = {"no_source_gid", "wrong_icrc", "malformed", "not_roce", "not_ours", "bad_pkey"};
constexpr const char* kDoorbellKinds[] = {"send", "blueflame", "cq_arm", "unknown"};
constexpr const char* kDoorbellReasons[] = {"wrong_page", "malformed"};
constexpr const char* kRefusedWhats[] = {"send_doorbell", "blueflame",  "cq_arm",    "eq_doorbell",
                                         "doorbell",      "mmio_write", "mmio_read", "command",
                                         "dma_read",      "dma_write",  "memory"};
static_assert(std::size(kRefusedWhats) == std::size_t(nic::Refusal::What::memory) + 1);
constexpr const char* kRefusedWhys[] = {"no_object",     "wrong_page",  "malformed",  "past_ring",      "wrong_state",
                                        "no_send_queue", "no_register", "memory_off", "bus_master_off", "bad_alignment",
                                        "unreadable",    "not_owned",   "bad_key",    "bad_range",      "other_pd",
                                        "no_right",      "device_fatal"};
static_assert(std::size(kRefusedWhys) == std::size_t(nic::Refusal::Why::device_fatal) + 1);
constexpr const char* kAbortReasons[] = {"no_process", "not_pinned", "not_mapped", "read_only"};
static_assert(std::size(kDropCauses) == std::size_t(nic::DropCause::bad_pkey) + 1);
static_assert(std::size(kDoorbellKinds) == std::size_t(nic::DoorbellRefused::Kind::unknown) + 1);
constexpr const char* kFaultActions[] = {"drop", "corrupt", "duplicate", "delay", "reorder"};
static_assert(std::size(kFaultActions) == std::size_t(fabric::FaultAction::reorder) + 1);
constexpr const char* kCmMessages[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                       "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
static_assert(std::size(kCmMessages) == std::variant_size_v<cm::Message>);
constexpr const char* kCmStates[] = {"idle",
                                     "request_sent",
                                     "request_received",
                                     "request_acknowledged",
                                     "reply_sent",
                                     "reply_received",
                                     "established",
                                     "disconnect_sent",
                                     "disconnect_received",
                                     "timewait",
                                     "service_request_sent",
                                     "service_request_received"};
static_assert(std::size(kCmStates) == std::size_t(cm::State::service_request_received) + 1);
constexpr const char* kTlpDirections[] = {"to_host", "to_device"};
static_assert(std::size(kTlpDirections) == std::size_t(TlpDirection::to_device) + 1);
constexpr const char* kTlpTypes[] = {"memory_read", "memory_write", "config_read", "config_write", "completion"};
static_assert(std::size(kTlpTypes) == std::size_t(TlpType::completion) + 1);
static_assert(std::size(kAbortReasons) == std::size_t(host::IommuFault::Reason::read_only) + 1);

template <std::size_t count>
const char* pick(const char* const (&names)[count], std::uint64_t value) {
  return value < count ? names[value] : nullptr;
}

template <class Enum>
const char* name_if_fits(std::uint64_t value) {
  const auto narrow = Enum(value);
  return std::uint64_t(narrow) == value ? name_of(narrow) : nullptr;
}

const char* name_of(FieldStyle style, std::uint64_t value) {
  switch (style) {
    case FieldStyle::packet_opcode: return packet_name(value);
    case FieldStyle::send_opcode: return name_if_fits<abi::SendOpcode>(value);
    case FieldStyle::cqe_opcode: return name_if_fits<abi::CqeOpcode>(value);
    case FieldStyle::cqe_syndrome: return name_if_fits<abi::CqeSyndrome>(value);
    case FieldStyle::event_type: return name_if_fits<abi::EventType>(value);
    case FieldStyle::command_opcode: return name_if_fits<abi::CommandOpcode>(value);
    case FieldStyle::command_status: return name_if_fits<abi::CommandStatus>(value);
    case FieldStyle::qp_state: return pick(kQpStates, value);
    case FieldStyle::queue: return pick(kQueues, value);
    case FieldStyle::drop_cause: return pick(kDropCauses, value);
    case FieldStyle::doorbell_kind: return pick(kDoorbellKinds, value);
    case FieldStyle::doorbell_reason: return pick(kDoorbellReasons, value);
    case FieldStyle::refused_what: return pick(kRefusedWhats, value);
    case FieldStyle::refused_why: return pick(kRefusedWhys, value);
    case FieldStyle::abort_reason: return pick(kAbortReasons, value);
    case FieldStyle::fault_action: return pick(kFaultActions, value);
    case FieldStyle::cm_message: return pick(kCmMessages, value);
    case FieldStyle::cm_state: return pick(kCmStates, value);
    case FieldStyle::tlp_direction: return pick(kTlpDirections, value);
    case FieldStyle::tlp_type: return pick(kTlpTypes, value);
    default: return nullptr;
  }
}

// A short text that is copied with one fixed size.
struct Label {
  static constexpr std::size_t kMost = 32;
  std::array<char, kMost> text{};
  std::size_t size = 0;

  Label(std::string_view before, std::string_view name, std::string_view behind) {
    for (const auto part : {before, name, behind})
      size = std::size_t(std::ranges::copy(part.substr(0, kMost - size), text.begin() + std::ptrdiff_t(size)).out -
                         text.begin());
  }
};

// Parts of the text of an event that are the same for all events of a kind.
struct FieldText {
  FieldStyle style;
  bool always;
  Label label;
};
struct KindText {
  Label name;
  std::vector<FieldText> fields;
};

const KindText& text_of(EventKind kind) {
  static const std::vector<KindText> table = [] {
    std::vector<KindText> texts;
    for (std::size_t i = 0; i < std::size_t(EventKind::count); ++i) {
      const auto& row = info(EventKind(i));
      auto& text = texts.emplace_back(KindText{{"  ", row.name, ""}, {}});
      for (const auto& field : row.fields) text.fields.push_back({field.style, field.always, {"  ", field.name, " "}});
    }
    return texts;
  }();
  return table[std::size_t(kind)];
}

// --- Each function writes at `end`, which has room, and returns the new end. A trace has tens of millions of fields: a
// local pointer stays in a register, while stores of characters could change a member.
constexpr std::size_t kMostName = 256, kMostValue = 64;  // of a host in the buffer; of a field's value
constexpr std::size_t kMostLine = 64 + kMostName + (TraceEvent::kMostFields + 1) * (Label::kMost + kMostValue);

char* put(char* end, std::string_view text) {
  std::memcpy(end, text.data(), text.size());
  return end + text.size();
}

char* put(char* end, const Label& label) {
  std::memcpy(end, label.text.data(), Label::kMost);
  return end + label.size;
}

char* put_digits(char* end, std::uint64_t value) {
  constexpr int kMostDigits = 20;
  if (value < 10) {
    *end = char('0' + value);
    return end + 1;
  }
  const auto half = std::uint32_t(value);  // of 32 bits: faster
  return (half == value ? std::to_chars(end, end + kMostDigits, half) : std::to_chars(end, end + kMostDigits, value))
      .ptr;
}

char* put_hex(char* end, std::uint64_t value) {
  *end++ = '0';
  *end++ = 'x';
  const int digits = value == 0 ? 1 : (int(std::bit_width(value)) + 3) / 4;
  for (int i = digits; i-- > 0; value >>= 4) end[i] = "0123456789abcdef"[value & 15];
  return end + digits;
}

// As append_microseconds().
char* put_microseconds(char* end, Duration at) {
  constexpr std::int64_t kPsPerUs = 1'000'000;
  end = put_digits(end, std::uint64_t(at.ps / kPsPerUs));
  auto rest = std::uint32_t(at.ps % kPsPerUs);
  *end = '.';
  for (int i = 6; i > 0; --i, rest /= 10) end[i] = char('0' + rest % 10);
  return end + 7;
}

// As to_string(), which converts to floating point: texts of up to 15 digits are equal.
char* put_duration(char* end, std::uint64_t ps) {
  constexpr std::uint64_t kLargestExact = 1'000'000'000'000'000;
  if (ps >= kLargestExact) return put(end, to_string(Duration{std::int64_t(ps)}));
  struct Unit {
    std::uint64_t scale;
    int decimals;
    std::string_view name;
  };
  static constexpr Unit kUnits[] = {{1, 0, " ps"},
                                    {1'000, 3, " ns"},
                                    {1'000'000, 6, " us"},
                                    {1'000'000'000, 9, " ms"},
                                    {1'000'000'000'000, 12, " s"}};
  const Unit* unit = kUnits;
  while (unit + 1 != std::end(kUnits) && ps >= unit[1].scale) ++unit;
  end = put_digits(end, ps / unit->scale);
  if (auto rest = ps % unit->scale; rest != 0) {
    int decimals = unit->decimals;
    for (; rest % 10 == 0; rest /= 10) --decimals;
    *end = '.';
    for (int i = decimals; i > 0; --i, rest /= 10) end[i] = char('0' + rest % 10);
    end += decimals + 1;
  }
  return put(end, unit->name);
}

char* put_value(char* end, FieldStyle style, std::uint64_t value) {
  if (style == FieldStyle::number || style == FieldStyle::bytes) return put_digits(end, value);
  if (style == FieldStyle::duration) return put_duration(end, value);
  if (const char* name = name_of(style, value)) return put(end, std::string_view(name).substr(0, kMostValue));
  return put_hex(end, value);
}

}  // namespace

const char* value_name(const FieldInfo& field, std::uint64_t value) { return name_of(field.style, value); }

void append_text(std::string& out, const FieldInfo& field, std::uint64_t value) {
  if (const char* name = name_of(field.style, value))
    out += name;
  else if (field.style == FieldStyle::duration)
    out += to_string(Duration{std::int64_t(value)});
  else if (field.style == FieldStyle::number || field.style == FieldStyle::bytes)
    append_digits(out, value);
  else
    append_digits(out += "0x", value, 16);
}

std::string to_text(const FieldInfo& field, std::uint64_t value) {
  std::string text;
  append_text(text, field, value);
  return text;
}

void append_text(std::string& out, const TraceEvent& event, std::span<const std::string> hosts) {
  char line[kMostLine];
  char* end = put(put_microseconds(line, event.at), " us  ");
  if (event.host >= hosts.size()) {
    end = put_digits(put(end, "host "), event.host);
  } else if (const auto& name = hosts[event.host]; name.size() <= kMostName) {
    end = put(end, name);
  } else {
    out.append(line, end) += name;
    end = line;
  }
  const auto& kind = text_of(event.kind);
  end = put(end, kind.name);
  const auto* value = event.fields.data();
  for (const auto *field = kind.fields.data(), *last = field + kind.fields.size(); field != last; ++field, ++value) {
    if (!field->always && *value == 0) continue;
    end = put_value(put(end, field->label), field->style, *value);
  }
  out.append(line, end);
}

std::string to_text(const TraceEvent& event, std::span<const std::string> hosts) {
  std::string text;
  append_text(text, event, hosts);
  return text;
}

}  // namespace rnicsim::sim
