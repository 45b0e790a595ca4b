// SPDX-License-Identifier: Apache-2.0
// The command queue, by which the driver creates, changes and queries the device's objects.
// Chapter 5 of docs/device.md is checked against this file.
//
// The driver writes a CommandEntry, sets `owner` to 1 (device), and writes the entry's bit to reg::kCommandDoorbell.
// The device fetches the entry and the input mailbox by DMA, executes the command, writes the output mailbox, then the
// entry's status and owner, and raises MSI-X vector 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/big_endian.h"
#include "model/abi/context.h"

namespace rnicsim::abi {

inline constexpr std::uint32_t kCommandLogEntries = 5;
inline constexpr std::uint32_t kMailboxBytes = 4096;  // the largest input or output

enum class CommandStatus : std::uint8_t {
  ok = 0x00,
  internal_error = 0x01,
  bad_opcode = 0x02,
  bad_parameter = 0x03,  // EINVAL
  bad_resource = 0x04,   // no such object: ENOENT
  resource_busy = 0x05,  // EBUSY
  exceeds_limit = 0x06,  // ENOMEM
  bad_state = 0x07,      // not allowed in this state: EINVAL
  bad_input_length = 0x08,
  bad_output_length = 0x09,
  not_supported = 0x0a,  // EOPNOTSUPP
  bad_mailbox = 0x0b,    // the mailbox could not be read or written
};

struct CommandEntry {
  std::uint8_t owner = 0;  // 1: the entry belongs to the device
  CommandStatus status = CommandStatus::ok;
  Be16 token;  // value of the driver, returned unchanged
  Be32 input_bytes;
  Be64 input;  // bus address in PASID 0
  Be64 output;
  Be32 output_bytes;
  Be32 reserved[9];
};
static_assert(sizeof(CommandEntry) == 64);

enum class CommandOpcode : std::uint16_t {
  query_device = 0x0100,         // out DeviceCapabilities
  initialize = 0x0101,           // after map_icm of the EQ table: the device becomes ready
  teardown = 0x0102,             // destroys every object, and returns all ICM
  map_icm = 0x0110,              // in MapIcm
  unmap_icm = 0x0111,            // in MapIcm, memory ignored
  query_port = 0x0120,           // object = port; out PortAttributes
  set_gid = 0x0121,              // object = port, in SetGid
  query_port_counters = 0x0122,  // object = port; out PortCounters
  create_eq = 0x0200,            // in CreateEq
  destroy_eq = 0x0201,
  create_cq = 0x0210,    // in CreateCq
  destroy_cq = 0x0211,   // resource_busy while a QP uses it
  query_cq = 0x0212,     // out QueryCq
  modify_cq = 0x0213,    // in ModifyCq
  resize_cq = 0x0214,    // in ResizeCq, out ResizedCq
  create_mpt = 0x0220,   // in CreateMpt; object = index
  destroy_mpt = 0x0221,  // resource_busy while a window is bound to it
  query_mpt = 0x0222,    // out QueryMpt
  modify_mpt = 0x0223,   // in CreateMpt: replaces a region that has no windows
  create_qp = 0x0230,    // in CreateQp; object = qpn
  destroy_qp = 0x0231,
  modify_qp = 0x0232,         // in ModifyQp
  query_qp = 0x0233,          // out QueryQp
  create_srq = 0x0240,        // in CreateSrq; object = srqn
  destroy_srq = 0x0241,       // resource_busy while a QP uses it
  query_srq = 0x0242,         // out QuerySrq
  modify_srq = 0x0243,        // in ModifySrq
  attach_multicast = 0x0250,  // object = qpn, in MulticastGroup: a UD QP receives the group's packets
  detach_multicast = 0x0251,  // object = qpn, in MulticastGroup
  create_rss = 0x0260,   // in CreateRss; object = a number in the QPs' range that no QP has, by which flows name it
  destroy_rss = 0x0261,  // resource_busy while a flow uses it
  create_flow = 0x0270,  // in CreateFlow; object = number
  destroy_flow = 0x0271,
  create_counter = 0x0280,   // object = number
  destroy_counter = 0x0281,  // resource_busy while a flow uses it
  query_counter = 0x0282,    // out QueryCounter
};

// Begins every input mailbox.
struct CommandHeader {
  Be16 opcode;
  Be16 modifier;
  Be32 object;  // number of the object, chosen by the driver among those whose ICM is mapped
  Be32 reserved[2];
};
static_assert(sizeof(CommandHeader) == 16);

// Begins every output mailbox. `syndrome` names the check that refused the command (docs/device.md).
struct CommandResult {
  CommandStatus status = CommandStatus::ok;
  std::uint8_t reserved0[3] = {};
  Be32 syndrome;
  Be32 object;
  Be32 reserved1;
};
static_assert(sizeof(CommandResult) == 16);

struct MapIcm {
  CommandHeader header;
  Be32 table;  // IcmTable
  Be32 first_index;
  Be32 count;
  Be32 reserved;
  Be64 memory;  // bus address in PASID 0, of count x kIcmEntryBytes bytes
};
static_assert(sizeof(MapIcm) == 40);

struct CreateEq {
  CommandHeader header;
  Eqc context;
};
struct CreateCq {
  CommandHeader header;
  Cqc context;
};
struct QueryCq {
  CommandResult result;
  Cqc context;
};
struct ModifyCq {
  CommandHeader header;  // object = cqn
  Be16 moderation_count;
  Be16 moderation_period;  // microseconds
  Be32 reserved[3];
};
static_assert(sizeof(ModifyCq) == 32);
// Moves a CQ to another ring. The driver must copy the entries that the device has written and the driver has not
// consumed.
struct ResizeCq {
  CommandHeader header;  // object = cqn
  Be64 ring;
  std::uint8_t log_entries = 0;
  std::uint8_t reserved[7] = {};
};
static_assert(sizeof(ResizeCq) == 32);
struct ResizedCq {
  CommandResult result;
  Be32 producer;  // position of the first entry in the new ring
  Be32 reserved[3];
};
static_assert(sizeof(ResizedCq) == 32);
struct CreateMpt {
  CommandHeader header;
  Mpt context;
};
struct QueryMpt {
  CommandResult result;
  Mpt context;
};
struct CreateQp {
  CommandHeader header;
  Qpc context;  // only its `fixed` part is used
};
struct QueryQp {
  CommandResult result;
  Qpc context;
};

struct CreateSrq {
  CommandHeader header;
  Srqc context;
};
struct QuerySrq {
  CommandResult result;
  Srqc context;
};
struct ModifySrq {
  CommandHeader header;  // object = srqn
  Be32 attributes;       // kLimit, kRing
  Be32 limit;
  Be64 ring;  // a larger ring, whose first entries are those of the old one
  std::uint8_t log_entries = 0;
  std::uint8_t reserved[7] = {};

