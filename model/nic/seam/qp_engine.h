// SPDX-License-Identifier: Apache-2.0
// The seam between the QP engine and the rest of the NIC: tagged transactions. Each transaction may be delayed, and
// transactions with different tags may be reordered. Payload never enters an engine: only headers and handles.
//
// Rules. An engine returns no values; it puts transactions into EngineOutputs at any time. Every request with a tag is
// answered once, with this tag, in any order; the engine chooses and reuses tags. The table in docs/architecture.md,
// Inside the NIC, lists the orders that must be kept, for example of the packets of one QP.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/payload.h"
#include "model/base/pcie.h"
#include "model/base/stream.h"
#include "model/base/units.h"
#include "model/nic/packets/congestion_seen.h"
#include "model/nic/packets/packet_streams.h"
#include "model/nic/personality/contexts.h"
#include "model/nic/personality/queue_entries.h"
#include "model/nic/personality/values.h"
#include "model/nic/seam/engine_trace.h"
#include "model/nic/seam/limits.h"
#include "model/roce/headers.h"
#include "model/roce/types.h"

namespace rnicsim::nic {

// --- Into the engine.
struct SendDoorbell {
  Qpn qpn;
  std::uint16_t producer;  // blocks posted so far, modulo 2^16
  Payload wqe;             // BlueFlame: the WQE that ends at `producer`; else empty
};

struct WqeBytes {
  Tag tag;
  bool ok;  // false: the ring could not be read
  Payload bytes;
};

struct ContextFill {
  Qpn qpn;
  std::optional<QpContext> context;  // nullopt: no such QP
};

// absent: access is granted, but some pages on demand are not present; they are requested.
enum class AccessResult : std::uint8_t { ok, bad_key, bad_range, bad_pd, denied, bus_error, absent };

struct DmaDone {
  Tag tag;
  AccessResult result;
  Payload payload;  // gather only
};

// Result of a check of a range, or of a bind, registration or invalidation of a key.
struct KeyDone {
  Tag tag;
  AccessResult result;
};

struct AtomicDone {
  Tag tag;
  AccessResult result;
  std::uint64_t original;  // value before the operation
};

// The answer to a take from a shared receive queue. No receive: none is posted, the queue is in error, or the QP may
// not use the queue.
struct SrqTaken {
  Tag tag;
  Qpn qpn;
  std::uint32_t srqn;
  std::uint64_t life = 0;  // serial number of the queue, because numbers are reused
  std::uint32_t pd = 0;    // protection domain of the queue, for the keys in the entry
  std::optional<ReceiveWqe> receive{};
  bool failed = false;
  bool refused = false;  // XRC: not a queue of the domain
  Cqn cqn{};             // XRC: CQ for the queue's completions
};

// A command on a QP, in the order of the command unit.
struct QpCommand {
  enum class Kind : std::uint8_t { create, modify, destroy, query };
  Tag tag;
  Kind kind;
  Qpn qpn;
  QpContext context;                     // create: whole; modify: attributes in the mask
  std::uint32_t attributes = 0;          // modify: roce::attr bits
  std::optional<roce::QpState> current;  // modify: the state that the driver assumes
};

// --- Out of the engine.
struct ContextWriteBack {
  Qpn qpn;
  QpContext context;
};

struct WqeFetch {
  Tag tag;
  Qpn qpn;
  QueueKind queue;
  Pasid pasid;
  std::uint64_t address;  // address of the first byte in the ring
  std::uint32_t bytes;    // the range does not wrap
};

struct Gather {  // memory -> payload of one packet
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;  // rights that the keys must grant; 0: local read
  bool remote;           // keys are rkeys (READ at the responder)
  Regions regions;
  bool frame = false;  // raw frame, whose bytes determine its destination: read also in timing-only
                       // mode
};

struct Scatter {  // payload of one packet -> memory
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool remote;
  Regions regions;  // their length is that of the payload
  Payload payload;
  // A packet of the same message follows, and no acknowledgement waits for this one: both may land together, at the
  // later time.
  bool more = false;
  std::uint8_t room = 0;  // bytes after the last region that padding to a cache line may use
};

struct AccessCheck {  // the whole range of a request, before its first packet is executed
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool remote;
  Region region;
};

// Checks whether the pages of regions on demand are present; `waits`: answered when they are present, or cannot be.
// Answered by checked() with ok or absent, even if an access would be refused.
struct PresenceCheck {
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool waits;
  Regions regions;
};

struct Atomic {  // on 8 aligned bytes of memory, in the host's byte order
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  bool is_swap;  // false: fetch and add
  roce::AtomicEth operation;
};

struct Invalidate {  // invalidates the key of a window, or of a region of kind fast_register
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t key;
};

struct BindWindow {
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  WindowBinding binding;
};

struct FastRegister {
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  Registration registration;
};

struct SrqTake {  // a message needs an entry of a shared receive queue
  Tag tag;
  Qpn qpn;
  std::uint32_t srqn;
  std::optional<std::uint32_t> xrcd{};  // the queue must be of this domain
  bool looks = false;                   // only asks about the queue, takes no entry
};

struct SrqGiveBack {  // an entry that no message will complete: it becomes the queue's next entry
  Qpn qpn;
  std::uint32_t srqn;
  std::uint64_t life;  // as in SrqTaken
  std::uint16_t index;
};

struct CqeWrite {
  Cqn cqn;
  Cqe cqe;
  bool solicited;               // may satisfy an arm for solicited events only
  bool behind_payload = false;  // the message's payload has just landed: the CQE follows without latency
  Payload payload{};            // message that the CQE carries
  std::uint64_t life = 0;       // XRC SRQ of the receive: as in SrqTaken
};

// The engine has begun a packet on one of its transmit units. It does not use the unit again before transmit_free().
struct TransmitWork {
  enum class Kind : std::uint8_t { write, send, read, atomic, read_response, acknowledge };
  std::uint32_t unit;
  Qpn qpn;
  Kind kind;
  bool begins;            // first packet of its message
  std::uint16_t payload;  // bytes
};

// First unit of a QP among `units`; also the index for data that is partitioned by QP.
inline std::uint32_t unit_of(Qpn qpn, std::uint32_t units) { return qpn.value % units; }

// A send WQE was read. It is needed again when it is sent and when it completes.
struct WqeHeld {
  Qpn qpn;
  std::uint16_t index;  // index of the first block
  std::uint16_t blocks;
};

// The next send WQE of its QP is about to be sent. Answered by wqe_at_hand() when the WQE is on the device.
struct WqeNeeded {
  Tag tag;
  Qpn qpn;
  std::uint16_t index;
  std::uint16_t blocks;
  Pasid pasid;
  std::uint64_t address;  // address in the ring
};

// A send WQE is complete; in the order of the ring.
struct WqeRetired {
  Qpn qpn;
  std::uint16_t index;
  std::uint16_t blocks;
  Pasid pasid;
  std::uint64_t address;  // address in the ring
  std::optional<CqeWrite> cqe;
};

struct EventOut {
  EventType type;
  std::uint32_t number;
  std::optional<Cqn> behind{};  // the event follows all earlier writes to this CQ
};

struct TimerArm {
  Qpn qpn;
  std::uint32_t kind;  // chosen by the engine; returned by timer_expired()
  Duration after;      // from now; arming the same (qpn, kind) again replaces this time
  bool cancel = false;
};

struct QpCommandDone {
  Tag tag;
  CommandStatus status;
  std::uint32_t syndrome;
  QpContext context;  // for query and modify
};

struct EngineOutputs {
  Output<ContextWriteBack> context_write_back;
  Output<WqeFetch> wqe_fetch;
  Output<Gather> gather;
  Output<Scatter> scatter;
  Output<AccessCheck> access_check;
  Output<PresenceCheck> presence_check;  // used only after on_demand()
  Output<Atomic> atomic;
  Output<Invalidate> invalidate;
  Output<BindWindow> bind_window;
  Output<FastRegister> fast_register;
  Output<SrqTake> srq_take;
  Output<SrqGiveBack> srq_give_back;
  Output<TransmitWork> transmit;
  Output<std::uint32_t> transmit_wanted;  // a turn waits for this unit: call transmit_free() once when the unit is free
  Output<PacketOut> packet;
  Output<CongestionSeen> congestion_seen;
  Output<WqeHeld> wqe_held;
  Output<WqeNeeded> wqe_needed;
  Output<WqeRetired> wqe_retired;
  Output<CqeWrite> cqe;  // CQEs of receives
  Output<EventOut> event;
  Output<TimerArm> timer;
  Output<QpCommandDone> command_done;
};

class QpEngine {
 public:
  virtual ~QpEngine() = default;
  virtual EngineOutputs& outputs() = 0;
  virtual EngineTrace& trace() = 0;
  virtual const EngineCounters& counters() const = 0;
  virtual void describe_state(std::string& out) const = 0;  // one line for each QP
  virtual std::size_t sends_outstanding() const = 0;        // sum over all QPs; visits each QP

