// SPDX-License-Identifier: Apache-2.0
// Expected state of the objects that a walker made, from which the result of each call is predicted.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "tests/soak/dice.h"
#include "tests/soak/verbs_walk/device_memory.h"
#include "tests/soak/verbs_walk/frames.h"
#include "tests/soak/verbs_walk/xrc.h"

namespace rnicsim::testing {

// Memory of a process, divided into cells. Each outstanding work request has its own cells. The cell that was released
// last is reused last, so that a late write does no harm. Behind the cells is a guarded area that must not change.
class Arena {
 public:
  static constexpr std::uint32_t kCell = 2048, kCells = 1024, kGuard = 16384;
  static constexpr std::uint32_t kBytes = kCell * kCells + kGuard;

  explicit Arena(std::uint32_t owner);
  std::optional<std::uint32_t> take();  // offset of the cell
  void give_back(std::uint32_t offset) { free_.push_back(offset); }
  std::uint8_t* at(std::uint32_t offset) { return bytes_.data() + offset; }
  std::uint64_t address(std::uint32_t offset) { return reinterpret_cast<std::uint64_t>(at(offset)); }
  std::uint8_t guard(std::uint32_t offset) const { return std::uint8_t(offset * 7 + offset / 256 + owner_); }
  bool guard_is_whole() const;

 private:
  std::uint32_t owner_;
  std::vector<std::uint8_t> bytes_;
  std::deque<std::uint32_t> free_;
};

// Data of a work request, derived from its id.
void fill_pattern(std::uint8_t* to, std::uint32_t length, std::uint64_t id);
bool has_pattern(const std::uint8_t* at, std::uint32_t length, std::uint64_t id);
bool is_zero(const std::uint8_t* at, std::uint32_t length);

struct ThreadDomain {
  ibv_td* td = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
};

struct Domain {
  ibv_pd* pd = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
  std::shared_ptr<Domain> protection;  // of a parent domain: the PD that it extends
  std::shared_ptr<ThreadDomain> thread;

  const Domain* root() const { return protection ? protection.get() : this; }
};

struct Region {
  ibv_mr* mr = nullptr;
  std::shared_ptr<Domain> domain;
  std::uint32_t offset = 0;  // in the arena
  std::uint32_t length = 0;
  unsigned access = 0;
  bool intact = true;  // unchanged since creation
  bool may_be_bound = false;
  bool null = false;  // reads return zeros, writes are discarded; usable for the owner's work requests only
  std::shared_ptr<DeviceMemory> device;  // set: the region is in device memory, and `offset` counts there

