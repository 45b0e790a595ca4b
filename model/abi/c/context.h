/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Made from model/abi/context.h by tests/support/device_layouts.py --write. What it means is docs/device.md. */
#ifndef RNICSIM_ABI_CONTEXT_H
#define RNICSIM_ABI_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "big_endian.h"

enum rnicsim_qp_state {
  RNICSIM_QP_STATE_RESET = 0,
  RNICSIM_QP_STATE_INIT = 1,
  RNICSIM_QP_STATE_RTR = 2,
  RNICSIM_QP_STATE_RTS = 3,
  RNICSIM_QP_STATE_SQD = 4,
  RNICSIM_QP_STATE_SQE = 5,
  RNICSIM_QP_STATE_ERROR = 6,
};

enum rnicsim_transport {
  RNICSIM_TRANSPORT_RC = 2,
  RNICSIM_TRANSPORT_UC = 3,
  RNICSIM_TRANSPORT_UD = 4,
  RNICSIM_TRANSPORT_RAW = 8,
  RNICSIM_TRANSPORT_XRC_SEND = 9,  /* requester of RC whose messages name an SRQ */
  RNICSIM_TRANSPORT_XRC_RECV = 10,  /* responder of RC without queues */
};

/* Access rights of an MPT entry or a QP; the values are those of enum ibv_access_flags. */
#define RNICSIM_ACCESS_LOCAL_WRITE 0x1u
#define RNICSIM_ACCESS_REMOTE_WRITE 0x2u
#define RNICSIM_ACCESS_REMOTE_READ 0x4u
#define RNICSIM_ACCESS_REMOTE_ATOMIC 0x8u
#define RNICSIM_ACCESS_WINDOW_BIND 0x10u
#define RNICSIM_ACCESS_ZERO_BASED 0x20u
#define RNICSIM_ACCESS_ON_DEMAND 0x40u  /* region: pages requested from the host (ATS, PRI) */
#define RNICSIM_ACCESS_RELAXED_ORDERING 0x100000u  /* region: its TLPs may pass writes */

/* RoCEv2 address vector (IBTA vol 1 A17). */
struct rnicsim_address_vector {
  uint8_t remote_gid[16];
  uint8_t remote_mac[6];
  rnicsim_be16 sgid_index;
  rnicsim_be32 flow_label;  /* 20 bits */
  uint8_t traffic_class;
  uint8_t hop_limit;
  uint8_t service_level;
  uint8_t static_rate;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_address_vector) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, remote_gid) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, remote_mac) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, sgid_index) == 22);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, flow_label) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, traffic_class) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, hop_limit) == 29);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, service_level) == 30);
RNICSIM_HOLDS(offsetof(struct rnicsim_address_vector, static_rate) == 31);

/* Queue pair context. The driver sets `fixed` at creation and the attributes by modify_qp; the device owns
 * `progress`. */
