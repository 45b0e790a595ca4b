/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Made from model/abi/queue.h by tests/support/device_layouts.py --write. What it means is docs/device.md. */
#ifndef RNICSIM_ABI_QUEUE_H
#define RNICSIM_ABI_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "big_endian.h"
#include "context.h"

/* Send queue: a ring of 64-byte basic blocks. A WQE is a control segment, followed by the segments that its opcode
 * needs (datagram, remote address, bind, register, data or inline), and occupies whole blocks. The producer counts
 * blocks. */
#define RNICSIM_SEND_BLOCK 64u
#define RNICSIM_MAX_WQE_BLOCKS 16u

enum rnicsim_send_opcode {
  RNICSIM_SEND_OPCODE_NOP = 0,
  RNICSIM_SEND_OPCODE_SEND_WITH_INV = 1,
  RNICSIM_SEND_OPCODE_WRITE = 8,
  RNICSIM_SEND_OPCODE_WRITE_WITH_IMM = 9,
  RNICSIM_SEND_OPCODE_SEND = 10,
  RNICSIM_SEND_OPCODE_SEND_WITH_IMM = 11,
  RNICSIM_SEND_OPCODE_TSO = 14,  /* raw packet: data split into frames, each with the given headers */
  RNICSIM_SEND_OPCODE_ATOMIC_WRITE = 15,  /* 8 aligned bytes, written atomically (IBTA 1.5) */
  RNICSIM_SEND_OPCODE_READ = 16,
  RNICSIM_SEND_OPCODE_COMPARE_SWAP = 17,
  RNICSIM_SEND_OPCODE_FETCH_ADD = 18,
  RNICSIM_SEND_OPCODE_BIND_WINDOW = 24,
  RNICSIM_SEND_OPCODE_FAST_REGISTER = 25,  /* gives pages and a key to a region of MptKind::fast_register */
  RNICSIM_SEND_OPCODE_LOCAL_INV = 27,
};

struct rnicsim_control_segment {
  rnicsim_be16 reserved0;
  uint8_t reserved1;
  uint8_t opcode;  /* enum rnicsim_send_opcode */
  rnicsim_be16 wqe_index;  /* index of this WQE's first block, modulo 2^16; must equal the consumer's */
  uint8_t reserved2;
  uint8_t segments;  /* length of the WQE in 16-byte units, this segment included */
  rnicsim_be32 qpn_flags;  /* qpn << 8 | kSignaled | kSolicited | kFence | kChecksums */
  rnicsim_be32 immediate;  /* immediate data, or the rkey to invalidate */
};
#define RNICSIM_CONTROL_SEGMENT_SIGNALED 0x1u
#define RNICSIM_CONTROL_SEGMENT_SOLICITED 0x2u
#define RNICSIM_CONTROL_SEGMENT_FENCE 0x4u
#define RNICSIM_CONTROL_SEGMENT_CHECKSUMS 0x8u  /* raw packet: the device fills in checksums of IP, TCP and UDP */
RNICSIM_HOLDS(sizeof(struct rnicsim_control_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, reserved0) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, reserved1) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, opcode) == 3);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, wqe_index) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, reserved2) == 6);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, segments) == 7);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, qpn_flags) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_control_segment, immediate) == 12);

struct rnicsim_remote_address_segment {
  rnicsim_be64 address;
  rnicsim_be32 rkey;
  rnicsim_be32 reserved;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_remote_address_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_remote_address_segment, address) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_remote_address_segment, rkey) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_remote_address_segment, reserved) == 12);

/* First segment of an XRC QP's WQE: SRQ whose receive the message takes. */
struct rnicsim_xrc_segment {
  rnicsim_be32 srqn;
  rnicsim_be32 reserved[3];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_xrc_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_xrc_segment, srqn) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_xrc_segment, reserved) == 4);

/* First segment of a UD QP's WQE: destination of the message. */
struct rnicsim_datagram_segment {
  struct rnicsim_address_vector path;
  rnicsim_be32 remote_qpn;  /* kMulticastQpn: every QP of the multicast group in `path` */
  rnicsim_be32 qkey;  /* if its top bit is set, the QP's own Q_Key is sent */
  rnicsim_be32 reserved[2];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_datagram_segment) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_datagram_segment, path) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_datagram_segment, remote_qpn) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_datagram_segment, qkey) == 36);
