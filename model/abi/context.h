// SPDX-License-Identifier: Apache-2.0
// Contexts: the device's objects as stored in ICM (host memory lent to the device) and in command mailboxes.
// Chapter 4 of docs/device.md is checked against this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/big_endian.h"

namespace rnicsim::abi {

enum class QpState : std::uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, sqd = 4, sqe = 5, error = 6 };  // = ibv's
enum class Transport : std::uint8_t {  // = enum ibv_qp_type; above, ibv_qp_state
  rc = 2,
  uc = 3,
  ud = 4,
  raw = 8,
  xrc_send = 9,   // requester of RC whose messages name an SRQ
  xrc_recv = 10,  // responder of RC without queues
};

// Access rights of an MPT entry or a QP; the values are those of enum ibv_access_flags.
namespace access {
inline constexpr std::uint32_t kLocalWrite = 1u << 0;
inline constexpr std::uint32_t kRemoteWrite = 1u << 1;
inline constexpr std::uint32_t kRemoteRead = 1u << 2;
inline constexpr std::uint32_t kRemoteAtomic = 1u << 3;
inline constexpr std::uint32_t kWindowBind = 1u << 4;
inline constexpr std::uint32_t kZeroBased = 1u << 5;
inline constexpr std::uint32_t kOnDemand = 1u << 6;          // region: pages requested from the host (ATS, PRI)
inline constexpr std::uint32_t kRelaxedOrdering = 1u << 20;  // region: its TLPs may pass writes
}  // namespace access

// RoCEv2 address vector (IBTA vol 1 A17).
struct AddressVector {
  std::uint8_t remote_gid[16] = {};
  std::uint8_t remote_mac[6] = {};
  Be16 sgid_index;
  Be32 flow_label;  // 20 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  std::uint8_t static_rate = 0;
};
static_assert(sizeof(AddressVector) == 32);

// Queue pair context. The driver sets `fixed` at creation and the attributes by modify_qp; the device owns `progress`.
struct Qpc {
  // fixed
  QpState state = QpState::reset;
  Transport transport = Transport::rc;
  std::uint8_t log_send_blocks = 0;  // log2 of the send ring's 64-byte blocks
  std::uint8_t log_receive_wqes = 0;
  std::uint8_t log_receive_stride = 0;  // log2 of a receive WQE's bytes, 4..9
  std::uint8_t flags = 0;               // kHasSend .. kPadWrites
  Be16 uar_page;
  Be32 pd;
  Be32 pasid;
  Be32 send_cqn;
  Be32 receive_cqn;
  Be32 srqn;                        // with kHasSrq
  std::uint8_t inline_receive = 0;  // largest SEND of one packet that is received in its CQE, in bytes; 0: none
  std::uint8_t reserved0[3] = {};
  Be64 send_ring;  // bus addresses, in the PASID's space, 64-byte aligned
  Be64 receive_ring;
  Be64 doorbell_record;  // 8-byte aligned
  // attributes
  std::uint8_t port = 0;
  std::uint8_t path_mtu = 0;  // enum ibv_mtu: 1 = 256 .. 5 = 4096
  Be16 pkey_index;
  Be32 qkey;
  Be32 access_flags;  // access::kRemote*
  Be32 remote_qpn;
  Be32 send_psn;  // initial, 24 bits
  Be32 receive_psn;
  std::uint8_t max_rd_atomic = 0;       // outstanding as requester
  std::uint8_t max_dest_rd_atomic = 0;  // resources as responder
  std::uint8_t min_rnr_timer = 0;       // RNR timer code, 0..31
  std::uint8_t timeout = 0;             // local ACK timeout code, 0..31
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t path_migration_state = 0;
  std::uint8_t sqd_notify = 0;
  AddressVector path;
  AddressVector alternate_path;
  Be16 alternate_pkey_index;
  std::uint8_t alternate_port = 0;
  std::uint8_t alternate_timeout = 0;
  // progress
  Be32 send_consumer;  // blocks retired
  Be32 send_next;      // blocks started
  Be32 receive_consumer;
  Be32 next_send_psn;
  Be32 oldest_unacked_psn;
  Be32 expected_psn;
  Be32 msn;  // responder's message sequence number, 24 bits
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  std::uint8_t draining = 0;
  std::uint8_t reserved1 = 0;
  // fixed
  Be32 xrcd;        // xrc_recv: domain of the SRQs that the QP serves
  Be32 source_qpn;  // UD: QPN that the datagrams carry as their source; 0: the own QPN
  // attributes
  Be32 rate_limit;      // rate limit in kb/s; 0: none
  Be32 max_burst;       // bytes that may leave in one burst; 0: the device's choice
  Be16 typical_packet;  // bytes; 0: unknown
  Be16 reserved2;
  std::uint8_t reserved3[48] = {};

