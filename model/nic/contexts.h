// Resident contexts, decoded: completion, event and shared receive queues and memory regions. The one place where their
// ICM layout is read and written.
#pragma once

#include <cstdint>

#include "model/abi/context.h"
#include "model/base/pcie.h"

namespace rnicsim::nic {

inline constexpr std::uint32_t kCounterMask = 0xffffff;  // producer and consumer indices of CQs and EQs

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
  bool dead = false;
};

// A memory region, or a window on one.
struct MemoryRegion {
  abi::MptKind kind = abi::MptKind::region;
  bool valid = false;
  std::uint32_t key = 0;
  std::uint32_t pd = 0;
  Pasid pasid = 0;
  std::uint32_t access = 0;
  std::uint64_t start = 0;
  std::uint64_t length = 0;
  std::uint64_t bus_address = 0;
  std::uint8_t log_page = 0;
  std::uint32_t first_page = 0;
  std::uint32_t region = 0;              // window: the index of that which it is bound to
  std::uint32_t qpn = 0;                 // window of type 2: the queue pair that may use it
  std::uint32_t windows = 0;             // region: windows bound to it

  bool is_window() const { return kind == abi::MptKind::window1 || kind == abi::MptKind::window2; }
  std::uint32_t pages() const {
    return log_page == 0 || length == 0 ? 0 : static_cast<std::uint32_t>((length - 1) >> log_page) + 1;
  }
};

CompletionQueue decode(const abi::Cqc& context);
EventQueueContext decode(const abi::Eqc& context);
SharedReceiveQueue decode(const abi::Srqc& context);
MemoryRegion decode(const abi::Mpt& context);
abi::Cqc encode(const CompletionQueue& queue);
abi::Eqc encode(const EventQueueContext& queue);
abi::Srqc encode(const SharedReceiveQueue& queue);
abi::Mpt encode(const MemoryRegion& region);

}  // namespace rnicsim::nic
