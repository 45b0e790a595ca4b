// What the driver has made, as the commands that were executed say, and how far its queues are: the check's own notes,
// apart from the device's.
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
  std::uint64_t life = 0;  // tells it from others of its number
  roce::QpState state = roce::QpState::reset;
  std::uint16_t announced = 0;  // blocks of sends
  std::uint16_t received = 0;   // receive WQEs that the device took
};

struct CompletionRing {
  nic::CompletionQueue context;
  std::uint32_t written = 0;                   // CQEs on their way or there, modulo 2^24
  std::uint32_t landed = 0;                    // with their owner bits
  std::optional<std::uint32_t> landed_before;  // the read of its record pushed some
  std::uint32_t first = 0;                     // the consumer at create_cq
  std::optional<std::uint32_t> resized_at;     // the consumer of then
  struct Entry {
    std::uint32_t position;
    std::uint32_t qpn;
    std::uint64_t life;
  };
  std::deque<Entry> entries;  // the last ones, as many as the ring has
};

struct EventRing {
  nic::EventQueueContext context;
  std::uint32_t written = 0;  // modulo 2^24
};

struct SharedRing {
  nic::SharedReceiveQueue context;
  std::uint16_t next = 0;              // index of the entry that the chain goes on with
  std::uint16_t followed = 0;          // entries of the chain that were read, modulo 2^16
  std::uint16_t posted = 0;            // as the record says
  std::set<std::uint16_t> unfinished;  // entries that were read and have no CQE yet
};

// What lies at a range of bus addresses.
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
  std::uint32_t number;  // of the object, or table
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
  // When the object that was the last of its number or key went.
  std::optional<Duration> destroyed_at(ObjectKind kind, std::uint32_t number) const;
  bool lives(std::uint32_t qpn, std::uint64_t life) const;

  void make(std::uint32_t qpn, const nic::QpContext& context);
  void destroy(ObjectKind kind, std::uint32_t number, Duration at);
  void destroy_region(std::uint32_t index, Duration at);
  // A teardown, or a reset.
  void destroy_all(Duration at);

  // --- Memory of theirs.
  void add(Pasid pasid, const MemoryRange& range);
  void remove(MemoryKind kind, std::uint32_t number);
  // Those that the access touches. `see(range)`.
  template <class See>
  void each_at(Pasid pasid, std::uint64_t address, std::uint64_t bytes, See&& see) const {
    auto after = ranges_.lower_bound({pasid, address + bytes});
    // Rings of a right driver do not overlap: before the first that ends ahead of the access there is none to look at.
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
  std::map<std::pair<MemoryKind, std::uint32_t>, Ranges::iterator> places_;  // of all but ICM, which comes in pieces
  std::uint64_t lives_ = 0;
};

}  // namespace rnicsim::driver_check
