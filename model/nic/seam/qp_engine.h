// The seam between the QP engine and the rest of the NIC: tagged transactions, each of which may be delayed, and those
// of different tags reordered. Payload never enters an engine: headers and handles only.
//
// Rules. An engine answers nothing by return value; it puts transactions into EngineOutputs, at any time. Every request
// with a tag is answered once, with that tag, in any order; tags are the engine's to choose and to reuse. What must
// keep its order is in the table of docs/architecture.md, Inside the NIC: packets of one QP, for one.
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
  std::uint16_t producer;                // blocks ever posted, modulo 2^16
  Payload wqe;                           // BlueFlame: the WQE that ends at `producer`; else empty
};

struct WqeBytes {
  Tag tag;
  bool ok;                               // false: the ring could not be read
  Payload bytes;
};

struct ContextFill {
  Qpn qpn;
  std::optional<QpContext> context;       // nullopt: no such QP
};

// absent: all is well, but some of its pages are not there yet; they are on demand, and asked for.
enum class AccessResult : std::uint8_t { ok, bad_key, bad_range, bad_pd, denied, bus_error, absent };

struct DmaDone {
  Tag tag;
  AccessResult result;
  Payload payload;                       // gather only
};

// A range was checked against its key; or a key was bound or invalidated.
struct KeyDone {
  Tag tag;
  AccessResult result;
};

struct AtomicDone {
  Tag tag;
  AccessResult result;
  std::uint64_t original;                // what stood there before
};

// The answer to a take from a shared receive queue. It was in vain when none was posted, the queue is in error, or the
// QP may take from none like that.
struct SrqTaken {
  Tag tag;
  Qpn qpn;
  std::uint32_t srqn;
  std::uint64_t life = 0;                // of the queue: its number is used again
  std::uint32_t pd = 0;                  // the queue's, whose keys the entry names
  std::optional<ReceiveWqe> receive{};
  bool failed = false;
  bool refused = false;                  // of a domain: no queue of it
  Cqn cqn{};                             // XRC: of the queue's completions
};

// A command on a QP, in the order the command unit issued them.
struct QpCommand {
  enum class Kind : std::uint8_t { create, modify, destroy, query };
  Tag tag;
  Kind kind;
  Qpn qpn;
  QpContext context;                     // create: whole; modify: the attributes named by the mask
  std::uint32_t attributes = 0;          // modify: roce::attr bits
  std::optional<roce::QpState> current;  // modify: what the driver believes
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
  std::uint64_t address;                 // of the first byte in the ring
  std::uint32_t bytes;                   // does not wrap
};

struct Gather {                          // memory -> payload of one packet
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;                  // access bits that the keys must grant (0 for a local read)
  bool remote;                           // keys are rkeys (the responder's READ)
  Regions regions;
  bool frame = false;                    // a raw one, whose bytes say where it goes: read in any mode
};

struct Scatter {                         // payload of one packet -> memory
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool remote;
  Regions regions;                       // cover exactly the payload
  Payload payload;
  bool more = false;                     // a packet of the same message follows: both may land together, at its time
  std::uint8_t room = 0;                 // bytes behind the last region that the line's padding may take
};

struct AccessCheck {                     // the whole range of a request, before its first packet is executed
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool remote;
  Region region;
};

// Regions on demand: whether their pages are there; or, with `waits`, when they are, or can't be. Answered by
// checked(): ok or absent, whatever else there may be against them.
struct PresenceCheck {
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  std::uint32_t access;
  bool waits;
  Regions regions;
};

struct Atomic {                          // on 8 aligned bytes of host memory, in the host's byte order
  Tag tag;
  Qpn qpn;
  std::uint32_t pd;
  bool is_swap;                          // compare and swap; else fetch and add
  roce::AtomicEth operation;
};

