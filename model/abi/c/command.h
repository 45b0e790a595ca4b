/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Made from model/abi/command.h by tests/support/device_layouts.py --write. What it means is docs/device.md. */
#ifndef RNICSIM_ABI_COMMAND_H
#define RNICSIM_ABI_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "big_endian.h"
#include "context.h"

#define RNICSIM_COMMAND_LOG_ENTRIES 5u
#define RNICSIM_MAILBOX_BYTES 4096u  /* the largest input or output */

enum rnicsim_command_status {
  RNICSIM_COMMAND_STATUS_OK = 0,
  RNICSIM_COMMAND_STATUS_INTERNAL_ERROR = 1,
  RNICSIM_COMMAND_STATUS_BAD_OPCODE = 2,
  RNICSIM_COMMAND_STATUS_BAD_PARAMETER = 3,  /* EINVAL */
  RNICSIM_COMMAND_STATUS_BAD_RESOURCE = 4,  /* no such object: ENOENT */
  RNICSIM_COMMAND_STATUS_RESOURCE_BUSY = 5,  /* EBUSY */
  RNICSIM_COMMAND_STATUS_EXCEEDS_LIMIT = 6,  /* ENOMEM */
  RNICSIM_COMMAND_STATUS_BAD_STATE = 7,  /* not allowed in this state: EINVAL */
  RNICSIM_COMMAND_STATUS_BAD_INPUT_LENGTH = 8,
  RNICSIM_COMMAND_STATUS_BAD_OUTPUT_LENGTH = 9,
  RNICSIM_COMMAND_STATUS_NOT_SUPPORTED = 10,  /* EOPNOTSUPP */
  RNICSIM_COMMAND_STATUS_BAD_MAILBOX = 11,  /* the mailbox could not be read or written */
};

struct rnicsim_command_entry {
  uint8_t owner;  /* 1: the entry belongs to the device */
  uint8_t status;  /* enum rnicsim_command_status */
  rnicsim_be16 token;  /* value of the driver, returned unchanged */
  rnicsim_be32 input_bytes;
  rnicsim_be64 input;  /* bus address in PASID 0 */
  rnicsim_be64 output;
  rnicsim_be32 output_bytes;
  rnicsim_be32 reserved[9];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_command_entry) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, owner) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, status) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, token) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, input_bytes) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, input) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, output) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, output_bytes) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_entry, reserved) == 28);

