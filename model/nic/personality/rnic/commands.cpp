// SPDX-License-Identifier: Apache-2.0
// Command queue and mailboxes of the device in docs/device.md.
#include "model/abi/command.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "model/nic/personality/rnic/rnic.h"

namespace rnicsim::nic {
namespace {

using Bytes = std::span<const std::byte>;
using Input = decltype(Command::input);

static_assert(SrqModification::kLimit == abi::ModifySrq::kLimit && SrqModification::kRing == abi::ModifySrq::kRing);

template <class Mailbox>
Mailbox load(Bytes bytes) {
  Mailbox mailbox;
  std::memcpy(static_cast<void*>(&mailbox), bytes.data(), sizeof(mailbox));
  return mailbox;
}

template <class Mailbox>
Input context_in(Bytes bytes) {
  return context_of(load<Mailbox>(bytes).context);
}

Input nothing(Bytes) { return {}; }

Input icm_range(Bytes bytes) {
  const auto in = load<abi::MapIcm>(bytes);
  return IcmRange{static_cast<IcmTable>(std::uint32_t(in.table)), in.first_index, in.count, in.memory};
}

Input gid_setting(Bytes bytes) {
  const auto in = load<abi::SetGid>(bytes);
  const auto vlan = in.vlan == 0 ? roce::kNoVlan : std::uint16_t(in.vlan);
  return GidSetting{in.index, in.valid != 0, std::to_array(in.mac), std::to_array(in.gid), vlan};
}

Input moderation(Bytes bytes) {
  const auto in = load<abi::ModifyCq>(bytes);
  return CqModeration{in.moderation_count, in.moderation_period};
}

Input resize(Bytes bytes) {
  const auto in = load<abi::ResizeCq>(bytes);
  return CqResize{in.header.object, in.ring, in.log_entries};
}

// Only the fixed fields of the mailbox count: attributes come with the transitions.
Input new_qp(Bytes bytes) {
  const auto given = load<abi::CreateQp>(bytes).context;
  abi::Qpc fixed;
  std::memcpy(static_cast<void*>(&fixed), &given, offsetof(abi::Qpc, port));
  fixed.xrcd = given.xrcd;
  fixed.source_qpn = given.source_qpn;
  return context_of(fixed);
}

Input qp_modification(Bytes bytes) {
  const auto in = load<abi::ModifyQp>(bytes);
  return QpModification{in.attributes, static_cast<roce::QpState>(in.current_state), context_of(in.context)};
}

Input srq_modification(Bytes bytes) {
  const auto in = load<abi::ModifySrq>(bytes);
  return SrqModification{in.attributes, in.limit, in.ring, in.log_entries};
}

Input group(Bytes bytes) { return MulticastGroup{std::to_array(load<abi::MulticastGroup>(bytes).gid)}; }

template <std::size_t size>
std::array<std::byte, size> bytes_of(const std::uint8_t (&bytes)[size]) {
  return std::bit_cast<std::array<std::byte, size>>(std::to_array(bytes));
}

// No queues in the result: more queues were requested than the mailbox can hold.
Input rss_context(Bytes bytes) {
  const auto in = load<abi::CreateRss>(bytes);
  RssContext context{.fields = in.fields, .key = bytes_of(in.key), .queues = {}};
  if (in.log_queues > abi::CreateRss::kMostLogQueues) return context;
  for (std::size_t i = 0; i < std::size_t{1} << in.log_queues; ++i) context.queues.push_back({in.queues[i]});
  return context;
}

FlowCondition condition_of(const abi::FlowCondition& given) {
  return {.header = static_cast<FlowHeader>(given.header),
          .inner = given.inner != 0,
          .value = bytes_of(given.value),
          .mask = bytes_of(given.mask)};
}

Input flow_rule(Bytes bytes) {
  const auto in = load<abi::CreateFlow>(bytes);
  FlowRule rule{.kind = static_cast<FlowKind>(in.kind),
                .priority = in.priority,
                .conditions = {},
                .drops = (in.flags & abi::CreateFlow::kDrop) != 0,
                .passes_on = (in.flags & abi::CreateFlow::kPassOn) != 0,
                .tag = {},
                .counter = {},
                .destination = {in.qpn}};
  if ((in.flags & abi::CreateFlow::kTag) != 0) rule.tag = in.tag;
  if ((in.flags & abi::CreateFlow::kCount) != 0) rule.counter = in.counter;
  const auto count = std::min<std::size_t>(in.conditions_count, std::size(in.conditions));
  for (const auto& given : std::span(in.conditions).first(count)) rule.conditions.push_back(condition_of(given));
  // One extra condition marks a count beyond the mailbox.
  if (in.conditions_count > count) rule.conditions.emplace_back();
  return rule;
}

struct Row {
  abi::CommandOpcode opcode;
  std::size_t input;
  std::size_t output;
  Input (*decode)(Bytes);
};

const Row* find(std::uint16_t opcode) {
  using enum abi::CommandOpcode;
  constexpr auto h = sizeof(abi::CommandHeader);
  constexpr auto r = sizeof(abi::CommandResult);
  static constexpr Row kRows[] = {
      {query_device, h, sizeof(abi::DeviceCapabilities), nothing},
      {initialize, h, r, nothing},
      {teardown, h, r, nothing},
      {map_icm, sizeof(abi::MapIcm), r, icm_range},
      {unmap_icm, sizeof(abi::MapIcm), r, icm_range},
      {query_port, h, sizeof(abi::PortAttributes), nothing},
      {set_gid, sizeof(abi::SetGid), r, gid_setting},
      {query_port_counters, h, sizeof(abi::PortCounters), nothing},
      {create_eq, sizeof(abi::CreateEq), r, context_in<abi::CreateEq>},
      {destroy_eq, h, r, nothing},
      {create_cq, sizeof(abi::CreateCq), r, context_in<abi::CreateCq>},
      {destroy_cq, h, r, nothing},
      {query_cq, h, sizeof(abi::QueryCq), nothing},
      {modify_cq, sizeof(abi::ModifyCq), r, moderation},
      {resize_cq, sizeof(abi::ResizeCq), sizeof(abi::ResizedCq), resize},
      {create_mpt, sizeof(abi::CreateMpt), r, context_in<abi::CreateMpt>},
      {destroy_mpt, h, r, nothing},
      {query_mpt, h, sizeof(abi::QueryMpt), nothing},
      {modify_mpt, sizeof(abi::CreateMpt), r, context_in<abi::CreateMpt>},
      {create_srq, sizeof(abi::CreateSrq), r, context_in<abi::CreateSrq>},
      {destroy_srq, h, r, nothing},
      {query_srq, h, sizeof(abi::QuerySrq), nothing},
      {modify_srq, sizeof(abi::ModifySrq), r, srq_modification},
      {create_qp, sizeof(abi::CreateQp), r, new_qp},
      {destroy_qp, h, r, nothing},
      {modify_qp, sizeof(abi::ModifyQp), r, qp_modification},
      {query_qp, h, sizeof(abi::QueryQp), nothing},
      {attach_multicast, sizeof(abi::MulticastGroup), r, group},
      {detach_multicast, sizeof(abi::MulticastGroup), r, group},
      {create_rss, sizeof(abi::CreateRss), r, rss_context},
      {destroy_rss, h, r, nothing},
      {create_flow, sizeof(abi::CreateFlow), r, flow_rule},
      {destroy_flow, h, r, nothing},
      {create_counter, h, r, nothing},
      {destroy_counter, h, r, nothing},
      {query_counter, h, sizeof(abi::QueryCounter), nothing},
  };
  for (const auto& row : kRows)
    if (static_cast<std::uint16_t>(row.opcode) == opcode) return &row;
  return nullptr;
}

abi::CommandResult mailbox_of(std::monostate) { return {}; }

abi::DeviceCapabilities mailbox_of(const DeviceCapabilities& given) {
  abi::DeviceCapabilities caps;
  caps.features = feature_bits(given.features);
  caps.firmware_version = kFirmware;
  caps.max_mr_size = given.max_mr_size;
  caps.vendor_part_id = given.vendor_part_id;
  caps.max_qp = given.max_qp;
  caps.max_qp_wr = given.max_qp_wr;
  caps.max_send_sge = given.max_send_sge;
  caps.max_receive_sge = given.max_receive_sge;
  caps.max_cq = given.max_cq;
  caps.max_cqe = given.max_cqe;
  caps.max_cq_moderation_count = given.max_cq_moderation_count;
  caps.max_cq_moderation_period = given.max_cq_moderation_period;
  caps.max_srq = given.max_srq;
  caps.max_srq_wr = given.max_srq_wr;
  caps.max_srq_sge = given.max_srq_sge;
  caps.max_mr = given.max_mr;
  caps.max_mtt = given.max_mtt;
  caps.max_pd = given.max_pd;
  caps.max_ah = given.max_ah;
  caps.max_multicast_groups = given.max_multicast_groups;
  caps.max_group_qps = given.max_group_qps;
  caps.max_attached_qps = given.max_attached_qps;
  caps.max_frame = given.max_frame;
  caps.max_flows = given.max_flows;
  caps.max_flow_counters = given.max_flow_counters;
  caps.max_rss = given.max_rss;
  caps.max_rss_queues = given.max_rss_queues;
  caps.max_tso = given.max_tso;
  caps.max_tso_header = given.max_tso_header;
  caps.min_rate_limit = given.min_rate_limit;
  caps.max_rate_limit = given.max_rate_limit;
  caps.device_memory = given.device_memory;
  caps.max_inline = given.max_inline;
  caps.max_inline_receive = given.max_inline_receive;
  caps.max_rd_atomic = given.max_rd_atomic;
  caps.local_ca_ack_delay = given.local_ca_ack_delay;
  caps.max_eq = given.max_eq;
  caps.ports = given.ports;
  caps.core_clock_khz = given.core_clock_khz;
  caps.atomic = given.atomic;
  return caps;
}

abi::PortAttributes mailbox_of(const PortAttributes& given) {
  abi::PortAttributes port;
  port.state = given.state;
  port.max_mtu = given.max_mtu;
  port.active_mtu = given.active_mtu;
  port.physical_state = given.physical_state;
  port.active_speed = given.active_speed;
  port.active_width = given.active_width;
  port.gid_table_length = given.gid_table_length;
  port.max_message = given.max_message;
  port.pkey_table_length = given.pkey_table_length;
  std::ranges::copy(given.mac, port.mac);
  port.pkey_violations = given.pkey_violations;
  port.qkey_violations = given.qkey_violations;
  return port;
}

abi::PortCounters mailbox_of(const PortStatistics& given) {
  abi::PortCounters counters;
  counters.transmitted_packets = given.transmitted_packets;
  counters.transmitted_bytes = given.transmitted_bytes;
  counters.transmitted_to_groups = given.transmitted_to_groups;
  counters.received_packets = given.received_packets;
  counters.received_bytes = given.received_bytes;
  counters.received_from_groups = given.received_from_groups;
  counters.transmit_discards = given.transmit_discards;
  counters.receive_errors = given.receive_errors;
  counters.rx_icrc_encapsulated = given.rx_icrc_encapsulated;
  counters.rx_write_requests = given.rx_write_requests;
  counters.rx_read_requests = given.rx_read_requests;
  counters.rx_atomic_requests = given.rx_atomic_requests;
  counters.out_of_buffer = given.out_of_buffer;
  counters.out_of_sequence = given.out_of_sequence;
  counters.duplicate_request = given.duplicate_request;
  counters.rnr_nak_retry_err = given.rnr_nak_retry_err;
  counters.packet_seq_err = given.packet_seq_err;
  counters.implied_nak_seq_err = given.implied_nak_seq_err;
  counters.local_ack_timeout_err = given.local_ack_timeout_err;
  counters.roce_adp_retrans = given.roce_adp_retrans;
  counters.resp_local_length_error = given.resp_local_length_error;
  counters.resp_cqe_error = given.resp_cqe_error;
  counters.resp_cqe_flush_error = given.resp_cqe_flush_error;
  counters.resp_remote_access_errors = given.resp_remote_access_errors;
  counters.req_cqe_error = given.req_cqe_error;
  counters.req_cqe_flush_error = given.req_cqe_flush_error;
  counters.req_remote_invalid_request = given.req_remote_invalid_request;
  counters.req_remote_access_errors = given.req_remote_access_errors;
  counters.req_transport_retries_exceeded = given.req_transport_retries_exceeded;
  counters.req_rnr_retries_exceeded = given.req_rnr_retries_exceeded;
  counters.roce_slow_restart_cnps = given.roce_slow_restart_cnps;
  counters.np_cnp_sent = given.np_cnp_sent;
  counters.np_ecn_marked_roce_packets = given.np_ecn_marked_roce_packets;
  counters.rp_cnp_handled = given.rp_cnp_handled;
  counters.rp_cnp_ignored = given.rp_cnp_ignored;
  return counters;
}

abi::ResizedCq mailbox_of(const CqResized& given) {
  abi::ResizedCq resized;
  resized.producer = given.producer;
  return resized;
}

abi::QueryCounter mailbox_of(const FlowCounterValue& given) {
  abi::QueryCounter counter;
  counter.packets = given.packets;
  counter.bytes = given.bytes;
  return counter;
}

abi::QueryCq mailbox_of(const CompletionQueue& queue) { return {{}, layout_of(queue)}; }
abi::QueryMpt mailbox_of(const MemoryRegion& region) { return {{}, layout_of(region)}; }
abi::QueryQp mailbox_of(const QpContext& context) { return {{}, layout_of(context)}; }
abi::QuerySrq mailbox_of(const SharedReceiveQueue& queue) { return {{}, layout_of(queue)}; }

}  // namespace

CommandEntry RnicPersonality::decode_command_entry(std::span<const std::byte> bytes) const {
  const auto entry = load<abi::CommandEntry>(bytes);
  return {.device_owns = entry.owner == 1,
          .input_bytes = entry.input_bytes,
          .output_bytes = entry.output_bytes,
          .input = entry.input,
          .output = entry.output};
}

Command RnicPersonality::decode_command(std::span<const std::byte> mailbox, std::uint32_t output_bytes) const {
  const auto header = load<abi::CommandHeader>(mailbox);
  Command command{.opcode = static_cast<CommandOpcode>(std::uint16_t(header.opcode)), .object = header.object};
  const auto* row = find(header.opcode);
  if (row == nullptr)
    command.refused = CommandStatus::bad_opcode;
  else if (mailbox.size() < row->input)
    command.refused = CommandStatus::bad_input_length;
  else if (output_bytes < row->output)
    command.refused = CommandStatus::bad_output_length;
  else
    command.input = row->decode(mailbox);
  return command;
}

std::vector<std::byte> RnicPersonality::encode(const CommandResult& result, const CommandOutput& output) const {
  abi::CommandResult head;
  head.status = static_cast<abi::CommandStatus>(result.status);
  head.syndrome = result.syndrome;
  head.object = result.object;
  return std::visit(
      [&head](const auto& given) {
        const auto mailbox = mailbox_of(given);
        std::vector<std::byte> bytes(sizeof(mailbox));
        std::memcpy(bytes.data(), &mailbox, sizeof(mailbox));
        std::memcpy(bytes.data(), &head, sizeof(head));
        return bytes;
      },
      output);
}

std::vector<std::byte> RnicPersonality::command_done(CommandStatus status) const {
  static_assert(offsetof(abi::CommandEntry, owner) == 0 && offsetof(abi::CommandEntry, status) == 1);
  return {std::byte{0}, static_cast<std::byte>(status)};
}

}  // namespace rnicsim::nic
