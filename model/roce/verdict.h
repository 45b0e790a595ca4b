// SPDX-License-Identifier: Apache-2.0
// A responder's verdict on a request packet, and the information that the responder needs for it. A responder is a
// resumable chain of checks: it changes nothing before it decides, and asks for missing information (a receive WQE, a
// key check); the caller then has the same packet checked again, with the information.
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
  Transport transport = Transport::rc;  // RC's responder: rc or xrc_recv
  Qpn remote;                           // for a connected queue pair
  std::uint32_t mtu = 1024;
  std::uint32_t qkey = 0;    // UD
  std::uint32_t access = 0;  // remote_access bits that the queue pair grants
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t max_message = 1u << 31;
  bool invalidate = true;    // SEND with invalidate is supported
  bool atomic_write = true;  // ATOMIC WRITE is supported
  LossRecovery recovery;
};

using AnswerId = std::uint64_t;  // number of a pending answer of a responder

// The caller's information about the packet's resources.
struct Offer {
  enum class Receive : std::uint8_t { unknown, none, available, absent };  // absent: its memory is not present
  Receive receive = Receive::unknown;
  // XRC: the shared receive queue of a packet that takes no receive.
  enum class Queue : std::uint8_t { unknown, refused, known };
  Queue queue = Queue::unknown;
  std::uint32_t domain = 0;              // known: domain of the queue, which is the domain of the packet's key
  bool may_keep = true;                  // an early packet whose payload cannot be placed yet may be kept
  std::uint64_t receive_bytes = 0;       // room of the WQE at the head of the receive queue
  std::optional<bool> access_granted;    // answer to wants_access
  bool absent = false;                   // access is granted, but the memory is not present yet
  std::uint32_t rd_atomic_pending = 0;   // READs and atomics accepted and not wholly answered
  std::uint32_t duplicates_pending = 0;  // repeated answers: they take no resource from new requests
};

struct RemoteRange {
  std::uint64_t address = 0;
  Rkey rkey;
  std::uint32_t length = 0;
};

// Reason for which a packet is dropped without an answer.
enum class DropCause : std::uint8_t {
  out_of_sequence,
  no_receive,  // UC, UD: no receive is posted
  bad_qkey,    // UD
  absent,      // UC, UD: memory that is not present yet
  unfit,       // UC, UD: too long for its receive or the path, or access was not granted
};

struct Verdict {
  enum class Kind : std::uint8_t {
    drop,
    wants_receive,  // fill Offer::receive; XRC: or report that the queue is refused
    wants_queue,    // XRC: fill Offer::queue
    wants_access,   // check `range` for `access`, fill Offer::access_granted
    acknowledge,    // a duplicate: acknowledge again
    reject,         // NAK; `fatal` puts the queue pair in error
    place,          // put the payload at `offset` of the receive WQE or at `range`
    read,           // answer with the bytes of `range`
    atomic,         // execute `atomic` at `range`, answer with the original value, call atomic_done()
    replay,         // a duplicate atomic: answer with `original`, execute nothing
    busy,           // the order forbids the request now: check again after the queue pair's next event
    keep,           // earlier packets are missing: keep the packet until `next_kept` names it; then check it again
  };
  Kind kind = Kind::drop;
  AnswerId pending_answer = 0;                   // place, reject, atomic: number of the pending answer
  DropCause cause = DropCause::out_of_sequence;  // drop
  // place
  bool to_receive_wqe = false;
  std::uint32_t offset = 0;
  RemoteRange range;  // place: range of this packet; wants_access and read: whole range
  std::uint32_t access = 0;
  bool begins_receive = false;     // takes the WQE at the head of the receive queue
  bool completes = false;          // the message is complete
  bool completes_receive = false;  // the message completes a receive WQE
  bool acknowledge = false;
  bool answers_read = false;  // ATOMIC WRITE: answered by the response of an empty READ, once the payload is
                              // in memory
  bool duplicate = false;
  std::uint32_t message_bytes = 0;
  std::optional<Rkey> invalidate;  // key to invalidate when the payload is in memory, before the receive
                                   // completes
  // atomic, replay
  std::uint32_t domain = 0;  // XRC: read, atomic: Offer::domain
  std::optional<AtomicEth> atomic;
  bool is_swap = false;  // false: fetch and add
  std::uint64_t original = 0;
  // reject
  std::uint8_t syndrome = 0;
  bool fatal = false;
  std::optional<Status> receive_status;  // status of the receive WQE that the message has or would have taken
  bool access_event = false;             // an access violation that no receive WQE reports
  bool request_event = false;            // an invalid request that no receive WQE reports
  bool early = false;                    // earlier packets are missing
  // keep. The payload may be placed now, at `range`, if `range` is not empty.
  bool tells_of_gap = false;  // a NAK with `syndrome` is pending
  // place, read, atomic: the kept packet with this PSN is next. Kept packets before this PSN are void.
  std::optional<Psn> next_kept;
  Psn psn;  // PSN of the answer
  std::uint32_t msn = 0;
};

}  // namespace rnicsim::roce