enum rnicsim_command_opcode {
  RNICSIM_COMMAND_OPCODE_QUERY_DEVICE = 256,  /* out DeviceCapabilities */
  RNICSIM_COMMAND_OPCODE_INITIALIZE = 257,  /* after map_icm of the EQ table: the device becomes ready */
  RNICSIM_COMMAND_OPCODE_TEARDOWN = 258,  /* destroys every object, and returns all ICM */
  RNICSIM_COMMAND_OPCODE_MAP_ICM = 272,  /* in MapIcm */
  RNICSIM_COMMAND_OPCODE_UNMAP_ICM = 273,  /* in MapIcm, memory ignored */
  RNICSIM_COMMAND_OPCODE_QUERY_PORT = 288,  /* object = port; out PortAttributes */
  RNICSIM_COMMAND_OPCODE_SET_GID = 289,  /* object = port, in SetGid */
  RNICSIM_COMMAND_OPCODE_QUERY_PORT_COUNTERS = 290,  /* object = port; out PortCounters */
  RNICSIM_COMMAND_OPCODE_CREATE_EQ = 512,  /* in CreateEq */
  RNICSIM_COMMAND_OPCODE_DESTROY_EQ = 513,
  RNICSIM_COMMAND_OPCODE_CREATE_CQ = 528,  /* in CreateCq */
  RNICSIM_COMMAND_OPCODE_DESTROY_CQ = 529,  /* resource_busy while a QP uses it */
  RNICSIM_COMMAND_OPCODE_QUERY_CQ = 530,  /* out QueryCq */
  RNICSIM_COMMAND_OPCODE_MODIFY_CQ = 531,  /* in ModifyCq */
  RNICSIM_COMMAND_OPCODE_RESIZE_CQ = 532,  /* in ResizeCq, out ResizedCq */
  RNICSIM_COMMAND_OPCODE_CREATE_MPT = 544,  /* in CreateMpt; object = index */
  RNICSIM_COMMAND_OPCODE_DESTROY_MPT = 545,  /* resource_busy while a window is bound to it */
  RNICSIM_COMMAND_OPCODE_QUERY_MPT = 546,  /* out QueryMpt */
  RNICSIM_COMMAND_OPCODE_MODIFY_MPT = 547,  /* in CreateMpt: replaces a region that has no windows */
  RNICSIM_COMMAND_OPCODE_CREATE_QP = 560,  /* in CreateQp; object = qpn */
  RNICSIM_COMMAND_OPCODE_DESTROY_QP = 561,
  RNICSIM_COMMAND_OPCODE_MODIFY_QP = 562,  /* in ModifyQp */
  RNICSIM_COMMAND_OPCODE_QUERY_QP = 563,  /* out QueryQp */
  RNICSIM_COMMAND_OPCODE_CREATE_SRQ = 576,  /* in CreateSrq; object = srqn */
  RNICSIM_COMMAND_OPCODE_DESTROY_SRQ = 577,  /* resource_busy while a QP uses it */
  RNICSIM_COMMAND_OPCODE_QUERY_SRQ = 578,  /* out QuerySrq */
  RNICSIM_COMMAND_OPCODE_MODIFY_SRQ = 579,  /* in ModifySrq */
  /* object = qpn, in MulticastGroup: a UD QP receives the group's packets */
  RNICSIM_COMMAND_OPCODE_ATTACH_MULTICAST = 592,
  RNICSIM_COMMAND_OPCODE_DETACH_MULTICAST = 593,  /* object = qpn, in MulticastGroup */
  /* in CreateRss; object = a number in the QPs' range that no QP has, by which flows name it */
  RNICSIM_COMMAND_OPCODE_CREATE_RSS = 608,
  RNICSIM_COMMAND_OPCODE_DESTROY_RSS = 609,  /* resource_busy while a flow uses it */
  RNICSIM_COMMAND_OPCODE_CREATE_FLOW = 624,  /* in CreateFlow; object = number */
  RNICSIM_COMMAND_OPCODE_DESTROY_FLOW = 625,
  RNICSIM_COMMAND_OPCODE_CREATE_COUNTER = 640,  /* object = number */
  RNICSIM_COMMAND_OPCODE_DESTROY_COUNTER = 641,  /* resource_busy while a flow uses it */
  RNICSIM_COMMAND_OPCODE_QUERY_COUNTER = 642,  /* out QueryCounter */
};

/* Begins every input mailbox. */
struct rnicsim_command_header {
  rnicsim_be16 opcode;
  rnicsim_be16 modifier;
  rnicsim_be32 object;  /* number of the object, chosen by the driver among those whose ICM is mapped */
  rnicsim_be32 reserved[2];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_command_header) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_header, opcode) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_header, modifier) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_header, object) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_header, reserved) == 8);

/* Begins every output mailbox. `syndrome` names the check that refused the command (docs/device.md). */
struct rnicsim_command_result {
  uint8_t status;  /* enum rnicsim_command_status */
  uint8_t reserved0[3];
  rnicsim_be32 syndrome;
  rnicsim_be32 object;
  rnicsim_be32 reserved1;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_command_result) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_result, status) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_result, reserved0) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_result, syndrome) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_result, object) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_command_result, reserved1) == 12);

struct rnicsim_map_icm {
  struct rnicsim_command_header header;
  rnicsim_be32 table;  /* IcmTable */
  rnicsim_be32 first_index;
  rnicsim_be32 count;
  rnicsim_be32 reserved;
  rnicsim_be64 memory;  /* bus address in PASID 0, of count x kIcmEntryBytes bytes */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_map_icm) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, table) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, first_index) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, count) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, reserved) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_map_icm, memory) == 32);

