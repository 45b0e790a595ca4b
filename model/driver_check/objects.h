// SPDX-License-Identifier: Apache-2.0
// Objects that the driver has made, derived from executed commands, and the progress of its queues. The check keeps
// this state apart from the device's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/base/pcie.h"
#include "model/base/units.h"
#include "model/nic/personality/commands.h"
#include "model/nic/personality/contexts.h"
#include "model/roce/types.h"

namespace rnicsim::driver_check {

enum class ObjectKind : std::uint8_t { eq, cq, qp, srq, key };
const char* name_of(ObjectKind kind);

struct QueuePair {
  nic::QpContext context;
  std::uint64_t life = 0;  // distinguishes queue pairs that had the same number
  roce::QpState state = roce::QpState::reset;
  std::uint16_t announced = 0;  // blocks of sends, modulo 2^16
  std::uint16_t received = 0;   // receive WQEs that the device took, modulo 2^16
};

struct CompletionRing {
  nic::CompletionQueue context;
  std::uint32_t written = 0;                   // CQEs that the device began to write, modulo 2^24
  std::uint32_t landed = 0;                    // CQEs whose owner bits are in memory, modulo 2^24
  std::optional<std::uint32_t> landed_before;  // `landed` before a read of the record pushed held CQEs
  std::uint32_t first = 0;                     // consumer at create_cq
  std::optional<std::uint32_t> resized_at;     // consumer at the last resize
  struct Entry {
    std::uint32_t position;
    std::uint32_t qpn;
    std::uint64_t life;
  };
  std::deque<Entry> entries;  // newest entries, at most the size of the ring
};

struct EventRing {
  nic::EventQueueContext context;
  std::uint32_t written = 0;  // EQEs, modulo 2^24
};

struct SharedRing {
  nic::SharedReceiveQueue context;
  std::uint16_t next = 0;              // index of the next entry of the chain
  std::uint16_t followed = 0;          // entries of the chain that the device has read, modulo 2^16
  std::uint16_t posted = 0;            // producer of the doorbell record
  std::set<std::uint16_t> unfinished;  // entries that the device has read and that have no CQE yet
};

// Use of a range of bus addresses.
enum class MemoryKind : std::uint8_t {
  send_ring,
  receive_ring,
  qp_record,
  cq_ring,
  cq_record,
  eq_ring,
  srq_ring,
  srq_record,
  command_queue,
  icm
};
struct MemoryRange {
  MemoryKind kind;
  std::uint32_t number;  // number of the object or of the ICM table
  std::uint64_t address;
  std::uint64_t bytes;
};
std::string in_words(const MemoryRange& range);

class Objects {
 public:
  std::map<std::uint32_t, QueuePair> qps;
  std::map<std::uint32_t, CompletionRing> cqs;
  std::map<std::uint32_t, EventRing> eqs;
  std::map<std::uint32_t, SharedRing> srqs;
  std::map<std::uint32_t, nic::MemoryRegion> regions;  // by index

  bool exists(ObjectKind kind, std::uint32_t number) const;
  // Time at which the last object with this number or key was destroyed.
  std::optional<Duration> destroyed_at(ObjectKind kind, std::uint32_t number) const;
  bool lives(std::uint32_t qpn, std::uint64_t life) const;

  void make(std::uint32_t qpn, const nic::QpContext& context);
  void destroy(ObjectKind kind, std::uint32_t number, Duration at);
  void destroy_region(std::uint32_t index, Duration at);
  // A teardown or a function-level reset.
  void destroy_all(Duration at);

  // --- Memory of the objects.
  void add(Pasid pasid, const MemoryRange& range);
  void remove(MemoryKind kind, std::uint32_t number);
  // Calls `see(range)` for each range that the access touches.
  template <class See>
  void each_at(Pasid pasid, std::uint64_t address, std::uint64_t bytes, See&& see) const {
    auto after = ranges_.lower_bound({pasid, address + bytes});
    // From the last range backwards. Rings of a correct driver do not overlap, so all ranges before a range that ends
    // at or below `address` end below `address`, too.
    while (after != ranges_.begin()) {
      --after;
      if (after->first.first != pasid || after->second.address + after->second.bytes <= address) return;
      see(after->second);
    }
  }

 private:
  static constexpr std::size_t kMostGone = 65536;
  std::map<std::pair<ObjectKind, std::uint32_t>, Duration> gone_;
  using Ranges = std::multimap<std::pair<Pasid, std::uint64_t>, MemoryRange>;
  Ranges ranges_;
  std::map<std::pair<MemoryKind, std::uint32_t>, Ranges::iterator> places_;  // ranges that occur once: all but ICM
  std::uint64_t lives_ = 0;
};

}  // namespace rnicsim::driver_check
