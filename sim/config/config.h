// Everything that a run is made of: parameters, topology and fault rules.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/params.h"
#include "model/fabric/link.h"
#include "model/fabric/switch.h"
#include "model/host/host_params.h"
#include "model/nic/nic.h"
#include "sim/attached/network_params.h"
#include "sim/config/fault_record.h"
#include "sim/config/topology.h"
#include "sim/engine_choice.h"

namespace rnicsim::sim {

struct Config {
  nic::NicParams nic;
  host::HostParams host;
  fabric::LinkParams link;
  fabric::SwitchParams switches;
  NetworkParams network;
  EngineParams engine;
  Topology topology;
  std::vector<FaultSetting> faults;  // of all files, then of the command line

  void describe(ParamVisitor& visit) {
    visit.group("nic", nic);
    visit.group("host", host);
    visit.group("link", link);
    visit.group("switch", switches);
    visit.group("network", network);
    visit.group("engine", engine);
    visit.refuse(nic.capabilities.max_eq < host.event_queues(), "nic.capabilities.max_eq",
                 "is not one more, for other events, than", "host.completion_vectors");
  }
};

// The NIC's profile, then the topology, then each "key=value" of `sets`; a later one wins. Fault rules add up.
// An engine that can do less than the NIC takes the rest from its capabilities.
// "star:12" is a topology too: h0 to h11 around a switch.
// ConfigError says what is wrong, with the key's path and where it stands; of values that cannot stand together, the
// path of one and what it contradicts.
Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets,
                   std::span<const std::string> faults = {});

// The resolved configuration as TOML: loading it as a topology gives the same run.
std::string to_toml(Config& config);

}  // namespace rnicsim::sim
