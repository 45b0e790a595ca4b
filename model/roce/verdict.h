// What a responder says to a request packet, and what it has to know first. A responder is a resumable chain of checks:
// it changes nothing before it decides, and asks for what it lacks (a receive WQE, a key check); the caller then judges
// the same packet again, with the answer.
#pragma once

#include <cstdint>
#include <optional>

#include "model/roce/headers.h"
#include "model/roce/loss_recovery.h"

namespace rnicsim::roce {

namespace remote_access {  // = enum ibv_access_flags
inline constexpr std::uint32_t kWrite = 1u << 1;
inline constexpr std::uint32_t kRead = 1u << 2;
inline constexpr std::uint32_t kAtomic = 1u << 3;
}  // namespace remote_access

struct ResponderAttributes {
  Transport transport = Transport::rc;   // of RC's responder: or xrc_recv
  Qpn remote;                            // of a connected queue pair
  std::uint32_t mtu = 1024;
  std::uint32_t qkey = 0;                // UD
  std::uint32_t access = 0;              // remote_access bits the queue pair grants
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t max_message = 1u << 31;
  bool invalidate = true;                // SEND with invalidate is an opcode of its,
  bool atomic_write = true;              // and ATOMIC WRITE
  LossRecovery recovery;
};

using OwedId = std::uint64_t;            // counts what a responder owes

// What the caller knows of the packet's resources.
struct Offer {
  enum class Receive : std::uint8_t { unknown, none, available, absent };  // absent: its memory is
  Receive receive = Receive::unknown;
  // XRC: the shared receive queue that the packet names, when the packet is looked at for more than its receive.
  enum class Queue : std::uint8_t { unknown, refused, known };
  Queue queue = Queue::unknown;
  std::uint32_t domain = 0;              // known: the queue's, whose keys the packet's is one of
  bool may_keep = true;                  // a packet that comes early, and whose payload cannot be placed yet
  std::uint64_t receive_bytes = 0;       // room of the WQE at the head of the receive queue
  std::optional<bool> access_granted;    // answer to wants_access
  bool absent = false;                   // granted, but its memory has first to be brought in
  std::uint32_t rd_atomic_pending = 0;   // READs and atomics accepted and not answered whole
  std::uint32_t duplicates_pending = 0;  // those to be answered once more: they take no resource from new ones
};

struct RemoteRange {
  std::uint64_t address = 0;
  Rkey rkey;
  std::uint32_t length = 0;
};

// Why a packet comes to nothing, without a word to the requester.
enum class DropCause : std::uint8_t {
  out_of_sequence,
  no_receive,           // UC, UD: nothing is posted
  bad_qkey,             // UD
  absent,               // UC, UD: memory that has first to be brought in
  unfit,                // UC, UD: too long for its receive or the path, or access that was not granted
};

struct Verdict {
  enum class Kind : std::uint8_t {
    drop,
    wants_receive,      // fill Offer::receive; XRC: or say that its queue is refused
    wants_queue,        // XRC: fill Offer::queue
    wants_access,       // check `range` for `access`, fill Offer::access_granted
    acknowledge,        // a duplicate: answer again
    reject,             // NAK; `fatal` puts the queue pair in error
    place,              // put the payload at `offset` of the receive WQE or at `range`
    read,               // answer with the bytes of `range`
    atomic,             // carry out `atomic` at `range`, answer with the original value and tell atomic_done()
    replay,             // a duplicate atomic: answer with `original`, carry out nothing
    busy,               // order forbids it now: to be judged again behind the queue pair's next event
    keep,               // packets before it are missing: keep it until `next_kept` names it; then judge it again
  };
  Kind kind = Kind::drop;
  OwedId owed = 0;                       // place, reject, atomic: what is owed for it
  DropCause cause = DropCause::out_of_sequence;  // drop
  // place
  bool to_receive_wqe = false;
  std::uint32_t offset = 0;
  RemoteRange range;                     // place: of this packet; wants_access and read: whole
  std::uint32_t access = 0;
  bool begins_receive = false;           // takes the WQE at the head of the receive queue
  bool completes = false;                // the message is whole
  bool completes_receive = false;        // and a receive WQE with it
  bool acknowledge = false;
  bool answers_read = false;             // an atomic write: by the response of an empty READ, once it is in memory
  bool duplicate = false;
  std::uint32_t message_bytes = 0;
  std::optional<Rkey> invalidate;        // once the payload is in memory, before the receive completes
  // atomic, replay
  std::uint32_t domain = 0;              // XRC: read, atomic: as offered
  std::optional<AtomicEth> atomic;
  bool is_swap = false;                  // else fetch and add
  std::uint64_t original = 0;
  // reject
  std::uint8_t syndrome = 0;
  bool fatal = false;
  std::optional<Status> receive_status;  // of the receive WQE that the message has or would have taken
  bool access_event = false;             // an access violation that no receive WQE tells of
  bool request_event = false;            // an invalid request that no receive WQE tells of
  bool early = false;                    // packets before it are missing
  // keep. Its payload may be placed now, at `range`, if that is not empty.
  bool tells_of_gap = false;             // a NAK with `syndrome` is owed
  // place, read, atomic: the packet of this PSN is the next. Drop those that were kept before that PSN.
  std::optional<Psn> next_kept;
  Psn psn;                               // of the answer
  std::uint32_t msn = 0;
};

}  // namespace rnicsim::roce
