// SPDX-License-Identifier: Apache-2.0
// Entries of the send, receive, completion and event queues, and the doorbells that announce them.
// Chapter 3 of docs/device.md is checked against this file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/abi/big_endian.h"
#include "model/abi/context.h"

namespace rnicsim::abi {

// --- Send queue: a ring of 64-byte basic blocks. A WQE is a control segment, followed by the segments that its opcode
// needs (datagram, remote address, bind, register, data or inline), and occupies whole blocks. The producer counts
// blocks.
inline constexpr std::uint32_t kSendBlock = 64;
inline constexpr std::uint32_t kMaxWqeBlocks = 16;

enum class SendOpcode : std::uint8_t {
  nop = 0x00,
  send_with_inv = 0x01,
  write = 0x08,
  write_with_imm = 0x09,
  send = 0x0a,
  send_with_imm = 0x0b,
  tso = 0x0e,           // raw packet: data split into frames, each with the given headers
  atomic_write = 0x0f,  // 8 aligned bytes, written atomically (IBTA 1.5)
  read = 0x10,
  compare_swap = 0x11,
  fetch_add = 0x12,
  bind_window = 0x18,
  fast_register = 0x19,  // gives pages and a key to a region of MptKind::fast_register
  local_inv = 0x1b,
};

struct ControlSegment {
  Be16 reserved0;
  std::uint8_t reserved1 = 0;
  SendOpcode opcode = SendOpcode::nop;
  Be16 wqe_index;  // index of this WQE's first block, modulo 2^16; must equal the consumer's
  std::uint8_t reserved2 = 0;
  std::uint8_t segments = 0;  // length of the WQE in 16-byte units, this segment included
  Be32 qpn_flags;             // qpn << 8 | kSignaled | kSolicited | kFence | kChecksums
  Be32 immediate;             // immediate data, or the rkey to invalidate