  virtual void seed(std::uint64_t seed) = 0;  // seed of random draws

  virtual void doorbell(SendDoorbell&& doorbell) = 0;
  virtual void wqe(WqeBytes&& wqe) = 0;
  virtual void wqe_at_hand(Tag tag) = 0;
  // Receives that were read from this QP's ring and not used yet have left the device.
  virtual void receives_displaced(Qpn qpn) = 0;
  // Transactions of a QP come while the engine has its context: from creation, and from a fill until an eviction. The
  // engine gives up an evicted context by a write-back, when no transaction under way needs it; a fill may come
  // earlier.
  virtual void context(ContextFill fill) = 0;
  virtual void evict(Qpn qpn) = 0;
  virtual void transmit_free(std::uint32_t unit) = 0;
  virtual void gathered(DmaDone&& done) = 0;
  virtual void scattered(DmaDone&& done) = 0;
  virtual void checked(KeyDone done) = 0;
  virtual void atomic_done(AtomicDone done) = 0;
  virtual void key_changed(KeyDone done) = 0;  // answers invalidate, bind_window or fast_register
  virtual void srq_taken(SrqTaken taken) = 0;
  virtual void packet(PacketIn&& packet) = 0;
  virtual void command(QpCommand command) = 0;
  virtual void timer_expired(Qpn qpn, std::uint32_t kind) = 0;
  // From now on, until a reset, regions may be on demand.
  virtual void on_demand() = 0;
  // From now on packets whose source is this entry of the GID table have a VLAN tag, or have none. After a reset no
  // entry has a tag.
  virtual void gid_tagged(std::uint16_t index, bool tagged) = 0;
  virtual void cq_overrun(Qpn qpn) = 0;  // a CQ of this QP overran: the QP enters the error state
  // Credits of a class (PacketOut::credit_class) in packet_tx. Initially the engine has none; later each packet returns
  // its credit when it has left, in the order of its class.
  virtual void credit(std::uint8_t credit_class, std::uint32_t packets) = 0;
  virtual void reset() = 0;  // function-level reset: drops all state
};

}  // namespace rnicsim::nic