struct rnicsim_create_eq {
  struct rnicsim_command_header header;
  struct rnicsim_eqc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_create_eq) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_eq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_eq, context) == 16);

struct rnicsim_create_cq {
  struct rnicsim_command_header header;
  struct rnicsim_cqc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_create_cq) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_cq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_cq, context) == 16);

struct rnicsim_query_cq {
  struct rnicsim_command_result result;
  struct rnicsim_cqc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_query_cq) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_cq, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_cq, context) == 16);

struct rnicsim_modify_cq {
  struct rnicsim_command_header header;  /* object = cqn */
  rnicsim_be16 moderation_count;
  rnicsim_be16 moderation_period;  /* microseconds */
  rnicsim_be32 reserved[3];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_modify_cq) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_cq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_cq, moderation_count) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_cq, moderation_period) == 18);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_cq, reserved) == 20);

/* Moves a CQ to another ring. The driver must copy the entries that the device has written and the driver has not
 * consumed. */
struct rnicsim_resize_cq {
  struct rnicsim_command_header header;  /* object = cqn */
  rnicsim_be64 ring;
  uint8_t log_entries;
  uint8_t reserved[7];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_resize_cq) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_resize_cq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_resize_cq, ring) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_resize_cq, log_entries) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_resize_cq, reserved) == 25);

struct rnicsim_resized_cq {
  struct rnicsim_command_result result;
  rnicsim_be32 producer;  /* position of the first entry in the new ring */
  rnicsim_be32 reserved[3];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_resized_cq) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_resized_cq, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_resized_cq, producer) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_resized_cq, reserved) == 20);

struct rnicsim_create_mpt {
  struct rnicsim_command_header header;
  struct rnicsim_mpt context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_create_mpt) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_mpt, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_mpt, context) == 16);

struct rnicsim_query_mpt {
  struct rnicsim_command_result result;
  struct rnicsim_mpt context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_query_mpt) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_mpt, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_mpt, context) == 16);

struct rnicsim_create_qp {
  struct rnicsim_command_header header;
  struct rnicsim_qpc context;  /* only its `fixed` part is used */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_create_qp) == 272);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_qp, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_qp, context) == 16);

struct rnicsim_query_qp {
  struct rnicsim_command_result result;
  struct rnicsim_qpc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_query_qp) == 272);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_qp, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_qp, context) == 16);

struct rnicsim_create_srq {
  struct rnicsim_command_header header;
  struct rnicsim_srqc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_create_srq) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_srq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_srq, context) == 16);

struct rnicsim_query_srq {
  struct rnicsim_command_result result;
  struct rnicsim_srqc context;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_query_srq) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_srq, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_srq, context) == 16);

struct rnicsim_modify_srq {
  struct rnicsim_command_header header;  /* object = srqn */
  rnicsim_be32 attributes;  /* kLimit, kRing */
  rnicsim_be32 limit;
  rnicsim_be64 ring;  /* a larger ring, whose first entries are those of the old one */
  uint8_t log_entries;
  uint8_t reserved[7];
};
#define RNICSIM_MODIFY_SRQ_LIMIT 0x1u
#define RNICSIM_MODIFY_SRQ_RING 0x2u
RNICSIM_HOLDS(sizeof(struct rnicsim_modify_srq) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, attributes) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, limit) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, ring) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, log_entries) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_srq, reserved) == 33);

struct rnicsim_multicast_group {
  struct rnicsim_command_header header;  /* object = qpn */
  uint8_t gid[16];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_multicast_group) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_multicast_group, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_multicast_group, gid) == 16);