  static constexpr std::uint32_t kLimit = 1u << 0;
  static constexpr std::uint32_t kRing = 1u << 1;
};
static_assert(sizeof(ModifySrq) == 40);
struct MulticastGroup {
  CommandHeader header;  // object = qpn
  std::uint8_t gid[16] = {};
};
static_assert(sizeof(MulticastGroup) == 32);

// Receive-side scaling: selects the raw packet QP that receives a frame.
struct CreateRss {
  CommandHeader header;
  Be32 fields;  // fields of the frame for the hash: enum ibv_rx_hash_fields
  std::uint8_t log_queues = 0;
  std::uint8_t reserved[3] = {};
  std::uint8_t key[40] = {};  // Toeplitz
  Be32 queues[512];           // qpns, 2^log_queues; indexed by the last bits of the hash
  static constexpr std::uint32_t kMostLogQueues = 9;
};
static_assert(sizeof(CreateRss) == 2112);

// A frame that meets all conditions of a flow goes to the flow's raw packet QP, or to its receive-side scaling.
enum class FlowHeader : std::uint8_t {  // header of a condition; its fields, in network order:
  ethernet = 0,  // destination 6, source 6, EtherType after the VLAN tags 2, outermost VLAN tag 2
  ipv4 = 1,      // source 4, destination 4, protocol, TOS, TTL, flags (1 more fragments, 2 do not fragment)
  ipv6 = 2,      // source 16, destination 16, flow label 4, protocol, traffic class, hop limit
  esp = 3,       // SPI 4, sequence number 4
  tcp = 4,       // destination port 2, source port 2
  udp = 5,       // destination port 2, source port 2
  vxlan = 6,     // VNI 4
  gre = 7,       // flags and version 2, protocol 2, key 4
  mpls = 8,      // the outermost label's word 4
};
struct FlowCondition {
  FlowHeader header = FlowHeader::ethernet;
  std::uint8_t inner = 0;  // 1: the header inside a tunnel
  std::uint8_t reserved[6] = {};
  std::uint8_t value[40] = {};
  std::uint8_t mask[40] = {};  // bits of the fields that must equal `value`
};
static_assert(sizeof(FlowCondition) == 88);
enum class FlowKind : std::uint8_t {  // = enum ibv_flow_attr_type
  normal = 0,
  all_default = 1,        // frames that no normal flow takes
  multicast_default = 2,  // of these frames, the multicast frames
  sniffer = 3,            // a copy of all frames
};
struct CreateFlow {
  CommandHeader header;
  Be32 qpn;       // or the number of a create_rss
  Be16 priority;  // the lowest value is first
  FlowKind kind = FlowKind::normal;
  std::uint8_t flags = 0;
  Be32 tag;      // with kTag: reported in the CQE
  Be32 counter;  // with kCount
  std::uint8_t conditions_count = 0;
  std::uint8_t reserved[7] = {};
  FlowCondition conditions[16];