  static constexpr std::uint8_t kHasSend = 1u << 0;
  static constexpr std::uint8_t kHasReceive = 1u << 1;
  static constexpr std::uint8_t kHasSrq = 1u << 2;              // instead of a receive ring: RC and UD
  static constexpr std::uint8_t kBlockSelfMulticast = 1u << 3;  // this device does not receive the QP's own multicasts
  static constexpr std::uint8_t kStripVlan = 1u << 4;           // raw: a frame's outermost VLAN tag is moved to the CQE
  static constexpr std::uint8_t kScatterFcs = 1u << 5;          // raw: the FCS follows the frame
  static constexpr std::uint8_t kPadWrites = 1u << 6;           // received data is written in whole cache lines
};
static_assert(sizeof(Qpc) == 256);
static_assert(offsetof(Qpc, inline_receive) == 28 && offsetof(Qpc, port) == 56 && offsetof(Qpc, send_consumer) == 156);

struct Cqc {
  std::uint8_t log_entries = 0;
  std::uint8_t flags = 0;  // kIgnoreOverrun, kInError
  Be16 uar_page;
  Be32 pasid;
  Be64 ring;             // 64-byte aligned
  Be64 doorbell_record;  // CqDoorbellRecord
  Be32 eqn;              // EQ for completion events
  Be32 producer;
  Be32 armed;              // 0 no, 1 next, 2 solicited
  Be32 consumer;           // last consumer that the device knows
  Be32 solicited;          // one past the last solicited CQE
  Be16 moderation_count;   // an armed CQ's event waits for this number of CQEs,
  Be16 moderation_period;  // or this number of microseconds after the first of them; either 0: no waiting
  Be32 withheld;           // CQEs for which an event is delayed; owned by the device
  Be32 reserved[3];

  static constexpr std::uint8_t kIgnoreOverrun = 1u << 0;
  static constexpr std::uint8_t kInError = 1u << 1;  // set by the device: the CQ overran
};
static_assert(sizeof(Cqc) == 64);

// Shared receive queue context.
struct Srqc {
  std::uint8_t log_entries = 0;
  std::uint8_t log_stride = 0;  // log2 of an entry's bytes, its SrqNextSegment included, 5..10
  std::uint8_t flags = 0;       // kXrc, kInError
  std::uint8_t reserved0 = 0;
  Be32 pasid;
  Be32 pd;               // PD of the entries' keys; a QP may have another PD
  Be32 limit;            // srq_limit is raised once when fewer posted entries are left; 0: none
  Be64 ring;             // bus addresses, 64-byte aligned; 8
  Be64 doorbell_record;  // QpDoorbellRecord::receive_producer
  // owned by the device
  Be32 head;   // index of the next entry
  Be32 taken;  // number of entries taken so far, modulo 2^16
  // with kXrc
  Be32 xrcd;
  Be32 cqn;  // CQ for completions
  Be32 reserved1[4];

  static constexpr std::uint8_t kInError = 1u << 0;
  static constexpr std::uint8_t kXrc = 1u << 1;  // for xrc_recv QPs of its domain
};
static_assert(sizeof(Srqc) == 64);

struct Eqc {
  std::uint8_t log_entries = 0;
  std::uint8_t reserved0 = 0;
  Be16 msix_vector;
  Be32 pasid;
  Be64 ring;
  Be32 producer;
  Be32 consumer;
  Be32 reserved1[10];
};
static_assert(sizeof(Eqc) == 64);

enum class MptKind : std::uint8_t {
  region = 0,
  window1 = 1,        // type 1: any QP of the PD may bind and use it
  window2 = 2,        // type 2B: bound to one QP, which alone may use it
  null = 3,           // reads zeros, discards writes
  device_memory = 4,  // memory on the device: `bus_address` is an offset in the device's memory
  fast_register = 5,  // free until a fast_register gives it pages: `length` is the largest size
};

// Memory protection table entry of a region or window. A region is one range of bus addresses, or consists of pages of
// one size whose bus addresses are in the MTT from `first_page` on. Key = index << 8 | tag.
struct Mpt {
  Be32 key;
  Be32 pd;
  Be32 pasid;
  Be32 access_flags;
  Be64 start;  // first address a work request may name (IOVA)
  Be64 length;
  Be64 bus_address;           // position of `start`: on the bus; with pages, in the first page; window: in its
                              // region
  Be32 valid;                 // 1; 0: free, a window that is not bound, or a region without pages yet
  std::uint8_t log_page = 0;  // log2 of the page size, 12..30; 0: no pages
  MptKind kind = MptKind::region;
  std::uint8_t reserved0[2] = {};
  Be32 first_page;  // index in the MTT
  Be32 region;      // window: index of its region
  Be32 qpn;         // window2: QP that it is bound to
  Be32 windows;     // region: number of windows bound to it; owned by the device
};
static_assert(sizeof(Mpt) == 64);

// Memory translation table entry: bus address of a page. The kernel writes it into the ICM that it has lent, before it
// creates the region.
struct Mtt {
  Be64 page;
};
static_assert(sizeof(Mtt) == 8);

// ICM tables: before the driver creates an object, it lends memory for the object's index range by map_icm.
enum class IcmTable : std::uint32_t { qpc = 0, cqc = 1, eqc = 2, mpt = 3, mtt = 4, srqc = 5 };
inline constexpr std::uint32_t kIcmEntryBytes[] = {256, 64, 64, 64, 8, 64};

}  // namespace rnicsim::abi