/* Receive-side scaling: selects the raw packet QP that receives a frame. */
struct rnicsim_create_rss {
  struct rnicsim_command_header header;
  rnicsim_be32 fields;  /* fields of the frame for the hash: enum ibv_rx_hash_fields */
  uint8_t log_queues;
  uint8_t reserved[3];
  uint8_t key[40];  /* Toeplitz */
  rnicsim_be32 queues[512];  /* qpns, 2^log_queues; indexed by the last bits of the hash */
};
#define RNICSIM_CREATE_RSS_MOST_LOG_QUEUES 9u
RNICSIM_HOLDS(sizeof(struct rnicsim_create_rss) == 2112);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, fields) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, log_queues) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, reserved) == 21);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, key) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_rss, queues) == 64);

/* A frame that meets all conditions of a flow goes to the flow's raw packet QP, or to its receive-side scaling. */
enum rnicsim_flow_header {
  /* destination 6, source 6, EtherType after the VLAN tags 2, outermost VLAN tag 2 */
  RNICSIM_FLOW_HEADER_ETHERNET = 0,
  /* source 4, destination 4, protocol, TOS, TTL, flags (1 more fragments, 2 do not fragment) */
  RNICSIM_FLOW_HEADER_IPV4 = 1,
  RNICSIM_FLOW_HEADER_IPV6 = 2,  /* source 16, destination 16, flow label 4, protocol, traffic class, hop limit */
  RNICSIM_FLOW_HEADER_ESP = 3,  /* SPI 4, sequence number 4 */
  RNICSIM_FLOW_HEADER_TCP = 4,  /* destination port 2, source port 2 */
  RNICSIM_FLOW_HEADER_UDP = 5,  /* destination port 2, source port 2 */
  RNICSIM_FLOW_HEADER_VXLAN = 6,  /* VNI 4 */
  RNICSIM_FLOW_HEADER_GRE = 7,  /* flags and version 2, protocol 2, key 4 */
  RNICSIM_FLOW_HEADER_MPLS = 8,  /* the outermost label's word 4 */
};

struct rnicsim_flow_condition {
  uint8_t header;  /* enum rnicsim_flow_header */
  uint8_t inner;  /* 1: the header inside a tunnel */
  uint8_t reserved[6];
  uint8_t value[40];
  uint8_t mask[40];  /* bits of the fields that must equal `value` */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_flow_condition) == 88);
RNICSIM_HOLDS(offsetof(struct rnicsim_flow_condition, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_flow_condition, inner) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_flow_condition, reserved) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_flow_condition, value) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_flow_condition, mask) == 48);

enum rnicsim_flow_kind {
  RNICSIM_FLOW_KIND_NORMAL = 0,
  RNICSIM_FLOW_KIND_ALL_DEFAULT = 1,  /* frames that no normal flow takes */
  RNICSIM_FLOW_KIND_MULTICAST_DEFAULT = 2,  /* of these frames, the multicast frames */
  RNICSIM_FLOW_KIND_SNIFFER = 3,  /* a copy of all frames */
};

struct rnicsim_create_flow {
  struct rnicsim_command_header header;
  rnicsim_be32 qpn;  /* or the number of a create_rss */
  rnicsim_be16 priority;  /* the lowest value is first */
  uint8_t kind;  /* enum rnicsim_flow_kind */
  uint8_t flags;
  rnicsim_be32 tag;  /* with kTag: reported in the CQE */
  rnicsim_be32 counter;  /* with kCount */
  uint8_t conditions_count;
  uint8_t reserved[7];
  struct rnicsim_flow_condition conditions[16];
};
#define RNICSIM_CREATE_FLOW_DROP 0x1u
#define RNICSIM_CREATE_FLOW_TAG 0x2u
#define RNICSIM_CREATE_FLOW_COUNT 0x4u
#define RNICSIM_CREATE_FLOW_PASS_ON 0x8u  /* the flow gets a copy: later flows get the frame, too */
#define RNICSIM_CREATE_FLOW_MOST_CONDITIONS 16u
RNICSIM_HOLDS(sizeof(struct rnicsim_create_flow) == 1448);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, qpn) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, priority) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, kind) == 22);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, flags) == 23);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, tag) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, counter) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, conditions_count) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, reserved) == 33);
RNICSIM_HOLDS(offsetof(struct rnicsim_create_flow, conditions) == 40);