  bool reaches(std::uint32_t from, std::uint32_t bytes) const {
    return from >= offset && from + bytes <= offset + length;
  }
  // A range of the arena.
  bool covers(std::uint32_t from, std::uint32_t bytes) const { return !device && reaches(from, bytes); }
  // Address in a work request for the arena's offset `at`.
  std::uint64_t address(Arena& arena, std::uint32_t at) const {
    return access & IBV_ACCESS_ZERO_BASED ? at - offset : arena.address(at);
  }
};

struct Window {
  ibv_mw* mw = nullptr;
  std::shared_ptr<Domain> domain;
};

struct Way {
  ibv_ah* ah = nullptr;
  std::shared_ptr<Domain> domain;
};

struct Channel {
  ibv_comp_channel* channel = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
};

struct Queue {
  ibv_cq* cq = nullptr;
  ibv_cq_ex* extended = nullptr;
  std::uint32_t context = 0;
  std::uint32_t users = 0;
  std::uint32_t arms = 0;
  std::shared_ptr<Channel> channel;
  std::shared_ptr<Domain> parent;
  bool may_overrun = false;  // the CQ was smaller than the work requests may need
};

// A slot of a device memory, used instead of a cell.
struct Slot {
  std::shared_ptr<DeviceMemory> device;
  std::uint32_t at = 0;
};

struct Receive {
  std::uint64_t id = 0;
  std::uint32_t cell = 0;
  std::uint32_t length = 0;
  bool legal = true;  // the memory of the receive is accessible
  std::shared_ptr<Region> region;
  std::optional<Slot> slot;
};

struct SharedQueue {
  ibv_srq* srq = nullptr;
  std::uint32_t number = 0;
  std::uint32_t walker = 0;
  bool alive = true;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<XrcOpening> opening;  // XRC only
  std::shared_ptr<Queue> queue;         // XRC only: CQ of the receives
  std::uint32_t users = 0;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::map<std::uint64_t, Receive> posted;
  bool exact = true;  // no destroyed QP may have consumed receives
};

struct Pair;

// Validity of a work request's remote memory, or of the shared receive queue that it names.
enum class Remote : std::uint8_t { none, good, bad, unknown };

struct Send {
  std::uint64_t id = 0;
  bool signalled = false;
  ibv_wr_opcode opcode{};
  std::uint32_t cell = 0;
  std::uint32_t length = 0;
  bool legal = true;        // the local memory is accessible
  bool odd_atomic = false;  // length is not 8 bytes
  bool odd_length = false;  // shorter than any frame
  bool foreign = false;     // an opcode that the QP's transport does not have
  bool zeros = false;       // data from a null region
  std::shared_ptr<Region> region;
  Remote remote = Remote::none;
  bool granted = true;  // permitted by the peer's QP; the peer checks this before the key
  std::shared_ptr<Region> target;
  std::uint32_t owner = 0;               // walker that owns the remote memory
  std::optional<std::uint32_t> landing;  // offset in the owner's arena: cell of a WRITE, source of a READ
  std::optional<Slot> slot;              // local memory, if in device memory
  std::optional<Slot> remote_slot;       // like `landing`, in device memory; also the word of an atomic
  std::uint32_t counts = 0;  // number added to the counter word by an atomic; `least`: lower bound of the word before
  std::uint64_t least = 0;
  Remote naming = Remote::none;        // XRC: validity of the named SRQ
  std::shared_ptr<SharedQueue> named;  // the named SRQ, if it exists
  bool before_recovery = false;        // the send queue has been in SQE since the request was posted
  bool firm = false;                   // the connection was valid at the time of posting
  std::uint32_t changes = 0, peer_changes = 0;
};

// A queue pair, or a work queue, which the device treats as a receive-only QP.
struct Pair {
  ibv_qp* qp = nullptr;
  ibv_wq* wq = nullptr;
  ibv_qp_ex* extended = nullptr;  // set: ibv_wr_* may be used
  std::uint32_t walker = 0;
  std::uint32_t context = 0;
  ibv_qp_type type{};
  std::shared_ptr<Domain> domain;
  std::shared_ptr<Queue> send_queue, receive_queue;
  std::shared_ptr<SharedQueue> shared;
  ibv_qp_cap cap{};
  bool signals_all = false;
  bool alive = true;
  ibv_qp_state told = IBV_QPS_RESET;  // last state known to the library, from the program or from the device
  unsigned access = 0;
  std::uint8_t port = 0;
  std::uint8_t timeout = 0, rnr_retry = 0;
  std::uint32_t psn = 0;
  std::uint32_t number = 0;
  std::uint32_t qkey = 0;
  std::set<std::uint8_t> groups;
  // The peer, and the lives (counts of RESET) of both ends in this connection.
  std::shared_ptr<Pair> peer;
  std::uint32_t life = 0, peer_life = 0;
  std::uint32_t changes = 0;  // counts changes that affect the peer's requests
  bool changing = false;      // a call that makes such a change has not returned
  std::deque<Send> sends;
  std::deque<Receive> receives;
  bool failed = false;  // an error completion was polled
  // Raw packets only.
  std::uint32_t rules = 0;  // rules with this target
  std::uint32_t users = 0;  // indirection tables with this queue
  std::uint32_t max_tso_header = 0;
  bool blocks_own = false;  // does not receive its host's own multicast frames
  bool scatters_fcs = false;
  std::vector<std::shared_ptr<Rule>> led;  // all rules that had this target at any time
  // XRC receive QP: the domain. Such a QP belongs to no single process.
  std::shared_ptr<XrcDomain> serves;
  std::uint32_t handles = 0;
  bool in_call = false;  // serialises calls: their results depend on the state

  bool does(ibv_wr_opcode opcode) const;
  bool runs() const { return told == IBV_QPS_RTS && !failed; }
  // Completions may be lost, so the number of free queue entries is unknown.
  bool vague() const { return send_queue->may_overrun || receive_queue->may_overrun; }
};

bool may_post(ibv_qp_state state);
// Table of opcodes by QP type in ibv_post_send(3). UC with remote invalidation is not included.
bool is_of(ibv_qp_type type, ibv_wr_opcode opcode);
bool takes_receive(ibv_wr_opcode opcode);

}  // namespace rnicsim::testing
