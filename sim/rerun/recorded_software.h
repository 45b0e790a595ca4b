// The hosts of a recorded run: root complexes and IOMMUs as they were, and in the place of kernels and programs what
// these did.
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

#include "model/host/iommu.h"
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
  // All hosts of the system are guests. `steps` stays.
  RecordedSoftware(sc_core::sc_module_name name, System& system, const RecordedSteps& steps, Pace pace);

  bool has_ended() const;
  Duration played() const;     // the last step of all hosts
  Duration requested() const;  // the last one that is no store, as RecordedSteps::end()
  // When the next step is due whose time is known; nullopt: there is none.
  std::optional<Duration> next_due() const;
  // Since when every host that has steps left waits for a device, and "h0 waits for ..." of each; nullopt: some host
  // does not wait.
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
    std::map<Pasid, RecordedMemory> memory;    // by domain
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
  std::vector<Host*> host_of_;                 // by adapter
  std::vector<std::unique_ptr<host::RootComplex>> root_complexes_;
};

}  // namespace rnicsim::sim::rerun