struct Invalidate {                      // takes the key of a window, or of a region of kind fast_register, out of use
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

struct SrqTake {                         // a message wants an entry of a shared receive queue
  Tag tag;
  Qpn qpn;
  std::uint32_t srqn;
  std::optional<std::uint32_t> xrcd{};   // the queue must be of this domain
  bool looks = false;                    // it only wants to know the queue
};

struct SrqGiveBack {                     // an entry that no message will complete: it is the queue's next one
  Qpn qpn;
  std::uint32_t srqn;
  std::uint64_t life;                    // as SrqTaken says
  std::uint16_t index;
};

struct CqeWrite {
  Cqn cqn;
  Cqe cqe;
  bool solicited;                        // may satisfy a solicited-only arm
  bool behind_payload = false;           // its message's payload has just landed: the CQE was right behind it
  Payload payload{};                     // that the CQE brings itself
  std::uint64_t life = 0;                // of the XRC SRQ whose receive it is of, as SrqTaken says
};

// The engine has begun with a packet on one of its transmit units, and asks no more of that unit before
// transmit_free().
struct TransmitWork {
  enum class Kind : std::uint8_t { write, send, read, atomic, read_response, acknowledge };
  std::uint32_t unit;
  Qpn qpn;
  Kind kind;
  bool begins;                           // the first packet of its message
  std::uint16_t payload;                 // bytes
};

// The unit that a QP begins at, of so many that take whichever is next; or the one of several parts that it belongs to.
inline std::uint32_t unit_of(Qpn qpn, std::uint32_t units) { return qpn.value % units; }

// A send WQE has come; it is needed again when it is sent and when it completes.
struct WqeHeld {
  Qpn qpn;
  std::uint16_t index;                   // of its first block
  std::uint16_t blocks;
};

// The next send WQE of its QP is about to be sent: answered by wqe_at_hand(), when it is on the device.
struct WqeNeeded {
  Tag tag;
  Qpn qpn;
  std::uint16_t index;
  std::uint16_t blocks;
  Pasid pasid;
  std::uint64_t address;                 // in the ring
};

// A send WQE is done with; in the order of the ring.
struct WqeRetired {
  Qpn qpn;
  std::uint16_t index;
  std::uint16_t blocks;
  Pasid pasid;
  std::uint64_t address;                 // in the ring
  std::optional<CqeWrite> cqe;
};

struct EventOut {
  EventType type;
  std::uint32_t number;
  std::optional<Cqn> behind{};           // what is to be written to that CQ
};

struct TimerArm {
  Qpn qpn;
  std::uint32_t kind;                    // the engine's; given back by timer_expired
  Duration after;                        // from now; a later arm of the same (qpn, kind) replaces this one
  bool cancel = false;
};

struct QpCommandDone {
  Tag tag;
  CommandStatus status;
  std::uint32_t syndrome;
  QpContext context;                     // query, and modify
};

struct EngineOutputs {
  Output<ContextWriteBack> context_write_back;
  Output<WqeFetch> wqe_fetch;
  Output<Gather> gather;
  Output<Scatter> scatter;
  Output<AccessCheck> access_check;
  Output<PresenceCheck> presence_check;   // only after on_demand()
  Output<Atomic> atomic;
  Output<Invalidate> invalidate;
  Output<BindWindow> bind_window;
  Output<FastRegister> fast_register;
  Output<SrqTake> srq_take;
  Output<SrqGiveBack> srq_give_back;
  Output<TransmitWork> transmit;
  Output<std::uint32_t> transmit_wanted;  // something waits for this unit: transmit_free(), once, when it is
  Output<PacketOut> packet;
  Output<CongestionSeen> congestion_seen;
  Output<WqeHeld> wqe_held;
  Output<WqeNeeded> wqe_needed;
  Output<WqeRetired> wqe_retired;
  Output<CqeWrite> cqe;                   // of receives
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
  virtual void describe_state(std::string& out) const = 0;  // one line a QP
  virtual std::size_t sends_outstanding() const = 0;        // of all QPs; looks at each of them

  virtual void seed(std::uint64_t seed) = 0;  // of what an engine draws

  virtual void doorbell(SendDoorbell&& doorbell) = 0;
  virtual void wqe(WqeBytes&& wqe) = 0;
  virtual void wqe_at_hand(Tag tag) = 0;
  // The receives that were read of this QP's ring, and that no message waits for, have left the device.
  virtual void receives_displaced(Qpn qpn) = 0;
  // What is about a QP comes when the engine has its context: from creation on, and from a fill to an eviction. The
  // engine gives an evicted one up, by a write-back, when nothing that it waits for needs it any more; a fill may be
  // earlier.
  virtual void context(ContextFill fill) = 0;
  virtual void evict(Qpn qpn) = 0;
  virtual void transmit_free(std::uint32_t unit) = 0;
  virtual void gathered(DmaDone&& done) = 0;
  virtual void scattered(DmaDone&& done) = 0;
  virtual void checked(KeyDone done) = 0;
  virtual void atomic_done(AtomicDone done) = 0;
  virtual void key_changed(KeyDone done) = 0;  // of an invalidate, a bind_window or a fast_register
  virtual void srq_taken(SrqTaken taken) = 0;
  virtual void packet(PacketIn&& packet) = 0;
  virtual void command(QpCommand command) = 0;
  virtual void timer_expired(Qpn qpn, std::uint32_t kind) = 0;
  // From now on there are regions on demand; until a reset.
  virtual void on_demand() = 0;
  // Packets with that entry of the GID table as their source have a VLAN tag from now on, or have none. After a reset
  // none has.
  virtual void gid_tagged(std::uint16_t index, bool tagged) = 0;
  virtual void cq_overrun(Qpn qpn) = 0;   // of a CQ of this QP: it goes to the error state
  // Room in packet_tx for packets of a class (PacketOut::credit_class); the engine starts with none. Beyond that, for
  // each packet put out, in the order of its class, when it has left.
  virtual void credit(std::uint8_t credit_class, std::uint32_t packets) = 0;
  virtual void reset() = 0;               // function-level reset: forget everything
};

}  // namespace rnicsim::nic
