// The responder: judges request packets by the check chain of IBTA vol 1, 9.7 (PSN, opcode sequence, opcode, resources,
// length, rkey) and says what to do. It is a resumable chain: it changes nothing before it decides, and asks for what
// it lacks (a receive WQE, a key check); the caller then judges the same packet again, with the answer.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "model/roce/headers.h"

namespace rnicsim::roce {

namespace remote_access {  // = enum ibv_access_flags
inline constexpr std::uint32_t kWrite = 1u << 1;
inline constexpr std::uint32_t kRead = 1u << 2;
inline constexpr std::uint32_t kAtomic = 1u << 3;
}  // namespace remote_access

struct ResponderAttributes {
  std::uint32_t mtu = 1024;
  std::uint32_t access = 0;              // remote_access bits the queue pair grants
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint32_t max_message = 1u << 31;
  bool invalidate = true;                // SEND with invalidate is an opcode of its
};

// What the caller knows of the packet's resources.
struct Offer {
  enum class Receive : std::uint8_t { unknown, none, available };
  Receive receive = Receive::unknown;
  std::uint64_t receive_bytes = 0;       // room of the WQE at the head of the receive queue
  std::optional<bool> access_granted;    // answer to wants_access
  std::uint32_t rd_atomic_pending = 0;   // READs and atomics accepted and not answered whole
  std::uint32_t duplicates_pending = 0;  // those to be answered once more: they take no resource from new ones
};

struct RemoteRange {
  std::uint64_t address = 0;
  Rkey rkey;
  std::uint32_t length = 0;
};

struct Verdict {
  enum class Kind : std::uint8_t {
    drop,
    wants_receive,      // fill Offer::receive
    wants_access,       // check `range` for `access`, fill Offer::access_granted
    acknowledge,        // a duplicate: answer again
    reject,             // NAK; `fatal` puts the queue pair in error
    place,              // put the payload at `offset` of the receive WQE or at `range`
    read,               // answer with the bytes of `range`
    atomic,             // carry out `atomic` at `range`, answer with the original value and tell atomic_done()
    replay,             // a duplicate atomic: answer with `original`, carry out nothing
  };
  Kind kind = Kind::drop;
  // place
  bool to_receive_wqe = false;
  std::uint32_t offset = 0;
  RemoteRange range;                     // place: of this packet; wants_access and read: whole
  std::uint32_t access = 0;
  bool begins_receive = false;           // takes the WQE at the head of the receive queue
  bool completes = false;                // the message is whole
  bool completes_receive = false;        // and a receive WQE with it
  bool acknowledge = false;
  bool duplicate = false;
  std::uint32_t message_bytes = 0;
  std::optional<std::uint32_t> immediate;
  std::optional<Rkey> invalidate;        // once the payload is in memory, before the receive completes
  bool is_send = false;
  // atomic, replay
  std::optional<AtomicEth> atomic;
  bool is_swap = false;                  // else fetch and add
  std::uint64_t original = 0;
  // reject
  std::uint8_t syndrome = 0;
  bool fatal = false;
  std::optional<Status> receive_status;  // of the receive WQE that the message has or would have taken
  bool access_event = false;             // an access violation that no receive WQE tells of
  bool request_event = false;            // an invalid request that no receive WQE tells of
  Psn psn;                               // of the answer
  std::uint32_t msn = 0;
};

class Responder {
 public:
  void start(const ResponderAttributes& attributes, Psn expected);
  void update(const ResponderAttributes& attributes) { attributes_ = attributes; }

  Verdict receive(const Headers& headers, std::uint32_t payload, const Offer& offer);
  // What stood at the address of the atomic that was accepted at `psn`: kept for a duplicate.
  void atomic_done(Psn psn, std::uint64_t original);

  Psn expected_psn() const { return expected_; }
  std::uint32_t msn() const { return msn_; }
  bool in_message() const { return message_.has_value(); }

 private:
  struct InMessage {
    Operation operation;
    RemoteRange target;                  // write
    std::uint32_t received = 0;
    bool has_receive = false;
  };
  struct SavedAtomic {
    Psn psn;
    std::optional<std::uint64_t> original;  // nullopt: not carried out yet
  };
  struct Packet {
    const Headers& headers;
    const OpcodeInfo& row;
    std::uint32_t payload;
    const Offer& offer;
  };
  using Check = std::optional<Verdict>;  // nullopt: passed

  Check check_psn(const Packet& packet);
  Check check_opcode_sequence(const Packet& packet);
  Check check_opcode_valid(const Packet& packet);
  Check check_resources(const Packet& packet);
  Check check_length(const Packet& packet);
  Check check_rkey(const Packet& packet);
  Verdict execute(const Packet& packet);
  Verdict execute_read(const Packet& packet);
  Verdict execute_atomic(const Packet& packet);

  Verdict duplicate(const Packet& packet);
  Verdict duplicate_read(const Packet& packet);
  Verdict duplicate_atomic(const Packet& packet) const;
  Verdict reject(const Packet& packet, std::uint8_t syndrome, bool fatal) const;
  Verdict invalid(const Packet& packet) const;
  Verdict refuse_access(const Packet& packet) const;
  bool takes_receive(const Packet& packet) const;
  std::optional<RemoteRange> named_range(const Packet& packet) const;
  std::uint32_t received_before(const Packet& packet) const;
  std::uint32_t needed_access(const Packet& packet) const;

  ResponderAttributes attributes_;
  Psn expected_;
  std::uint32_t msn_ = 0;
  std::optional<InMessage> message_;
  std::deque<SavedAtomic> saved_;        // the last max_dest_rd_atomic
  bool nak_sent_ = false;                // one NAK a gap
};

}  // namespace rnicsim::roce