struct rnicsim_query_counter {
  struct rnicsim_command_result result;
  rnicsim_be64 packets;
  rnicsim_be64 bytes;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_query_counter) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_counter, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_counter, packets) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_query_counter, bytes) == 24);

/* Attributes that a modify_qp carries; the values are those of enum ibv_qp_attr_mask. */
#define RNICSIM_QP_ATTR_STATE 0x1u
#define RNICSIM_QP_ATTR_CURRENT_STATE 0x2u
#define RNICSIM_QP_ATTR_SQD_NOTIFY 0x4u
#define RNICSIM_QP_ATTR_ACCESS_FLAGS 0x8u
#define RNICSIM_QP_ATTR_PKEY_INDEX 0x10u
#define RNICSIM_QP_ATTR_PORT 0x20u
#define RNICSIM_QP_ATTR_QKEY 0x40u
#define RNICSIM_QP_ATTR_PATH 0x80u
#define RNICSIM_QP_ATTR_PATH_MTU 0x100u
#define RNICSIM_QP_ATTR_TIMEOUT 0x200u
#define RNICSIM_QP_ATTR_RETRY_COUNT 0x400u
#define RNICSIM_QP_ATTR_RNR_RETRY 0x800u
#define RNICSIM_QP_ATTR_RECEIVE_PSN 0x1000u
#define RNICSIM_QP_ATTR_MAX_RD_ATOMIC 0x2000u
#define RNICSIM_QP_ATTR_ALTERNATE_PATH 0x4000u
#define RNICSIM_QP_ATTR_MIN_RNR_TIMER 0x8000u
#define RNICSIM_QP_ATTR_SEND_PSN 0x10000u
#define RNICSIM_QP_ATTR_MAX_DEST_RD_ATOMIC 0x20000u
#define RNICSIM_QP_ATTR_PATH_MIGRATION_STATE 0x40000u
#define RNICSIM_QP_ATTR_CAPABILITIES 0x80000u
#define RNICSIM_QP_ATTR_REMOTE_QPN 0x100000u
#define RNICSIM_QP_ATTR_RATE_LIMIT 0x2000000u  /* of raw packets, with max_burst and typical_packet */
#define RNICSIM_QP_ATTR_STRIP_VLAN 0x4000000u  /* extension of this device: Qpc::kStripVlan of raw packets */

struct rnicsim_modify_qp {
  struct rnicsim_command_header header;  /* object = qpn */
  rnicsim_be32 attributes;  /* qp_attr bits */
  uint8_t current_state;  /* with kCurrentState */
  uint8_t reserved[3];
  rnicsim_be32 reserved1[2];
  struct rnicsim_qpc context;  /* the named attributes, and `state` with kState */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_modify_qp) == 288);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, attributes) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, current_state) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, reserved) == 21);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, reserved1) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_modify_qp, context) == 32);

struct rnicsim_set_gid {
  struct rnicsim_command_header header;  /* object = port */
  rnicsim_be16 index;
  uint8_t roce_version;
  uint8_t valid;  /* 0 empties the entry */
  uint8_t mac[6];
  rnicsim_be16 vlan;  /* 1 .. 4094: frames have a tag of this VLAN, with the service level as PCP; 0: no tag */
  uint8_t reserved[4];
  uint8_t gid[16];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_set_gid) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, header) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, index) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, roce_version) == 18);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, valid) == 19);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, mac) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, vlan) == 26);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, reserved) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_set_gid, gid) == 32);