struct rnicsim_qpc {
  /* --- fixed */
  uint8_t state;  /* enum rnicsim_qp_state */
  uint8_t transport;  /* enum rnicsim_transport */
  uint8_t log_send_blocks;  /* log2 of the send ring's 64-byte blocks */
  uint8_t log_receive_wqes;
  uint8_t log_receive_stride;  /* log2 of a receive WQE's bytes, 4..9 */
  uint8_t flags;  /* kHasSend .. kPadWrites */
  rnicsim_be16 uar_page;
  rnicsim_be32 pd;
  rnicsim_be32 pasid;
  rnicsim_be32 send_cqn;
  rnicsim_be32 receive_cqn;
  rnicsim_be32 srqn;  /* with kHasSrq */
  uint8_t inline_receive;  /* largest SEND of one packet that is received in its CQE, in bytes; 0: none */
  uint8_t reserved0[3];
  rnicsim_be64 send_ring;  /* bus addresses, in the PASID's space, 64-byte aligned */
  rnicsim_be64 receive_ring;
  rnicsim_be64 doorbell_record;  /* 8-byte aligned */
  /* --- attributes */
  uint8_t port;
  uint8_t path_mtu;  /* enum ibv_mtu: 1 = 256 .. 5 = 4096 */
  rnicsim_be16 pkey_index;
  rnicsim_be32 qkey;
  rnicsim_be32 access_flags;  /* access::kRemote* */
  rnicsim_be32 remote_qpn;
  rnicsim_be32 send_psn;  /* initial, 24 bits */
  rnicsim_be32 receive_psn;
  uint8_t max_rd_atomic;  /* outstanding as requester */
  uint8_t max_dest_rd_atomic;  /* resources as responder */
  uint8_t min_rnr_timer;  /* RNR timer code, 0..31 */
  uint8_t timeout;  /* local ACK timeout code, 0..31 */
  uint8_t retry_count;
  uint8_t rnr_retry;
  uint8_t path_migration_state;
  uint8_t sqd_notify;
  struct rnicsim_address_vector path;
  struct rnicsim_address_vector alternate_path;
  rnicsim_be16 alternate_pkey_index;
  uint8_t alternate_port;
  uint8_t alternate_timeout;
  /* --- progress */
  rnicsim_be32 send_consumer;  /* blocks retired */
  rnicsim_be32 send_next;  /* blocks started */
  rnicsim_be32 receive_consumer;
  rnicsim_be32 next_send_psn;
  rnicsim_be32 oldest_unacked_psn;
  rnicsim_be32 expected_psn;
  rnicsim_be32 msn;  /* responder's message sequence number, 24 bits */
  uint8_t retries_left;
  uint8_t rnr_retries_left;
  uint8_t draining;
  uint8_t reserved1;
  /* --- fixed */
  rnicsim_be32 xrcd;  /* xrc_recv: domain of the SRQs that the QP serves */
  rnicsim_be32 source_qpn;  /* UD: QPN that the datagrams carry as their source; 0: the own QPN */
  /* --- attributes */
  rnicsim_be32 rate_limit;  /* rate limit in kb/s; 0: none */
  rnicsim_be32 max_burst;  /* bytes that may leave in one burst; 0: the device's choice */
  rnicsim_be16 typical_packet;  /* bytes; 0: unknown */
  rnicsim_be16 reserved2;
  uint8_t reserved3[48];
};
#define RNICSIM_QPC_HAS_SEND 0x1u
#define RNICSIM_QPC_HAS_RECEIVE 0x2u
#define RNICSIM_QPC_HAS_SRQ 0x4u  /* instead of a receive ring: RC and UD */
#define RNICSIM_QPC_BLOCK_SELF_MULTICAST 0x8u  /* this device does not receive the QP's own multicasts */
#define RNICSIM_QPC_STRIP_VLAN 0x10u  /* raw: a frame's outermost VLAN tag is moved to the CQE */
#define RNICSIM_QPC_SCATTER_FCS 0x20u  /* raw: the FCS follows the frame */
#define RNICSIM_QPC_PAD_WRITES 0x40u  /* received data is written in whole cache lines */
RNICSIM_HOLDS(sizeof(struct rnicsim_qpc) == 256);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, state) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, transport) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, log_send_blocks) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, log_receive_wqes) == 3);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, log_receive_stride) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, flags) == 5);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, uar_page) == 6);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, pd) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, pasid) == 12);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, send_cqn) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, receive_cqn) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, srqn) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, inline_receive) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, reserved0) == 29);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, send_ring) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, receive_ring) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, doorbell_record) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, port) == 56);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, path_mtu) == 57);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, pkey_index) == 58);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, qkey) == 60);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, access_flags) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, remote_qpn) == 68);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, send_psn) == 72);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, receive_psn) == 76);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, max_rd_atomic) == 80);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, max_dest_rd_atomic) == 81);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, min_rnr_timer) == 82);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, timeout) == 83);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, retry_count) == 84);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, rnr_retry) == 85);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, path_migration_state) == 86);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, sqd_notify) == 87);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, path) == 88);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, alternate_path) == 120);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, alternate_pkey_index) == 152);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, alternate_port) == 154);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, alternate_timeout) == 155);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, send_consumer) == 156);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, send_next) == 160);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, receive_consumer) == 164);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, next_send_psn) == 168);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, oldest_unacked_psn) == 172);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, expected_psn) == 176);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, msn) == 180);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, retries_left) == 184);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, rnr_retries_left) == 185);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, draining) == 186);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, reserved1) == 187);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, xrcd) == 188);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, source_qpn) == 192);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, rate_limit) == 196);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, max_burst) == 200);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, typical_packet) == 204);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, reserved2) == 206);
RNICSIM_HOLDS(offsetof(struct rnicsim_qpc, reserved3) == 208);