RNICSIM_HOLDS(offsetof(struct rnicsim_datagram_segment, reserved) == 40);

#define RNICSIM_MULTICAST_QPN 0xffffffu
#define RNICSIM_OWN_QKEY 0x80000000u

/* Segment of tso, followed by header_bytes of headers, padded to 16, and data segments. */
struct rnicsim_tso_segment {
  rnicsim_be16 mss;  /* bytes of data in one frame */
  rnicsim_be16 header_bytes;  /* Ethernet, IP and TCP or UDP */
  rnicsim_be32 reserved[3];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_tso_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_tso_segment, mss) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_tso_segment, header_bytes) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_tso_segment, reserved) == 4);

/* Segment of bind_window. */
struct rnicsim_bind_segment {
  rnicsim_be32 window;  /* present rkey of the window, whose index is used */
  rnicsim_be32 rkey;  /* new rkey: same index, another tag */
  rnicsim_be32 region;  /* lkey of the region */
  rnicsim_be32 access_flags;  /* access::kRemote*, kZeroBased */
  rnicsim_be64 address;
  rnicsim_be64 length;  /* 0: type 1, unbinds the window */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_bind_segment) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, window) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, rkey) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, region) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, access_flags) == 12);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, address) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_bind_segment, length) == 24);

/* Segment of fast_register. The pages' bus addresses are in the region's range of the MTT already. */
struct rnicsim_register_segment {
  rnicsim_be32 key;  /* new key: the region's index, any tag */
  rnicsim_be32 access_flags;  /* access::kLocalWrite, kRemote*, kRelaxedOrdering */
  rnicsim_be64 start;  /* first address a work request may name (IOVA) */
  rnicsim_be64 length;
  rnicsim_be32 first_byte;  /* offset of `start` in the first page */
  uint8_t log_page;  /* log2 of the page size, 12..30 */
  uint8_t reserved0[3];
  rnicsim_be32 reserved1[4];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_register_segment) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, key) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, access_flags) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, start) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, length) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, first_byte) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, log_page) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, reserved0) == 29);
RNICSIM_HOLDS(offsetof(struct rnicsim_register_segment, reserved1) == 32);

struct rnicsim_atomic_segment {
  rnicsim_be64 swap_add;
  rnicsim_be64 compare;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_atomic_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_atomic_segment, swap_add) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_atomic_segment, compare) == 8);

struct rnicsim_data_segment {
  rnicsim_be32 byte_count;  /* at most 2^31 - 1; 0 is an empty segment */
  rnicsim_be32 lkey;
  rnicsim_be64 address;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_data_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_data_segment, byte_count) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_data_segment, lkey) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_data_segment, address) == 8);

/* Inline data: this word, then byte_count bytes, padded to 16. */
struct rnicsim_inline_header {
  rnicsim_be32 byte_count;  /* kInline | bytes */
};
#define RNICSIM_INLINE_HEADER_INLINE 0x80000000u
RNICSIM_HOLDS(sizeof(struct rnicsim_inline_header) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_inline_header, byte_count) == 0);

/* Receive queue: entries of 2^log_stride bytes, each a list of DataSegments ended by the stride or by kInvalidLkey. */
#define RNICSIM_INVALID_LKEY 0x00000100u

/* Shared receive queue: entries of 2^log_stride bytes in a linked list, because they are freed in any order. Every
 * entry names the entry that will be posted after it, so the driver always keeps one entry unposted. Entry 0 is
 * posted first. */
struct rnicsim_srq_next_segment {
  rnicsim_be16 next;  /* index of the next entry */
  rnicsim_be16 reserved0;
  rnicsim_be32 reserved1[3];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_srq_next_segment) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_srq_next_segment, next) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_srq_next_segment, reserved0) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_srq_next_segment, reserved1) == 4);

/* Doorbell record: in host memory, at Qpc::doorbell_record; the driver writes it before it rings the doorbell. */
struct rnicsim_qp_doorbell_record {
  rnicsim_be32 receive_producer;  /* WQEs posted so far, modulo 2^16; of an SRQ: its entries */
  rnicsim_be32 send_producer;  /* blocks posted so far, modulo 2^16 */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_qp_doorbell_record) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_qp_doorbell_record, receive_producer) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_qp_doorbell_record, send_producer) == 4);

