// The hosts of a recorded run: root complexes and IOMMUs as they were, and in the place of kernels and programs what
// these did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <systemc>
#include <vector>

#include "model/base/agenda.h"
#include "model/host/iommu.h"
#include "model/host/root_complex.h"
#include "sim/rerun/recorded_memory.h"
#include "sim/rerun/recorded_steps.h"

namespace rnicsim::sim {
class System;
}

namespace rnicsim::sim::rerun {

class RecordedSoftware : public sc_core::sc_module {
 public:
  // All hosts of the system are guests. `steps` stays.
  RecordedSoftware(sc_core::sc_module_name name, System& system, const RecordedSteps& steps);

  host::RootComplex& root_complex(std::size_t adapter) { return *root_complexes_[adapter]; }

 private:
  struct Host {
    explicit Host(const std::string& name) : iommu(name) {}
    host::Iommu iommu;
    std::map<Pasid, RecordedMemory> memory;    // by domain
    std::map<Pasid, bool> attached;
  };

  void connect(System& system, std::uint32_t index);
  void play_due();
  void play(const Step& step);
  void request(const Step& step);
  RecordedMemory& attach(Host& host, Pasid domain);
  void pin(Host& host, const Step& step);

  const RecordedSteps& steps_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Host*> host_of_;                 // by adapter
  std::vector<std::unique_ptr<host::RootComplex>> root_complexes_;
  std::size_t next_ = 0;
  Alarm due_{[this] { play_due(); }};
};

}  // namespace rnicsim::sim::rerun
