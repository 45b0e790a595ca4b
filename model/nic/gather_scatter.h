// Payload between packets and memory: translates each region of a request, then reads or writes it by DMA. A request
// that is refused touches no memory. Scatters of one QP reach memory in order, as the packets came: one whose translation
// is not at hand holds those behind it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

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
  // The queue pair is no more what it was: what it has not begun to write stays unwritten.
  void forget(Qpn qpn);
  void reset() { ordered_.clear(); }

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  std::optional<Translated> only_place(const Regions& regions, const AccessRequest& access);
  void write_ready(Qpn qpn);
  void translate(const JobPtr& job);
  void read(const JobPtr& job);
  void write(const JobPtr& job);
  void part_done(const JobPtr& job, AccessResult result);

  Translation& translation_;
  Dma& dma_;
  const bool timing_only_;
  // By QP: scatters whose translation is under way, and those behind them. They are translated as they come, and written
  // in order.
  std::unordered_map<std::uint32_t, std::deque<JobPtr>> ordered_;
};

}  // namespace rnicsim::nic