struct rnicsim_cq_doorbell_record {
  rnicsim_be32 consumer;  /* CQEs consumed so far, modulo 2^24 */
  rnicsim_be32 reserved;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_cq_doorbell_record) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_cq_doorbell_record, consumer) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_cq_doorbell_record, reserved) == 4);

/* Doorbells (MMIO, UAR page). */
struct rnicsim_send_doorbell {
  rnicsim_be32 qpn;
  rnicsim_be32 producer;  /* = QpDoorbellRecord::send_producer */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_send_doorbell) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_send_doorbell, qpn) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_send_doorbell, producer) == 4);

struct rnicsim_cq_arm {
  rnicsim_be32 cqn_flags;  /* cqn << 8 | kSolicitedOnly */
  rnicsim_be32 consumer;  /* CQEs consumed, modulo 2^24: if a later CQE is already written, the event fires at once */
};
#define RNICSIM_CQ_ARM_SOLICITED_ONLY 0x1u
RNICSIM_HOLDS(sizeof(struct rnicsim_cq_arm) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_cq_arm, cqn_flags) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_cq_arm, consumer) == 4);

struct rnicsim_eq_doorbell {
  rnicsim_be32 eqn;
  rnicsim_be32 consumer;  /* EQEs consumed so far, modulo 2^24; also arms the EQ's MSI-X vector */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_eq_doorbell) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_eq_doorbell, eqn) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_eq_doorbell, consumer) == 4);

/* Completion queue entry. The driver initialises every entry's owner to kInitialOwner. The entry at position n
 * (counted without limit) belongs to the driver when owner bit 0 == (n >> log_entries) & 1 and the opcode is not
 * `invalid`; the device writes the owner byte last. */
enum rnicsim_cqe_opcode {
  RNICSIM_CQE_OPCODE_REQUESTER = 0,
  RNICSIM_CQE_OPCODE_RECEIVE_WRITE_WITH_IMM = 1,
  RNICSIM_CQE_OPCODE_RECEIVE_SEND = 2,
  RNICSIM_CQE_OPCODE_RECEIVE_SEND_WITH_IMM = 3,
  RNICSIM_CQE_OPCODE_RECEIVE_SEND_WITH_INV = 4,
  RNICSIM_CQE_OPCODE_REQUESTER_ERROR = 13,
  RNICSIM_CQE_OPCODE_RESPONDER_ERROR = 14,
  RNICSIM_CQE_OPCODE_INVALID = 15,
};

/* The values are those of enum ibv_wc_status. */
enum rnicsim_cqe_syndrome {
  RNICSIM_CQE_SYNDROME_SUCCESS = 0,
  RNICSIM_CQE_SYNDROME_LOCAL_LENGTH_ERROR = 1,
  RNICSIM_CQE_SYNDROME_LOCAL_QP_OPERATION_ERROR = 2,
  RNICSIM_CQE_SYNDROME_LOCAL_PROTECTION_ERROR = 4,
  RNICSIM_CQE_SYNDROME_FLUSHED_ERROR = 5,
  RNICSIM_CQE_SYNDROME_MEMORY_WINDOW_BIND_ERROR = 6,
  RNICSIM_CQE_SYNDROME_BAD_RESPONSE_ERROR = 7,
  RNICSIM_CQE_SYNDROME_LOCAL_ACCESS_ERROR = 8,
  RNICSIM_CQE_SYNDROME_REMOTE_INVALID_REQUEST_ERROR = 9,
  RNICSIM_CQE_SYNDROME_REMOTE_ACCESS_ERROR = 10,
  RNICSIM_CQE_SYNDROME_REMOTE_OPERATION_ERROR = 11,
  RNICSIM_CQE_SYNDROME_TRANSPORT_RETRY_EXCEEDED = 12,
  RNICSIM_CQE_SYNDROME_RNR_RETRY_EXCEEDED = 13,
  RNICSIM_CQE_SYNDROME_REMOTE_ABORTED_ERROR = 16,
  RNICSIM_CQE_SYNDROME_FATAL_ERROR = 18,
  RNICSIM_CQE_SYNDROME_GENERAL_ERROR = 21,
};

