// Payload between packets and memory: translates each region of a request, then reads or writes it by DMA. A request
// that is refused touches no memory. Scatters of one QP reach memory in order, as the packets came: one whose translation
// is not at hand holds those behind it.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/base/fifo.h"

#include "model/base/stream.h"
#include "model/base/trace.h"
#include "model/nic/dma.h"
#include "model/nic/qp_engine.h"
#include "model/nic/translation.h"

namespace rnicsim::nic {

// A request's translations are at hand, and its DMA begins; or it was refused.
struct AccessTranslated {
  Tag tag;
  Qpn qpn;
};

class GatherScatter {
 public:
  // With `timing_only` payload is neither read nor written.
  GatherScatter(Translation& translation, Dma& dma, bool timing_only)
      : translation_(translation), dma_(dma), timing_only_(timing_only) {}

  Output<DmaDone> gathered;
  Output<DmaDone> scattered;
  Output<DmaDone> checked;
  trace::Point<AccessTranslated> translated;

  void gather(Gather request);
  void scatter(Scatter request);
  void check(AccessCheck request);
  void reset() { held_.clear(); }

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  std::optional<Translated> only_place(const Regions& regions, const AccessRequest& access);
  void begin_scatter(Scatter&& request);
  void release(Qpn qpn);
  void translate(const JobPtr& job);
  void read(const JobPtr& job);
  void write(const JobPtr& job);
  void part_done(const JobPtr& job, AccessResult result);

  Translation& translation_;
  Dma& dma_;
  const bool timing_only_;
  std::unordered_map<std::uint32_t, Fifo<Scatter>> held_;  // by QP: behind a scatter whose translation is under way
};

}  // namespace rnicsim::nic
