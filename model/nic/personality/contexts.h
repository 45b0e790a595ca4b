// SPDX-License-Identifier: Apache-2.0
// The device's objects, decoded: state of queues, memory regions and queue pairs.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/pcie.h"
#include "model/nic/personality/values.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

inline constexpr std::uint32_t kCounterMask = 0xffffff;   // for producer and consumer indices of CQs and EQs
inline constexpr std::uint64_t kRingAlignment = 64;       // bytes; for rings and for ICM memory
inline constexpr std::uint8_t kMostLogReceiveStride = 9;  // log2 of a receive WQE's bytes

enum class Arm : std::uint8_t { none = 0, next = 1, solicited = 2 };

struct CompletionQueue {
  std::uint8_t log_entries = 0;
  bool ignore_overrun = false;
  std::uint16_t uar_page = 0;
  Pasid pasid = 0;
  std::uint64_t ring = 0;
  std::uint64_t doorbell_record = 0;
  std::uint32_t eqn = 0;
  std::uint32_t producer = 0;   // modulo 2^24, as the next two
  std::uint32_t consumer = 0;   // the last known value
  std::uint32_t solicited = 0;  // one past the last solicited CQE
  Arm armed = Arm::none;
  std::uint16_t moderation_count = 0;
  std::uint16_t moderation_period = 0;  // us
  std::uint32_t withheld = 0;           // CQEs for which the event is delayed
  bool dead = false;

  bool moderated() const { return moderation_count > 1 && moderation_period != 0; }
  bool event_due() const { return !moderated() || withheld >= moderation_count; }
};

// Moves a CQ to another ring.
struct CqResize {
  std::uint32_t cqn;
  std::uint64_t ring;
  std::uint8_t log_entries;
};

struct EventQueueContext {
  std::uint8_t log_entries = 0;
  std::uint16_t vector = 0;
  Pasid pasid = 0;
  std::uint64_t ring = 0;
  std::uint32_t producer = 0;
  std::uint32_t consumer = 0;
  bool armed = true;
};

struct SharedReceiveQueue {
  std::uint8_t log_entries = 0;
  std::uint8_t log_stride = 0;
  Pasid pasid = 0;
  std::uint32_t pd = 0;
  std::uint32_t limit = 0;  // 0: not armed
  std::uint64_t ring = 0;
  std::uint64_t doorbell_record = 0;
  std::uint16_t taken = 0;  // modulo 2^16
  std::uint16_t head = 0;   // index of the next entry
  bool xrc = false;         // for receiving QPs of a domain
  std::uint32_t xrcd = 0;   // if `xrc`, as cqn
  std::uint32_t cqn = 0;    // CQ for its completions
  bool dead = false;
};

enum class RegionKind : std::uint8_t { region, window1, window2, null, device_memory, fast_register };

// Page sizes of regions, as powers of two.
inline constexpr std::uint8_t kLeastLogPage = 12, kMostLogPage = 30;

// A memory region, or a window on one.
struct MemoryRegion {
  RegionKind kind = RegionKind::region;
  bool valid = false;
  std::uint32_t key = 0;
  std::uint32_t pd = 0;
  Pasid pasid = 0;
  std::uint32_t access = 0;
  std::uint64_t start = 0;
  std::uint64_t length = 0;
  // Location of `start`: bus address; with pages: offset in the first page; device memory: offset; window: offset in
  // its region.
  std::uint64_t bus_address = 0;
  std::uint8_t log_page = 0;
  std::uint32_t first_page = 0;
  std::uint32_t region = 0;   // window: index of its region
  std::uint32_t qpn = 0;      // window of type 2: the queue pair that may use it
  std::uint32_t windows = 0;  // region: number of bound windows

  bool is_window() const { return kind == RegionKind::window1 || kind == RegionKind::window2; }
  // A window is on demand if its region is.
  bool on_demand() const { return (access & access::kOnDemand) != 0; }
  std::uint32_t pages() const {
    return log_page == 0 || length == 0 ? 0 : static_cast<std::uint32_t>((bus_address + length - 1) >> log_page) + 1;
  }
};

// Bus address of a page of a region.
struct PageEntry {
  std::uint64_t page = 0;
};

// The path to a peer (RoCEv2 address vector, IBTA vol 1 A17).
struct Path {
  roce::Gid remote_gid{};
  roce::MacAddress remote_mac{};
  std::uint16_t sgid_index = 0;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  std::uint8_t static_rate = 0;
};

// A queue pair: the driver's fixed values, attributes of modify commands, and progress.
struct QpContext {
  roce::QpState state = roce::QpState::reset;
  roce::Transport transport = roce::Transport::rc;
  std::uint8_t log_send_blocks = 0;  // log2 of the send ring's blocks
  std::uint8_t log_receive_wqes = 0;
  std::uint8_t log_receive_stride = 0;  // log2 of a receive WQE's bytes
  std::uint8_t inline_receive = 0;      // a SEND of one packet up to this size is written into its CQE
  bool has_send = false;
  bool has_receive = false;
  bool has_srq = false;               // replaces the receive ring: RC and UD
  bool block_self_multicast = false;  // own multicast datagrams do not come back to this device
  bool strip_vlan = false;            // raw: the outermost tag of a frame is reported in the CQE
  bool scatter_fcs = false;           // raw: the FCS follows the frame
  bool pad_writes = false;            // raw: received frames are written in whole cache lines
  std::uint16_t uar_page = 0;
  std::uint32_t pd = 0;
  Pasid pasid = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t receive_cqn = 0;
  std::uint32_t srqn = 0;        // if has_srq
  std::uint32_t source_qpn = 0;  // UD: QP number in sent datagrams; 0: the own number
  std::uint32_t xrcd = 0;        // xrc_recv: the domain of its SRQs
  std::uint64_t send_ring = 0;
  std::uint64_t receive_ring = 0;
  std::uint64_t doorbell_record = 0;
  // attributes
  std::uint8_t port = 0;
  std::uint8_t path_mtu = 0;  // enum ibv_mtu
  std::uint16_t pkey_index = 0;
  std::uint32_t qkey = 0;
  std::uint32_t access_flags = 0;  // access::kRemote*
  std::uint32_t remote_qpn = 0;
  std::uint32_t send_psn = 0;  // initial value
  std::uint32_t receive_psn = 0;
  std::uint32_t rate_limit = 0;         // raw: kb/s; 0: no limit
  std::uint32_t max_burst = 0;          // raw: bytes of a burst
  std::uint8_t max_rd_atomic = 0;       // outstanding as requester
  std::uint8_t max_dest_rd_atomic = 0;  // resources as responder
  std::uint8_t min_rnr_timer = 0;       // codes
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t path_migration_state = 0;
  std::uint8_t sqd_notify = 0;
  Path path;
  // progress
  std::uint32_t send_consumer = 0;  // blocks retired
  std::uint32_t send_next = 0;      // blocks started
  std::uint32_t receive_consumer = 0;
  std::uint32_t next_send_psn = 0;
  std::uint32_t oldest_unacked_psn = 0;
  std::uint32_t expected_psn = 0;
  std::uint32_t msn = 0;  // responder's message sequence number
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  std::uint8_t draining = 0;
};
static_assert(sizeof(QpContext) <= 176, "the engine keeps a context for each queue pair");

}  // namespace rnicsim::nic
