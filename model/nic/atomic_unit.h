// Atomic operations on host memory: read, modify and write, one at a time on each address. They are atomic against each
// other on this device, not against the CPU (IBV_ATOMIC_HCA).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>

#include "model/base/stats.h"
#include "model/base/stream.h"
#include "model/nic/dma.h"
#include "model/nic/qp_engine.h"
#include "model/nic/translation.h"

namespace rnicsim::nic {

struct AtomicCounters {
  Counter operations = 0;
  Counter conflicts = 0;

  void describe(CounterVisitor& visit) const {
    visit.counter("operations", operations, "operations", "atomics carried out");
    visit.counter("conflicts", conflicts, "operations", "those that waited for another on the same address");
  }
};

class AtomicUnit {
 public:
  AtomicUnit(Translation& translation, Dma& dma) : translation_(translation), dma_(dma) {}

  Output<AtomicDone> done;

  void execute(const Atomic& request);
  void reset();

  const AtomicCounters& counters() const { return counters_; }

 private:
  using Place = std::pair<Pasid, std::uint64_t>;

  void lock(const Atomic& request, Place place);
  void read(const Atomic& request, Place place);
  void write(const Atomic& request, Place place, std::uint64_t original);
  void finish(const AtomicDone& answer, Place place);

  Translation& translation_;
  Dma& dma_;
  std::map<Place, std::deque<Atomic>> locked_;  // and who waits for it
  std::uint64_t resets_ = 0;                    // what is on its way from before one is void
  AtomicCounters counters_;
};

}  // namespace rnicsim::nic