struct rnicsim_cqe {
  rnicsim_be32 immediate;  /* immediate data or the invalidated rkey; raw packet: tag of its flow */
  rnicsim_be32 byte_count;
  rnicsim_be64 timestamp;  /* device clock */
  rnicsim_be32 qpn;  /* the local QP */
  rnicsim_be16 wqe_counter;  /* requester: wqe_index; responder: index of the receive WQE, or of the SRQ's entry */
  uint8_t send_opcode;  /* enum rnicsim_send_opcode; requester: opcode of the completed WQE */
  uint8_t flags;  /* kInlineData .. kXrc */
  uint8_t syndrome;  /* enum rnicsim_cqe_syndrome */
  uint8_t vendor_error;
  rnicsim_be16 vlan;  /* with kVlan: priority 3 bits, DEI 1, VLAN 12 */
  uint8_t inline_data[32];  /* with kInlineData: byte_count bytes of the message; raw packet: RawFacts */
  uint8_t source_qpn[3];  /* UD: QPN of the sender; with kXrc: number of the SRQ; 24 bits big-endian */
  uint8_t opcode_owner;  /* CqeOpcode << 4 | owner bit */
};
#define RNICSIM_CQE_INLINE_DATA 0x1u
#define RNICSIM_CQE_GRH 0x2u  /* UD: 40 bytes of GRH precede the payload and count in byte_count */
#define RNICSIM_CQE_IPV4 0x4u  /* with kGrh: the GRH contains an IPv4 header, else an IPv6 header */
#define RNICSIM_CQE_CHECKSUMS_RIGHT 0x8u  /* raw packet: checksums of IP, and TCP or UDP, are right */
#define RNICSIM_CQE_FLOW_TAG 0x10u  /* raw packet: its flow has a tag */
#define RNICSIM_CQE_VLAN 0x20u
#define RNICSIM_CQE_XRC 0x40u  /* a receive of an XRC SRQ */
#define RNICSIM_CQE_INITIAL_OWNER 0xf1u
RNICSIM_HOLDS(sizeof(struct rnicsim_cqe) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, immediate) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, byte_count) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, timestamp) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, qpn) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, wqe_counter) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, send_opcode) == 22);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, flags) == 23);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, syndrome) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, vendor_error) == 25);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, vlan) == 26);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, inline_data) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, source_qpn) == 60);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqe, opcode_owner) == 63);

struct rnicsim_raw_facts {
  rnicsim_be32 rss_hash;  /* 0: no hash was computed */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_raw_facts) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_raw_facts, rss_hash) == 0);

/* Event queue entry. Ownership as for a CQE, by owner bit 0. */
enum rnicsim_event_type {
  RNICSIM_EVENT_TYPE_COMPLETION = 0,  /* number = cqn */
  RNICSIM_EVENT_TYPE_COMMUNICATION_ESTABLISHED = 1,
  RNICSIM_EVENT_TYPE_SEND_QUEUE_DRAINED = 2,
  RNICSIM_EVENT_TYPE_LAST_WQE_REACHED = 3,
  RNICSIM_EVENT_TYPE_SRQ_LIMIT = 4,  /* number = srqn */
  RNICSIM_EVENT_TYPE_CQ_ERROR = 16,  /* number = cqn */
  RNICSIM_EVENT_TYPE_QP_FATAL = 17,
  RNICSIM_EVENT_TYPE_QP_REQUEST_ERROR = 18,
  RNICSIM_EVENT_TYPE_QP_ACCESS_ERROR = 19,
  RNICSIM_EVENT_TYPE_SRQ_ERROR = 20,  /* number = srqn */
  RNICSIM_EVENT_TYPE_PORT_ACTIVE = 32,  /* number = port */
  RNICSIM_EVENT_TYPE_PORT_ERROR = 33,
  RNICSIM_EVENT_TYPE_DEVICE_FATAL = 34,  /* number = 0 */
};

struct rnicsim_eqe {
  uint8_t type;  /* enum rnicsim_event_type */
  uint8_t reserved0[3];
  rnicsim_be32 number;  /* subject of the event: cqn, qpn, srqn or port */
  rnicsim_be32 reserved1[5];
  uint8_t reserved2[3];
  uint8_t owner;
};
#define RNICSIM_EQE_INITIAL_OWNER 0x01u
RNICSIM_HOLDS(sizeof(struct rnicsim_eqe) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, type) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, reserved0) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, number) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, reserved1) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, reserved2) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqe, owner) == 31);

#endif  /* RNICSIM_ABI_QUEUE_H */
