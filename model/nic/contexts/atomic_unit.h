// SPDX-License-Identifier: Apache-2.0
// Atomic operations on host memory or device memory: read, modify, write. A table of lock slots, indexed by low bits of
// the physical address, serialises them. A slot is held from the read until the write is issued; a later read does not
// pass the write, and the answer may be sent with it. So addresses that share a slot wait for each other, and a word
// has one slot, whatever region, key or process names it. Atomics of one QP begin in order. They are atomic against
// each other on this device, not against the CPU (IBV_ATOMIC_HCA).
#pragma once

#include <cstdint>
#include <unordered_map>

#include "model/base/event_queue.h"
#include "model/base/fifo.h"
#include "model/base/params.h"
#include "model/base/stream.h"
#include "model/nic/contexts/atomic_unit_params.h"
#include "model/nic/contexts/payload_memory.h"
#include "model/nic/contexts/translation.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

class AtomicUnit : public sc_core::sc_module {
 public:
  AtomicUnit(sc_core::sc_module_name name, const AtomicParams& params, Translation& translation, PayloadMemory& memory);

  std::function<std::optional<std::uint64_t>(Pasid, std::uint64_t)> physical;  // ATS request; nullopt: the host refuses

  Output<AtomicDone> done;

  void execute(const Atomic& request);
  void reset();

  const AtomicCounters& counters() const { return counters_; }

 private:
  struct Operation {
    Atomic request;
    Dma::Place place;
    std::uint64_t slot;
    std::uint64_t original = 0;
    Translation::Hold hold{};  // hold of the page, if the page is on demand
  };

  // A QP's queue of atomics. The next one begins when the one before has its place, and qp_interval has passed.
  struct Turn {
    Fifo<Atomic> waiting;
    Duration next{};
    bool translating = false;
    bool paused = false;
  };

  void take_turn(Turn& turn);
  void turns_due();
  void translate(const Atomic& request);
  void translated(const Atomic& request, const Translated& place);
  std::uint64_t slot_of(const Dma::Place& place) const;
  void lock(const Operation& operation);
  void read(const Operation& operation);
  void modify_due();
  bool write(const Operation& operation);
  void unlock(const Operation& operation);

  const AtomicParams params_;
  Translation& translation_;
  PayloadMemory& memory_;
  std::unordered_map<std::uint32_t, Turn> turns_;  // by QP
  EventQueue<Turn*> pauses_{[this] { turns_due(); }};
  std::unordered_map<std::uint64_t, Fifo<Operation>> locked_;  // by slot: operations that wait for the lock
  EventQueue<Operation> modifying_{[this] { modify_due(); }};
  std::uint64_t resets_ = 0;  // callbacks of operations from before a reset are void
  AtomicCounters counters_;
};

}  // namespace rnicsim::nic