  static constexpr std::uint32_t kSignaled = 1u << 0;
  static constexpr std::uint32_t kSolicited = 1u << 1;
  static constexpr std::uint32_t kFence = 1u << 2;
  static constexpr std::uint32_t kChecksums = 1u << 3;  // raw packet: the device fills in checksums of IP, TCP and UDP
};
static_assert(sizeof(ControlSegment) == 16);

struct RemoteAddressSegment {
  Be64 address;
  Be32 rkey;
  Be32 reserved;
};
static_assert(sizeof(RemoteAddressSegment) == 16);

// First segment of an XRC QP's WQE: SRQ whose receive the message takes.
struct XrcSegment {
  Be32 srqn;
  Be32 reserved[3];
};
static_assert(sizeof(XrcSegment) == 16);

// First segment of a UD QP's WQE: destination of the message.
struct DatagramSegment {
  AddressVector path;
  Be32 remote_qpn;  // kMulticastQpn: every QP of the multicast group in `path`
  Be32 qkey;        // if its top bit is set, the QP's own Q_Key is sent
  Be32 reserved[2];
};
static_assert(sizeof(DatagramSegment) == 48);
inline constexpr std::uint32_t kMulticastQpn = 0xffffff;
inline constexpr std::uint32_t kOwnQkey = 0x80000000u;

// Segment of tso, followed by header_bytes of headers, padded to 16, and data segments.
struct TsoSegment {
  Be16 mss;           // bytes of data in one frame
  Be16 header_bytes;  // Ethernet, IP and TCP or UDP
  Be32 reserved[3];
};
static_assert(sizeof(TsoSegment) == 16);

// Segment of bind_window.
struct BindSegment {
  Be32 window;        // present rkey of the window, whose index is used
  Be32 rkey;          // new rkey: same index, another tag
  Be32 region;        // lkey of the region
  Be32 access_flags;  // access::kRemote*, kZeroBased
  Be64 address;
  Be64 length;  // 0: type 1, unbinds the window
};
static_assert(sizeof(BindSegment) == 32);

// Segment of fast_register. The pages' bus addresses are in the region's range of the MTT already.
struct RegisterSegment {
  Be32 key;           // new key: the region's index, any tag
  Be32 access_flags;  // access::kLocalWrite, kRemote*, kRelaxedOrdering
  Be64 start;         // first address a work request may name (IOVA)
  Be64 length;
  Be32 first_byte;            // offset of `start` in the first page
  std::uint8_t log_page = 0;  // log2 of the page size, 12..30
  std::uint8_t reserved0[3] = {};
  Be32 reserved1[4];
};
static_assert(sizeof(RegisterSegment) == 48);

struct AtomicSegment {
  Be64 swap_add;
  Be64 compare;
};
static_assert(sizeof(AtomicSegment) == 16);

struct DataSegment {
  Be32 byte_count;  // at most 2^31 - 1; 0 is an empty segment
  Be32 lkey;
  Be64 address;
};
static_assert(sizeof(DataSegment) == 16);

// Inline data: this word, then byte_count bytes, padded to 16.
struct InlineHeader {
  Be32 byte_count;  // kInline | bytes
  static constexpr std::uint32_t kInline = 0x80000000u;
};
static_assert(sizeof(InlineHeader) == 4);

// --- Receive queue: entries of 2^log_stride bytes, each a list of DataSegments ended by the stride or by kInvalidLkey.
inline constexpr std::uint32_t kInvalidLkey = 0x00000100;

// --- Shared receive queue: entries of 2^log_stride bytes in a linked list, because they are freed in any order. Every
// entry names the entry that will be posted after it, so the driver always keeps one entry unposted. Entry 0 is posted
// first.
struct SrqNextSegment {
  Be16 next;  // index of the next entry
  Be16 reserved0;
  Be32 reserved1[3];
};
static_assert(sizeof(SrqNextSegment) == 16);  // then DataSegments, ended by the stride or by kInvalidLkey

// --- Doorbell record: in host memory, at Qpc::doorbell_record; the driver writes it before it rings the doorbell.
struct QpDoorbellRecord {
  Be32 receive_producer;  // WQEs posted so far, modulo 2^16; of an SRQ: its entries
  Be32 send_producer;     // blocks posted so far, modulo 2^16
};
static_assert(sizeof(QpDoorbellRecord) == 8);

struct CqDoorbellRecord {
  Be32 consumer;  // CQEs consumed so far, modulo 2^24
  Be32 reserved;
};
static_assert(sizeof(CqDoorbellRecord) == 8);

// --- Doorbells (MMIO, UAR page).
struct SendDoorbell {
  Be32 qpn;
  Be32 producer;  // = QpDoorbellRecord::send_producer
};
static_assert(sizeof(SendDoorbell) == 8);

struct CqArm {
  Be32 cqn_flags;  // cqn << 8 | kSolicitedOnly
  Be32 consumer;   // CQEs consumed, modulo 2^24: if a later CQE is already written, the event fires at once
  static constexpr std::uint32_t kSolicitedOnly = 1u << 0;
};
static_assert(sizeof(CqArm) == 8);

struct EqDoorbell {
  Be32 eqn;
  Be32 consumer;  // EQEs consumed so far, modulo 2^24; also arms the EQ's MSI-X vector
};
static_assert(sizeof(EqDoorbell) == 8);

// --- Completion queue entry. The driver initialises every entry's owner to kInitialOwner. The entry at position n
// (counted without limit) belongs to the driver when owner bit 0 == (n >> log_entries) & 1 and the opcode is not
// `invalid`; the device writes the owner byte last.
enum class CqeOpcode : std::uint8_t {
  requester = 0x0,
  receive_write_with_imm = 0x1,
  receive_send = 0x2,
  receive_send_with_imm = 0x3,
  receive_send_with_inv = 0x4,
  requester_error = 0xd,
  responder_error = 0xe,
  invalid = 0xf,
};

// The values are those of enum ibv_wc_status.
enum class CqeSyndrome : std::uint8_t {
  success = 0,
  local_length_error = 1,
  local_qp_operation_error = 2,
  local_protection_error = 4,
  flushed_error = 5,
  memory_window_bind_error = 6,
  bad_response_error = 7,
  local_access_error = 8,
  remote_invalid_request_error = 9,
  remote_access_error = 10,
  remote_operation_error = 11,
  transport_retry_exceeded = 12,
  rnr_retry_exceeded = 13,
  remote_aborted_error = 16,
  fatal_error = 18,
  general_error = 21,
};

struct Cqe {
  Be32 immediate;  // immediate data or the invalidated rkey; raw packet: tag of its flow
  Be32 byte_count;
  Be64 timestamp;    // device clock
  Be32 qpn;          // the local QP
  Be16 wqe_counter;  // requester: wqe_index; responder: index of the receive WQE, or of the SRQ's entry
  SendOpcode send_opcode = SendOpcode::nop;  // requester: opcode of the completed WQE
  std::uint8_t flags = 0;                    // kInlineData .. kXrc
  CqeSyndrome syndrome = CqeSyndrome::success;
  std::uint8_t vendor_error = 0;
  Be16 vlan;                          // with kVlan: priority 3 bits, DEI 1, VLAN 12
  std::uint8_t inline_data[32] = {};  // with kInlineData: byte_count bytes of the message; raw packet: RawFacts
  std::uint8_t source_qpn[3] = {};    // UD: QPN of the sender; with kXrc: number of the SRQ; 24 bits big-endian
  std::uint8_t opcode_owner = 0;      // CqeOpcode << 4 | owner bit