struct rnicsim_cqc {
  uint8_t log_entries;
  uint8_t flags;  /* kIgnoreOverrun, kInError */
  rnicsim_be16 uar_page;
  rnicsim_be32 pasid;
  rnicsim_be64 ring;  /* 64-byte aligned */
  rnicsim_be64 doorbell_record;  /* CqDoorbellRecord */
  rnicsim_be32 eqn;  /* EQ for completion events */
  rnicsim_be32 producer;
  rnicsim_be32 armed;  /* 0 no, 1 next, 2 solicited */
  rnicsim_be32 consumer;  /* last consumer that the device knows */
  rnicsim_be32 solicited;  /* one past the last solicited CQE */
  rnicsim_be16 moderation_count;  /* an armed CQ's event waits for this number of CQEs, */
  rnicsim_be16 moderation_period;  /* or this number of microseconds after the first of them; either 0: no waiting */
  rnicsim_be32 withheld;  /* CQEs for which an event is delayed; owned by the device */
  rnicsim_be32 reserved[3];
};
#define RNICSIM_CQC_IGNORE_OVERRUN 0x1u
#define RNICSIM_CQC_IN_ERROR 0x2u  /* set by the device: the CQ overran */
RNICSIM_HOLDS(sizeof(struct rnicsim_cqc) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, log_entries) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, flags) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, uar_page) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, pasid) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, ring) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, doorbell_record) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, eqn) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, producer) == 28);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, armed) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, consumer) == 36);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, solicited) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, moderation_count) == 44);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, moderation_period) == 46);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, withheld) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_cqc, reserved) == 52);

/* Shared receive queue context. */
struct rnicsim_srqc {
  uint8_t log_entries;
  uint8_t log_stride;  /* log2 of an entry's bytes, its SrqNextSegment included, 5..10 */
  uint8_t flags;  /* kXrc, kInError */
  uint8_t reserved0;
  rnicsim_be32 pasid;
  rnicsim_be32 pd;  /* PD of the entries' keys; a QP may have another PD */
  rnicsim_be32 limit;  /* srq_limit is raised once when fewer posted entries are left; 0: none */
  rnicsim_be64 ring;  /* bus addresses, 64-byte aligned; 8 */
  rnicsim_be64 doorbell_record;  /* QpDoorbellRecord::receive_producer */
  /* --- owned by the device */
  rnicsim_be32 head;  /* index of the next entry */
  rnicsim_be32 taken;  /* number of entries taken so far, modulo 2^16 */
  /* --- with kXrc */
  rnicsim_be32 xrcd;
  rnicsim_be32 cqn;  /* CQ for completions */
  rnicsim_be32 reserved1[4];
};
#define RNICSIM_SRQC_IN_ERROR 0x1u
#define RNICSIM_SRQC_XRC 0x2u  /* for xrc_recv QPs of its domain */
RNICSIM_HOLDS(sizeof(struct rnicsim_srqc) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, log_entries) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, log_stride) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, flags) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, reserved0) == 3);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, pasid) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, pd) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, limit) == 12);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, ring) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, doorbell_record) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, head) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, taken) == 36);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, xrcd) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, cqn) == 44);
RNICSIM_HOLDS(offsetof(struct rnicsim_srqc, reserved1) == 48);

