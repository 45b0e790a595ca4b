// Payload between packets and memory: translates each region of a request, then reads or writes it by DMA. A request
// that is refused touches no memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/base/stream.h"
#include "model/nic/dma.h"
#include "model/nic/qp_engine.h"
#include "model/nic/translation.h"

namespace rnicsim::nic {

class GatherScatter {
 public:
  GatherScatter(Translation& translation, Dma& dma) : translation_(translation), dma_(dma) {}

  Output<DmaDone> gathered;
  Output<DmaDone> scattered;
  Output<DmaDone> checked;

  void gather(Gather request);
  void scatter(Scatter request);
  void check(AccessCheck request);

 private:
  struct Job;
  using JobPtr = std::shared_ptr<Job>;

  std::optional<Translated> only_place(const Regions& regions, const AccessRequest& access);
  void translate(const JobPtr& job);
  void read(const JobPtr& job);
  void write(const JobPtr& job);
  void part_done(const JobPtr& job, AccessResult result);

  Translation& translation_;
  Dma& dma_;
};

}  // namespace rnicsim::nic