struct rnicsim_device_capabilities {
  struct rnicsim_command_result result;
  rnicsim_be64 features;  /* feature bits */
  rnicsim_be64 firmware_version;
  rnicsim_be64 max_mr_size;
  rnicsim_be32 vendor_part_id;
  rnicsim_be32 max_qp;
  rnicsim_be32 max_qp_wr;  /* receive WQEs, or send blocks */
  rnicsim_be32 max_send_sge;
  rnicsim_be32 max_receive_sge;
  rnicsim_be32 max_cq;
  rnicsim_be32 max_cqe;
  rnicsim_be32 max_mr;
  rnicsim_be32 max_pd;
  rnicsim_be32 max_inline;  /* largest number of inline bytes of a WQE */
  rnicsim_be32 max_rd_atomic;  /* for one QP, as requester and as responder */
  rnicsim_be32 local_ca_ack_delay;  /* code: 4.096 us x 2^n */
  rnicsim_be32 max_eq;
  rnicsim_be32 ports;
  rnicsim_be32 core_clock_khz;
  rnicsim_be32 atomic;  /* enum ibv_atomic_cap */
  rnicsim_be32 max_srq;
  rnicsim_be32 max_ah;
  rnicsim_be32 max_mtt;  /* pages of all memory regions */
  rnicsim_be32 max_inline_receive;  /* bytes of a message that its CQE may hold */
  rnicsim_be16 max_cq_moderation_count;
  rnicsim_be16 max_cq_moderation_period;  /* microseconds */
  rnicsim_be32 max_srq_wr;
  rnicsim_be32 max_srq_sge;
  rnicsim_be32 max_multicast_groups;
  rnicsim_be32 max_group_qps;  /* QPs attached to one group */
  rnicsim_be32 max_attached_qps;  /* attachments to all groups together */
  rnicsim_be32 max_frame;  /* bytes of a raw packet, without FCS */
  rnicsim_be32 max_flows;
  rnicsim_be32 max_flow_counters;
  rnicsim_be32 max_rss;  /* contexts of receive-side scaling */
  rnicsim_be32 max_rss_queues;  /* queues of one such context */
  rnicsim_be32 max_tso;  /* bytes of data in a tso */
  rnicsim_be32 max_tso_header;
  rnicsim_be32 device_memory;  /* bytes */
  rnicsim_be32 min_rate_limit;  /* kb/s, for one QP */
  rnicsim_be32 max_rate_limit;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_device_capabilities) == 184);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, features) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, firmware_version) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_mr_size) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, vendor_part_id) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_qp) == 44);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_qp_wr) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_send_sge) == 52);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_receive_sge) == 56);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_cq) == 60);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_cqe) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_mr) == 68);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_pd) == 72);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_inline) == 76);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_rd_atomic) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, local_ca_ack_delay) == 84);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_eq) == 88);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, ports) == 92);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, core_clock_khz) == 96);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, atomic) == 100);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_srq) == 104);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_ah) == 108);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_mtt) == 112);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_inline_receive) == 116);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_cq_moderation_count) == 120);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_cq_moderation_period) == 122);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_srq_wr) == 124);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_srq_sge) == 128);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_multicast_groups) == 132);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_group_qps) == 136);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_attached_qps) == 140);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_frame) == 144);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_flows) == 148);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_flow_counters) == 152);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_rss) == 156);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_rss_queues) == 160);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_tso) == 164);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_tso_header) == 168);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, device_memory) == 172);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, min_rate_limit) == 176);
RNICSIM_HOLDS(offsetof(struct rnicsim_device_capabilities, max_rate_limit) == 180);

struct rnicsim_port_attributes {
  struct rnicsim_command_result result;
  uint8_t state;  /* enum ibv_port_state */
  uint8_t max_mtu;  /* enum ibv_mtu */
  uint8_t active_mtu;
  uint8_t physical_state;
  uint8_t active_speed;  /* as ibv_port_attr */
  uint8_t active_width;
  rnicsim_be16 gid_table_length;
  rnicsim_be32 max_message;
  rnicsim_be16 pkey_table_length;
  uint8_t mac[6];
  rnicsim_be16 pkey_violations;  /* packets with a P_Key that is not in the table */
  rnicsim_be16 qkey_violations;  /* datagrams with another Q_Key than the QP's */
  rnicsim_be32 reserved[2];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_port_attributes) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, state) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, max_mtu) == 17);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, active_mtu) == 18);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, physical_state) == 19);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, active_speed) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, active_width) == 21);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, gid_table_length) == 22);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, max_message) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, pkey_table_length) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, mac) == 30);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, pkey_violations) == 36);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, qkey_violations) == 38);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_attributes, reserved) == 40);

