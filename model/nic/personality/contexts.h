// The device's objects, decoded: what a block on the device knows of a queue, a region, a queue pair.
#pragma once

#include <array>
#include <cstdint>

#include "model/base/pcie.h"
#include "model/nic/personality/values.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

inline constexpr std::uint32_t kCounterMask = 0xffffff;  // producer and consumer indices of CQs and EQs
inline constexpr std::uint64_t kRingAlignment = 64;      // bytes, of a ring and of ICM memory
inline constexpr std::uint8_t kMostLogReceiveStride = 9;  // of a receive WQE's bytes

enum class Arm : std::uint8_t { none = 0, next = 1, solicited = 2 };

struct CompletionQueue {
  std::uint8_t log_entries = 0;
  bool ignore_overrun = false;
  std::uint16_t uar_page = 0;
  Pasid pasid = 0;
  std::uint64_t ring = 0;
  std::uint64_t doorbell_record = 0;
  std::uint32_t eqn = 0;
  std::uint32_t producer = 0;            // modulo 2^24, as all below
  std::uint32_t consumer = 0;            // the last known
  std::uint32_t solicited = 0;           // one past the last solicited CQE
  Arm armed = Arm::none;
  std::uint16_t moderation_count = 0;
  std::uint16_t moderation_period = 0;   // us
  std::uint32_t withheld = 0;            // CQEs that its event waits behind
  bool dead = false;

  bool moderated() const { return moderation_count > 1 && moderation_period != 0; }
  bool event_due() const { return !moderated() || withheld >= moderation_count; }
};

// A CQ is to go on in another ring.
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
  std::uint32_t limit = 0;               // 0: not armed
  std::uint64_t ring = 0;
  std::uint64_t doorbell_record = 0;
  std::uint16_t taken = 0;               // modulo 2^16
  std::uint16_t head = 0;                // index of the next entry
  bool xrc = false;                      // for the receiving QPs of a domain
  std::uint32_t xrcd = 0;                // with xrc, as the next
  std::uint32_t cqn = 0;                 // of its completions
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
  // Where `start` lies: on the bus; with pages, in the first page; in the device's memory; of a window, in its region.
  std::uint64_t bus_address = 0;
  std::uint8_t log_page = 0;
  std::uint32_t first_page = 0;
  std::uint32_t region = 0;              // window: the index of that which it is bound to
  std::uint32_t qpn = 0;                 // window of type 2: the queue pair that may use it
  std::uint32_t windows = 0;             // region: windows bound to it

  bool is_window() const { return kind == RegionKind::window1 || kind == RegionKind::window2; }
  // Of a window: on such a region.
  bool on_demand() const { return (access & access::kOnDemand) != 0; }
  std::uint32_t pages() const {
    return log_page == 0 || length == 0 ? 0 : static_cast<std::uint32_t>((bus_address + length - 1) >> log_page) + 1;
  }
};

// Where a page of a region lies on the bus.
struct PageEntry {
  std::uint64_t page = 0;
};

// The way to a peer (RoCEv2 address vector, IBTA vol 1 A17).
struct Path {
  roce::Gid remote_gid{};
  roce::MacAddress remote_mac{};
  std::uint16_t sgid_index = 0;
  std::uint32_t flow_label = 0;          // 20 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;
  std::uint8_t static_rate = 0;
};

// A queue pair as its driver made it, what modifies gave it, and how far it is.
struct QpContext {
  roce::QpState state = roce::QpState::reset;
  roce::Transport transport = roce::Transport::rc;
  std::uint8_t log_send_blocks = 0;      // of its send ring
  std::uint8_t log_receive_wqes = 0;
  std::uint8_t log_receive_stride = 0;   // of a receive WQE's bytes
  std::uint8_t inline_receive = 0;       // a SEND of one packet up to so many bytes comes in its CQE
  bool has_send = false;
  bool has_receive = false;
  bool has_srq = false;                  // instead of a receive ring: RC and UD
  bool block_self_multicast = false;     // its own multicasts do not come to this device
  bool strip_vlan = false;               // raw: a frame's outermost tag comes in the CQE
  bool scatter_fcs = false;              // raw: the FCS comes behind the frame
  bool pad_writes = false;               // raw: what is received is written in whole cache lines
  std::uint16_t uar_page = 0;
  std::uint32_t pd = 0;
  Pasid pasid = 0;
  std::uint32_t send_cqn = 0;
  std::uint32_t receive_cqn = 0;
  std::uint32_t srqn = 0;                // with has_srq
  std::uint32_t source_qpn = 0;          // UD: its datagrams come from this one; 0: its own
  std::uint32_t xrcd = 0;                // xrc_recv: the domain of the SRQs that it serves
  std::uint64_t send_ring = 0;
  std::uint64_t receive_ring = 0;
  std::uint64_t doorbell_record = 0;
  // attributes
  std::uint8_t port = 0;
  std::uint8_t path_mtu = 0;             // enum ibv_mtu
  std::uint16_t pkey_index = 0;
  std::uint32_t qkey = 0;
  std::uint32_t access_flags = 0;        // access::kRemote*
  std::uint32_t remote_qpn = 0;
  std::uint32_t send_psn = 0;            // initial
  std::uint32_t receive_psn = 0;
  std::uint32_t rate_limit = 0;          // raw: kb/s; 0: none
  std::uint32_t max_burst = 0;           // raw: bytes that may leave at once
  std::uint8_t max_rd_atomic = 0;        // outstanding as requester
  std::uint8_t max_dest_rd_atomic = 0;   // resources as responder
  std::uint8_t min_rnr_timer = 0;        // codes
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t path_migration_state = 0;
  std::uint8_t sqd_notify = 0;
  Path path;
  // progress
  std::uint32_t send_consumer = 0;       // blocks retired
  std::uint32_t send_next = 0;           // blocks started
  std::uint32_t receive_consumer = 0;
  std::uint32_t next_send_psn = 0;
  std::uint32_t oldest_unacked_psn = 0;
  std::uint32_t expected_psn = 0;
  std::uint32_t msn = 0;                 // responder's message sequence number
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_retries_left = 0;
  std::uint8_t draining = 0;
};
static_assert(sizeof(QpContext) <= 176, "the engine keeps one for each queue pair");

}  // namespace rnicsim::nic
