// SPDX-License-Identifier: Apache-2.0
// Commands of the driver and their results, decoded.
#pragma once

#include <cstdint>
#include <variant>

#include "model/nic/personality/contexts.h"
#include "model/nic/personality/flows.h"
#include "model/nic/personality/values.h"

namespace rnicsim::nic {

// An entry of the command queue.
struct CommandEntry {
  bool device_owns = false;
  std::uint32_t input_bytes = 0;
  std::uint32_t output_bytes = 0;
  std::uint64_t input = 0;
  std::uint64_t output = 0;
};

// --- Inputs of commands.
struct IcmRange {
  IcmTable table{};  // may be an invalid value
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint64_t memory = 0;
};
struct GidSetting {
  std::uint16_t index = 0;
  bool valid = false;
  roce::MacAddress mac{};
  roce::Gid gid{};
  std::uint16_t vlan = roce::kNoVlan;
};
struct CqModeration {
  std::uint16_t count = 0;
  std::uint16_t period = 0;  // us
};
struct QpModification {
  std::uint32_t attributes = 0;   // roce::attr bits
  roce::QpState current_state{};  // if attr::kCurrentState is set
  QpContext context;              // attributes named by `attributes`; `state` if attr::kState is set
};
struct SrqModification {
  std::uint32_t attributes = 0;  // kLimit, kRing
  std::uint32_t limit = 0;
  std::uint64_t ring = 0;  // a larger ring, whose first entries are those of the old ring
  std::uint8_t log_entries = 0;

  static constexpr std::uint32_t kLimit = 1u << 0;
  static constexpr std::uint32_t kRing = 1u << 1;
};
struct MulticastGroup {
  roce::Gid gid{};
};
struct FlowCounterValue {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

struct Command {
  CommandOpcode opcode{};  // may be an invalid value, which is refused
  std::uint32_t object = 0;
  CommandStatus refused = CommandStatus::ok;  // mailbox too short, or unknown opcode
  std::variant<std::monostate, IcmRange, GidSetting, EventQueueContext, CompletionQueue, CqModeration, CqResize,
               MemoryRegion, QpContext, QpModification, SharedReceiveQueue, SrqModification, MulticastGroup, RssContext,
               FlowRule>
      input{};
};

// --- Outputs of commands.
struct DeviceFeatures {
  bool invalidate = false;
  bool uc = false;
  bool ud = false;
  bool srq = false;
  bool multicast = false;
  bool windows = false;
  bool raw = false;
  bool atomic_write = false;
  bool pacing = false;
  bool source_qpn = false;
  bool device_memory = false;
  bool write_padding = false;
  bool relaxed_ordering = false;
  bool xrc = false;
  bool on_demand = false;
  bool fast_register = false;
};
struct DeviceCapabilities {
  DeviceFeatures features;
  std::uint64_t max_mr_size = 0;
  std::uint32_t vendor_part_id = 0;
  std::uint32_t max_qp = 0;
  std::uint32_t max_qp_wr = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_receive_sge = 0;
  std::uint32_t max_cq = 0;
  std::uint32_t max_cqe = 0;
  std::uint32_t max_mr = 0;
  std::uint32_t max_pd = 0;
  std::uint32_t max_inline = 0;
  std::uint32_t max_rd_atomic = 0;
  std::uint32_t local_ca_ack_delay = 0;
  std::uint32_t max_eq = 0;
  std::uint32_t ports = 0;
  std::uint32_t core_clock_khz = 0;
  std::uint32_t atomic = 0;  // enum ibv_atomic_cap
  std::uint32_t max_srq = 0;
  std::uint32_t max_ah = 0;
  std::uint32_t max_mtt = 0;
  std::uint32_t max_inline_receive = 0;
  std::uint16_t max_cq_moderation_count = 0;
  std::uint16_t max_cq_moderation_period = 0;  // us
  std::uint32_t max_srq_wr = 0;
  std::uint32_t max_srq_sge = 0;
  std::uint32_t max_multicast_groups = 0;
  std::uint32_t max_group_qps = 0;
  std::uint32_t max_attached_qps = 0;
  std::uint32_t max_frame = 0;
  std::uint32_t max_flows = 0;
  std::uint32_t max_flow_counters = 0;
  std::uint32_t max_rss = 0;
  std::uint32_t max_rss_queues = 0;
  std::uint32_t max_tso = 0;
  std::uint32_t max_tso_header = 0;
  std::uint32_t min_rate_limit = 0;  // kb/s
  std::uint32_t max_rate_limit = 0;
  std::uint32_t device_memory = 0;  // bytes
};
struct PortAttributes {
  std::uint8_t state = 0;  // values as in ibv_port_attr
  std::uint8_t max_mtu = 0;
  std::uint8_t active_mtu = 0;
  std::uint8_t physical_state = 0;
  std::uint8_t active_speed = 0;
  std::uint8_t active_width = 0;
  std::uint16_t gid_table_length = 0;
  std::uint32_t max_message = 0;
  std::uint16_t pkey_table_length = 0;
  roce::MacAddress mac{};
  std::uint16_t pkey_violations = 0;
  std::uint16_t qkey_violations = 0;
};
// Counts of port and transport since power-on.
struct PortStatistics {
  std::uint64_t transmitted_packets = 0;
  std::uint64_t transmitted_bytes = 0;
  std::uint64_t transmitted_to_groups = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t received_from_groups = 0;
  std::uint64_t transmit_discards = 0;
  std::uint64_t receive_errors = 0;
  std::uint64_t rx_icrc_encapsulated = 0;
  std::uint64_t rx_write_requests = 0;
  std::uint64_t rx_read_requests = 0;
  std::uint64_t rx_atomic_requests = 0;
  std::uint64_t out_of_buffer = 0;
  std::uint64_t out_of_sequence = 0;
  std::uint64_t duplicate_request = 0;
  std::uint64_t rnr_nak_retry_err = 0;
  std::uint64_t packet_seq_err = 0;
  std::uint64_t implied_nak_seq_err = 0;
  std::uint64_t local_ack_timeout_err = 0;
  std::uint64_t roce_adp_retrans = 0;
  std::uint64_t resp_local_length_error = 0;
  std::uint64_t resp_cqe_error = 0;
  std::uint64_t resp_cqe_flush_error = 0;
  std::uint64_t resp_remote_access_errors = 0;
  std::uint64_t req_cqe_error = 0;
  std::uint64_t req_cqe_flush_error = 0;
  std::uint64_t req_remote_invalid_request = 0;
  std::uint64_t req_remote_access_errors = 0;
  std::uint64_t req_transport_retries_exceeded = 0;
  std::uint64_t req_rnr_retries_exceeded = 0;
  std::uint64_t roce_slow_restart_cnps = 0;
  std::uint64_t np_cnp_sent = 0;
  std::uint64_t np_ecn_marked_roce_packets = 0;
  std::uint64_t rp_cnp_handled = 0;
  std::uint64_t rp_cnp_ignored = 0;
};
struct CqResized {
  std::uint32_t producer = 0;  // position of the first entry in the new ring
};

struct CommandResult {
  CommandStatus status = CommandStatus::ok;
  std::uint32_t syndrome = 0;
  std::uint32_t object = 0;
};

using CommandOutput = std::variant<std::monostate, DeviceCapabilities, PortAttributes, PortStatistics, CompletionQueue,
                                   CqResized, MemoryRegion, QpContext, SharedReceiveQueue, FlowCounterValue>;

}  // namespace rnicsim::nic