  static constexpr std::uint8_t kDrop = 1u << 0;
  static constexpr std::uint8_t kTag = 1u << 1;
  static constexpr std::uint8_t kCount = 1u << 2;
  static constexpr std::uint8_t kPassOn = 1u << 3;  // the flow gets a copy: later flows get the frame, too
  static constexpr std::uint32_t kMostConditions = 16;
};
static_assert(sizeof(CreateFlow) == 1448);
struct QueryCounter {
  CommandResult result;
  Be64 packets;
  Be64 bytes;
};
static_assert(sizeof(QueryCounter) == 32);

// Attributes that a modify_qp carries; the values are those of enum ibv_qp_attr_mask.
namespace qp_attr {
inline constexpr std::uint32_t kState = 1u << 0;
inline constexpr std::uint32_t kCurrentState = 1u << 1;
inline constexpr std::uint32_t kSqdNotify = 1u << 2;
inline constexpr std::uint32_t kAccessFlags = 1u << 3;
inline constexpr std::uint32_t kPkeyIndex = 1u << 4;
inline constexpr std::uint32_t kPort = 1u << 5;
inline constexpr std::uint32_t kQkey = 1u << 6;
inline constexpr std::uint32_t kPath = 1u << 7;
inline constexpr std::uint32_t kPathMtu = 1u << 8;
inline constexpr std::uint32_t kTimeout = 1u << 9;
inline constexpr std::uint32_t kRetryCount = 1u << 10;
inline constexpr std::uint32_t kRnrRetry = 1u << 11;
inline constexpr std::uint32_t kReceivePsn = 1u << 12;
inline constexpr std::uint32_t kMaxRdAtomic = 1u << 13;
inline constexpr std::uint32_t kAlternatePath = 1u << 14;
inline constexpr std::uint32_t kMinRnrTimer = 1u << 15;
inline constexpr std::uint32_t kSendPsn = 1u << 16;
inline constexpr std::uint32_t kMaxDestRdAtomic = 1u << 17;
inline constexpr std::uint32_t kPathMigrationState = 1u << 18;
inline constexpr std::uint32_t kCapabilities = 1u << 19;
inline constexpr std::uint32_t kRemoteQpn = 1u << 20;
inline constexpr std::uint32_t kRateLimit = 1u << 25;  // of raw packets, with max_burst and typical_packet
inline constexpr std::uint32_t kStripVlan = 1u << 26;  // extension of this device: Qpc::kStripVlan of raw packets
}  // namespace qp_attr

struct ModifyQp {
  CommandHeader header;            // object = qpn
  Be32 attributes;                 // qp_attr bits
  std::uint8_t current_state = 0;  // with kCurrentState
  std::uint8_t reserved[3] = {};
  Be32 reserved1[2];
  Qpc context;  // the named attributes, and `state` with kState
};
static_assert(sizeof(ModifyQp) == 288);

struct SetGid {
  CommandHeader header;  // object = port
  Be16 index;
  std::uint8_t roce_version = 2;
  std::uint8_t valid = 0;  // 0 empties the entry
  std::uint8_t mac[6] = {};
  Be16 vlan;  // 1 .. 4094: frames have a tag of this VLAN, with the service level as PCP; 0: no tag
  std::uint8_t reserved[4] = {};
  std::uint8_t gid[16] = {};
};
static_assert(sizeof(SetGid) == 48);

struct DeviceCapabilities {
  CommandResult result;
  Be64 features;  // feature bits
  Be64 firmware_version;
  Be64 max_mr_size;
  Be32 vendor_part_id;
  Be32 max_qp;
  Be32 max_qp_wr;  // receive WQEs, or send blocks
  Be32 max_send_sge;
  Be32 max_receive_sge;
  Be32 max_cq;
  Be32 max_cqe;
  Be32 max_mr;
  Be32 max_pd;
  Be32 max_inline;          // largest number of inline bytes of a WQE
  Be32 max_rd_atomic;       // for one QP, as requester and as responder
  Be32 local_ca_ack_delay;  // code: 4.096 us x 2^n
  Be32 max_eq;
  Be32 ports;
  Be32 core_clock_khz;
  Be32 atomic;  // enum ibv_atomic_cap
  Be32 max_srq;
  Be32 max_ah;
  Be32 max_mtt;             // pages of all memory regions
  Be32 max_inline_receive;  // bytes of a message that its CQE may hold
  Be16 max_cq_moderation_count;
  Be16 max_cq_moderation_period;  // microseconds
  Be32 max_srq_wr;
  Be32 max_srq_sge;
  Be32 max_multicast_groups;
  Be32 max_group_qps;     // QPs attached to one group
  Be32 max_attached_qps;  // attachments to all groups together
  Be32 max_frame;         // bytes of a raw packet, without FCS
  Be32 max_flows;
  Be32 max_flow_counters;
  Be32 max_rss;         // contexts of receive-side scaling
  Be32 max_rss_queues;  // queues of one such context
  Be32 max_tso;         // bytes of data in a tso
  Be32 max_tso_header;
  Be32 device_memory;   // bytes
  Be32 min_rate_limit;  // kb/s, for one QP
  Be32 max_rate_limit;
};
static_assert(sizeof(DeviceCapabilities) == 184);

struct PortAttributes {
  CommandResult result;
  std::uint8_t state = 0;    // enum ibv_port_state
  std::uint8_t max_mtu = 0;  // enum ibv_mtu
  std::uint8_t active_mtu = 0;
  std::uint8_t physical_state = 0;
  std::uint8_t active_speed = 0;  // as ibv_port_attr
  std::uint8_t active_width = 0;
  Be16 gid_table_length;
  Be32 max_message;
  Be16 pkey_table_length;
  std::uint8_t mac[6] = {};
  Be16 pkey_violations;  // packets with a P_Key that is not in the table
  Be16 qkey_violations;  // datagrams with another Q_Key than the QP's
  Be32 reserved[2];
};
static_assert(sizeof(PortAttributes) == 48);

// Counters of port and transport since the device was powered on; a function reset changes no counter.
struct PortCounters {
  CommandResult result;
  Be64 transmitted_packets;    // RoCE packets of all transports
  Be64 transmitted_bytes;      // bytes of their frames, without FCS
  Be64 transmitted_to_groups;  // packets that went to a multicast group
  Be64 received_packets;       // the same for valid received packets
  Be64 received_bytes;
  Be64 received_from_groups;
  Be64 transmit_discards;  // packets whose source GID entry was empty
  Be64 receive_errors;     // frames that were not valid RoCE packets
  Be64 rx_icrc_encapsulated;
  Be64 rx_write_requests;
  Be64 rx_read_requests;
  Be64 rx_atomic_requests;
  Be64 out_of_buffer;
  Be64 out_of_sequence;
  Be64 duplicate_request;
  Be64 rnr_nak_retry_err;
  Be64 packet_seq_err;
  Be64 implied_nak_seq_err;
  Be64 local_ack_timeout_err;
  Be64 roce_adp_retrans;
  Be64 resp_local_length_error;
  Be64 resp_cqe_error;
  Be64 resp_cqe_flush_error;
  Be64 resp_remote_access_errors;
  Be64 req_cqe_error;
  Be64 req_cqe_flush_error;
  Be64 req_remote_invalid_request;
  Be64 req_remote_access_errors;
  Be64 req_transport_retries_exceeded;
  Be64 req_rnr_retries_exceeded;
  Be64 roce_slow_restart_cnps;
  Be64 np_cnp_sent;
  Be64 np_ecn_marked_roce_packets;
  Be64 rp_cnp_handled;
  Be64 rp_cnp_ignored;
};
static_assert(sizeof(PortCounters) == 296);

}  // namespace rnicsim::abi