  static constexpr std::uint8_t kInlineData = 1u << 0;
  static constexpr std::uint8_t kGrh = 1u << 1;   // UD: 40 bytes of GRH precede the payload and count in byte_count
  static constexpr std::uint8_t kIpv4 = 1u << 2;  // with kGrh: the GRH contains an IPv4 header, else an IPv6 header
  static constexpr std::uint8_t kChecksumsRight = 1u << 3;  // raw packet: checksums of IP, and TCP or UDP, are right
  static constexpr std::uint8_t kFlowTag = 1u << 4;         // raw packet: its flow has a tag
  // the packet had a VLAN tag: a datagram, or a raw packet whose tag Qpc::kStripVlan removed
  static constexpr std::uint8_t kVlan = 1u << 5;
  static constexpr std::uint8_t kXrc = 1u << 6;  // a receive of an XRC SRQ
  static constexpr std::uint8_t kInitialOwner = 0xf1;
};
struct RawFacts {
  Be32 rss_hash;  // 0: no hash was computed
};
static_assert(sizeof(Cqe) == 64);
static_assert(offsetof(Cqe, inline_data) == 28);
static_assert(offsetof(Cqe, opcode_owner) == 63);

// --- Event queue entry. Ownership as for a CQE, by owner bit 0.
enum class EventType : std::uint8_t {
  completion = 0x00,  // number = cqn
  communication_established = 0x01,
  send_queue_drained = 0x02,
  last_wqe_reached = 0x03,
  srq_limit = 0x04,  // number = srqn
  cq_error = 0x10,   // number = cqn
  qp_fatal = 0x11,
  qp_request_error = 0x12,
  qp_access_error = 0x13,
  srq_error = 0x14,    // number = srqn
  port_active = 0x20,  // number = port
  port_error = 0x21,
  device_fatal = 0x22,  // number = 0
};

struct Eqe {
  EventType type = EventType::completion;
  std::uint8_t reserved0[3] = {};
  Be32 number;  // subject of the event: cqn, qpn, srqn or port
  Be32 reserved1[5];
  std::uint8_t reserved2[3] = {};
  std::uint8_t owner = 0;

  static constexpr std::uint8_t kInitialOwner = 0x01;
};
static_assert(sizeof(Eqe) == 32);
static_assert(offsetof(Eqe, owner) == 31);

}  // namespace rnicsim::abi
