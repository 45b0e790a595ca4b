// SPDX-License-Identifier: Apache-2.0
// The hosts of a recorded run: root complexes and IOMMUs as in the run; recorded steps replace kernels and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "model/host/memory/iommu.h"
#include "model/host/root_complex.h"
#include "sim/rerun/host_player.h"
#include "sim/rerun/recorded_memory.h"
#include "sim/rerun/recorded_steps.h"

namespace rnicsim::sim {
class System;
}

namespace rnicsim::sim::rerun {

class RecordedSoftware : public sc_core::sc_module {
 public:
  // All hosts of the system must be guests. `steps` must outlive this object.
  RecordedSoftware(sc_core::sc_module_name name, System& system, const RecordedSteps& steps, Pace pace);

  bool has_ended() const;
  Duration played() const;     // time of the last step of all hosts
  Duration requested() const;  // time of the last step that is not a store, as RecordedSteps::end()
  // Earliest known time of a next step; nullopt: none is known.
  std::optional<Duration> next_due() const;
  // stuck_since(): time since when every host with steps left waits for a device; nullopt: some host does not wait.
  // describe_waits(): "h0 waits for ..." for each host.
  std::optional<Duration> stuck_since() const;
  std::string describe_waits() const;

  host::RootComplex& root_complex(std::size_t adapter) { return *root_complexes_[adapter]; }

 private:
  struct Host {
    Host(const std::string& name, const RecordedSteps& steps, Pace pace, std::function<void(const Step&)> play)
        : name(name), iommu(name), player(steps, pace, std::move(play)) {}
    const std::string name;
    host::Iommu iommu;
    HostPlayer player;
    std::map<Pasid, RecordedMemory> memory;  // by domain
    std::map<Pasid, bool> attached;
  };

  void connect(System& system, std::uint32_t index);
  void watch(std::uint32_t index, Host& host);
  void play(const Step& step);
  void store(RecordedMemory& memory, const Step& step);
  void request(const Step& step);
  RecordedMemory& attach(Host& host, Pasid domain);
  void pin(Host& host, const Step& step);

  const RecordedSteps& steps_;
  const Pace pace_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Host*> host_of_;  // by adapter
  std::vector<std::unique_ptr<host::RootComplex>> root_complexes_;
};

}  // namespace rnicsim::sim::rerun