/* Counters of port and transport since the device was powered on; a function reset changes no counter. */
struct rnicsim_port_counters {
  struct rnicsim_command_result result;
  rnicsim_be64 transmitted_packets;  /* RoCE packets of all transports */
  rnicsim_be64 transmitted_bytes;  /* bytes of their frames, without FCS */
  rnicsim_be64 transmitted_to_groups;  /* packets that went to a multicast group */
  rnicsim_be64 received_packets;  /* the same for valid received packets */
  rnicsim_be64 received_bytes;
  rnicsim_be64 received_from_groups;
  rnicsim_be64 transmit_discards;  /* packets whose source GID entry was empty */
  rnicsim_be64 receive_errors;  /* frames that were not valid RoCE packets */
  rnicsim_be64 rx_icrc_encapsulated;
  rnicsim_be64 rx_write_requests;
  rnicsim_be64 rx_read_requests;
  rnicsim_be64 rx_atomic_requests;
  rnicsim_be64 out_of_buffer;
  rnicsim_be64 out_of_sequence;
  rnicsim_be64 duplicate_request;
  rnicsim_be64 rnr_nak_retry_err;
  rnicsim_be64 packet_seq_err;
  rnicsim_be64 implied_nak_seq_err;
  rnicsim_be64 local_ack_timeout_err;
  rnicsim_be64 roce_adp_retrans;
  rnicsim_be64 resp_local_length_error;
  rnicsim_be64 resp_cqe_error;
  rnicsim_be64 resp_cqe_flush_error;
  rnicsim_be64 resp_remote_access_errors;
  rnicsim_be64 req_cqe_error;
  rnicsim_be64 req_cqe_flush_error;
  rnicsim_be64 req_remote_invalid_request;
  rnicsim_be64 req_remote_access_errors;
  rnicsim_be64 req_transport_retries_exceeded;
  rnicsim_be64 req_rnr_retries_exceeded;
  rnicsim_be64 roce_slow_restart_cnps;
  rnicsim_be64 np_cnp_sent;
  rnicsim_be64 np_ecn_marked_roce_packets;
  rnicsim_be64 rp_cnp_handled;
  rnicsim_be64 rp_cnp_ignored;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_port_counters) == 296);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, result) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, transmitted_packets) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, transmitted_bytes) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, transmitted_to_groups) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, received_packets) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, received_bytes) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, received_from_groups) == 56);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, transmit_discards) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, receive_errors) == 72);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rx_icrc_encapsulated) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rx_write_requests) == 88);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rx_read_requests) == 96);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rx_atomic_requests) == 104);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, out_of_buffer) == 112);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, out_of_sequence) == 120);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, duplicate_request) == 128);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rnr_nak_retry_err) == 136);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, packet_seq_err) == 144);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, implied_nak_seq_err) == 152);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, local_ack_timeout_err) == 160);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, roce_adp_retrans) == 168);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, resp_local_length_error) == 176);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, resp_cqe_error) == 184);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, resp_cqe_flush_error) == 192);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, resp_remote_access_errors) == 200);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_cqe_error) == 208);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_cqe_flush_error) == 216);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_remote_invalid_request) == 224);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_remote_access_errors) == 232);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_transport_retries_exceeded) == 240);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, req_rnr_retries_exceeded) == 248);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, roce_slow_restart_cnps) == 256);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, np_cnp_sent) == 264);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, np_ecn_marked_roce_packets) == 272);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rp_cnp_handled) == 280);
RNICSIM_HOLDS(offsetof(struct rnicsim_port_counters, rp_cnp_ignored) == 288);

#endif  /* RNICSIM_ABI_COMMAND_H */