struct rnicsim_eqc {
  uint8_t log_entries;
  uint8_t reserved0;
  rnicsim_be16 msix_vector;
  rnicsim_be32 pasid;
  rnicsim_be64 ring;
  rnicsim_be32 producer;
  rnicsim_be32 consumer;
  rnicsim_be32 reserved1[10];
};
RNICSIM_HOLDS(sizeof(struct rnicsim_eqc) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, log_entries) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, reserved0) == 1);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, msix_vector) == 2);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, pasid) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, ring) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, producer) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, consumer) == 20);
RNICSIM_HOLDS(offsetof(struct rnicsim_eqc, reserved1) == 24);

enum rnicsim_mpt_kind {
  RNICSIM_MPT_KIND_REGION = 0,
  RNICSIM_MPT_KIND_WINDOW1 = 1,  /* type 1: any QP of the PD may bind and use it */
  RNICSIM_MPT_KIND_WINDOW2 = 2,  /* type 2B: bound to one QP, which alone may use it */
  RNICSIM_MPT_KIND_NULL = 3,  /* reads zeros, discards writes */
  RNICSIM_MPT_KIND_DEVICE_MEMORY = 4,  /* memory on the device: `bus_address` is an offset in the device's memory */
  RNICSIM_MPT_KIND_FAST_REGISTER = 5,  /* free until a fast_register gives it pages: `length` is the largest size */
};

/* Memory protection table entry of a region or window. A region is one range of bus addresses, or consists of pages
 * of one size whose bus addresses are in the MTT from `first_page` on. Key = index << 8 | tag. */
struct rnicsim_mpt {
  rnicsim_be32 key;
  rnicsim_be32 pd;
  rnicsim_be32 pasid;
  rnicsim_be32 access_flags;
  rnicsim_be64 start;  /* first address a work request may name (IOVA) */
  rnicsim_be64 length;
  rnicsim_be64 bus_address;  /* position of `start`: on the bus; with pages, in the first page; window: in its region */
  rnicsim_be32 valid;  /* 1; 0: free, a window that is not bound, or a region without pages yet */
  uint8_t log_page;  /* log2 of the page size, 12..30; 0: no pages */
  uint8_t kind;  /* enum rnicsim_mpt_kind */
  uint8_t reserved0[2];
  rnicsim_be32 first_page;  /* index in the MTT */
  rnicsim_be32 region;  /* window: index of its region */
  rnicsim_be32 qpn;  /* window2: QP that it is bound to */
  rnicsim_be32 windows;  /* region: number of windows bound to it; owned by the device */
};
RNICSIM_HOLDS(sizeof(struct rnicsim_mpt) == 64);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, key) == 0);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, pd) == 4);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, pasid) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, access_flags) == 12);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, start) == 16);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, length) == 24);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, bus_address) == 32);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, valid) == 40);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, log_page) == 44);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, kind) == 45);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, reserved0) == 46);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, first_page) == 48);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, region) == 52);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, qpn) == 56);
RNICSIM_HOLDS(offsetof(struct rnicsim_mpt, windows) == 60);

/* Memory translation table entry: bus address of a page. The kernel writes it into the ICM that it has lent, before
 * it creates the region. */
struct rnicsim_mtt {
  rnicsim_be64 page;
};
RNICSIM_HOLDS(sizeof(struct rnicsim_mtt) == 8);
RNICSIM_HOLDS(offsetof(struct rnicsim_mtt, page) == 0);

/* ICM tables: before the driver creates an object, it lends memory for the object's index range by map_icm. */
enum rnicsim_icm_table {
  RNICSIM_ICM_TABLE_QPC = 0,
  RNICSIM_ICM_TABLE_CQC = 1,
  RNICSIM_ICM_TABLE_EQC = 2,
  RNICSIM_ICM_TABLE_MPT = 3,
  RNICSIM_ICM_TABLE_MTT = 4,
  RNICSIM_ICM_TABLE_SRQC = 5,
};

#define RNICSIM_ICM_ENTRY_BYTES {256, 64, 64, 64, 8, 64}

#endif  /* RNICSIM_ABI_CONTEXT_H */
