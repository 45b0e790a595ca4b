// Atomic operations on host memory, or the device's own: read, modify and write. A table of lock slots, by the physical
// address's low bits, serialises them: a slot is held from the read until the write is on its way, which the next read
// does not pass, and with which the answer may go. So addresses that share a slot wait for one another, and one word is
// one, by whichever region, key or process. Those of one QP begin one after the other, wherever they go. They are
// atomic against each other on this device, not against the CPU (IBV_ATOMIC_HCA).
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
  AtomicUnit(sc_core::sc_module_name name, const AtomicParams& params, Translation& translation,
             PayloadMemory& memory);

  std::function<std::optional<std::uint64_t>(Pasid, std::uint64_t)> physical;  // by ATS; nullopt: the host won't

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
    Translation::Hold hold{};              // of its page, if that is on demand
  };

  // What a QP's atomics wait for: the one before is on its way to its lock, and the interval behind it over.
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
  std::unordered_map<std::uint32_t, Turn> turns_;              // by QP
  EventQueue<Turn*> pauses_{[this] { turns_due(); }};
  std::unordered_map<std::uint64_t, Fifo<Operation>> locked_;  // by slot, who waits for it
  EventQueue<Operation> modifying_{[this] { modify_due(); }};
  std::uint64_t resets_ = 0;                                   // what is on its way from before one is void
  AtomicCounters counters_;
};

}  // namespace rnicsim::nic
