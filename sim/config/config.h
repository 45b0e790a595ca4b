// Everything that a run is made of: parameters and topology.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/base/params.h"
#include "model/fabric/link.h"
#include "model/host/host_params.h"
#include "model/nic/nic.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

struct Config {
  nic::NicParams nic;
  host::HostParams host;
  fabric::LinkParams link;
  Topology topology;

  void describe(ParamVisitor& visit) {
    visit.group("nic", nic);
    visit.group("host", host);
    visit.group("link", link);
  }
};

// The NIC's profile, then the topology, then each "key=value" of `sets`; a later one wins. ConfigError says what is
// wrong, with the key's path and where it stands.
Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets);

// The resolved configuration as TOML: loading it as a topology gives the same run.
std::string to_toml(Config& config);

}  // namespace rnicsim::sim
