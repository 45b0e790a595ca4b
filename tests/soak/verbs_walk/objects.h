// What a walker knows of the objects that it made: enough to say what each call must answer.
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

// A process's memory, in cells: each work request has cells of its own while it is outstanding, and a cell that came
// free is the last to be taken again, so that what is late harms nobody. Behind the cells is what nobody may change.
class Arena {
 public:
  static constexpr std::uint32_t kCell = 2048, kCells = 1024, kGuard = 16384;
  static constexpr std::uint32_t kBytes = kCell * kCells + kGuard;

  explicit Arena(std::uint32_t owner);
  std::optional<std::uint32_t> take();  // its offset
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

// What a work request sends.
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
  std::shared_ptr<Domain> protection;  // of a parent domain
  std::shared_ptr<ThreadDomain> thread;

  const Domain* root() const { return protection ? protection.get() : this; }
};

struct Region {
  ibv_mr* mr = nullptr;
  std::shared_ptr<Domain> domain;
  std::uint32_t offset = 0;  // in the arena
  std::uint32_t length = 0;
  unsigned access = 0;
  bool intact = true;        // as it was made
  bool may_be_bound = false;
  bool null = false;         // reads zeros, discards what is written; for its owner's work requests only
  std::shared_ptr<DeviceMemory> device;  // none of the arena: `offset` is there

  bool reaches(std::uint32_t from, std::uint32_t bytes) const {
    return from >= offset && from + bytes <= offset + length;
  }
  // A place in the arena.
  bool covers(std::uint32_t from, std::uint32_t bytes) const { return !device && reaches(from, bytes); }
  // What a work request writes for a place in the arena.
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
  bool may_overrun = false;  // it had less room than work requests could need
};

// A slot of a device memory, instead of a cell.
struct Slot {
  std::shared_ptr<DeviceMemory> device;
  std::uint32_t at = 0;
};

struct Receive {
  std::uint64_t id = 0;
  std::uint32_t cell = 0;
  std::uint32_t length = 0;
  bool legal = true;         // its memory
  std::shared_ptr<Region> region;
  std::optional<Slot> slot;
};

struct SharedQueue {
  ibv_srq* srq = nullptr;
  std::uint32_t number = 0;
  std::uint32_t walker = 0;
  bool alive = true;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<XrcOpening> opening;  // of XRC,
  std::shared_ptr<Queue> queue;         // and where its receives complete
  std::uint32_t users = 0;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::map<std::uint64_t, Receive> posted;
  bool exact = true;         // no QP went that may have taken some along
};

struct Pair;

// How a work request's remote memory is, or the shared receive queue that it names.
enum class Remote : std::uint8_t { none, good, bad, unknown };

struct Send {
  std::uint64_t id = 0;
  bool signalled = false;
  ibv_wr_opcode opcode{};
  std::uint32_t cell = 0;
  std::uint32_t length = 0;
  bool legal = true;         // its local memory
  bool odd_atomic = false;   // not of 8 bytes
  bool odd_length = false;   // no frame is so short
  bool foreign = false;      // an operation of another transport
  bool zeros = false;        // from a null region
  std::shared_ptr<Region> region;
  Remote remote = Remote::none;
  bool granted = true;       // by the peer's QP, before anything is looked for
  std::shared_ptr<Region> target;
  std::uint32_t owner = 0;   // of the remote memory: a walker
  std::optional<std::uint32_t> landing;  // in its arena: of a WRITE its cell, of a READ its source
  std::optional<Slot> slot;            // of local memory
  std::optional<Slot> remote_slot;     // as `landing`, and of an atomic its word
  std::uint32_t counts = 0;            // that an atomic adds to a word, which had that many at least
  std::uint64_t least = 0;
  Remote naming = Remote::none;  // of XRC
  std::shared_ptr<SharedQueue> named;  // there is one of that number
  bool before_recovery = false;  // its queue was in SQE since
  bool firm = false;         // the connection was good when it was posted
  std::uint32_t changes = 0, peer_changes = 0;
};

// A queue pair, or a work queue: to the device it is one that only receives.
struct Pair {
  ibv_qp* qp = nullptr;
  ibv_wq* wq = nullptr;
  ibv_qp_ex* extended = nullptr;  // ibv_wr_* may be used
  std::uint32_t walker = 0;
  std::uint32_t context = 0;
  ibv_qp_type type{};
  std::shared_ptr<Domain> domain;
  std::shared_ptr<Queue> send_queue, receive_queue;
  std::shared_ptr<SharedQueue> shared;
  ibv_qp_cap cap{};
  bool signals_all = false;
  bool alive = true;
  ibv_qp_state told = IBV_QPS_RESET;  // what the library was told last, by the program or by the device
  unsigned access = 0;
  std::uint8_t port = 0;
  std::uint8_t timeout = 0, rnr_retry = 0;
  std::uint32_t psn = 0;
  std::uint32_t number = 0;
  std::uint32_t qkey = 0;
  std::set<std::uint8_t> groups;
  // The connection: with whom, and with which life of it.
  std::shared_ptr<Pair> peer;
  std::uint32_t life = 0, peer_life = 0;
  std::uint32_t changes = 0;          // of what its peer's requests depend on
  bool changing = false;              // a call that changes it has not come back
  std::deque<Send> sends;
  std::deque<Receive> receives;
  bool failed = false;                // an error completion was seen
  // Raw packets.
  std::uint32_t rules = 0;            // that lead here
  std::uint32_t users = 0;            // entries of tables
  std::uint32_t max_tso_header = 0;
  bool blocks_own = false;            // groups on its own host
  bool scatters_fcs = false;
  std::vector<std::shared_ptr<Rule>> led;  // ever
  // One that receives for an XRC domain, which no process has for itself.
  std::shared_ptr<XrcDomain> serves;
  std::uint32_t handles = 0;
  bool in_call = false;               // one at a time: what it answers hangs on the state

  bool does(ibv_wr_opcode opcode) const;
  bool runs() const { return told == IBV_QPS_RTS && !failed; }
  // Completions may be lost: how much of its queues is free nobody knows.
  bool vague() const { return send_queue->may_overrun || receive_queue->may_overrun; }
};

bool may_post(ibv_qp_state state);
// ibv_post_send(3), the table; of no invalidation at the peer of a UC.
bool is_of(ibv_qp_type type, ibv_wr_opcode opcode);
bool takes_receive(ibv_wr_opcode opcode);

}  // namespace rnicsim::testing
