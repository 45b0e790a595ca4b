// Everything that a run is made of: parameters, topology and fault rules.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/params.h"
#include "model/fabric/link_params.h"
#include "model/fabric/switch_params.h"
#include "model/host/host_params.h"
#include "model/nic/nic_params.h"
#include "sim/config/engine_params.h"
#include "sim/config/fault_record.h"
#include "sim/config/network_params.h"
#include "sim/config/profiles.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

struct Config {
  // Of what names no profile.
  nic::NicParams nic;
  host::HostParams host;
  fabric::LinkParams link;
  fabric::SwitchParams switches;
  NetworkParams network;
  EngineParams engine;
  std::string host_profile;  // of what names no type; empty: none
  Profiles profiles;
  Choices choices;
  Topology topology;
  std::vector<std::optional<std::size_t>> cables_of;  // by interface: its cable
  std::vector<FaultSetting> faults;  // of all files, then of the command line
  std::vector<std::string> warnings;  // what was set and has no effect, in a sentence each

  // Of an interface, a switch, a cable by their place in the topology; of a host by its number. A NIC's engine has
  // taken what it can't do, a port that its cable names has taken the place of its own, and what its host's type says
  // of PCIe that of its own.
  nic::NicParams nic_of(std::size_t interface) const;
  EngineParams engine_of(std::size_t interface) const;
  const host::HostParams& host_of(std::size_t host) const;
  const fabric::SwitchParams& switch_of(std::size_t index) const;
  const fabric::LinkParams& link_of(std::size_t cable) const;
  // At both ends of a cable: what it names; else that of the NIC at an end; between switches [nic.port].
  nic::PortParams port_of(std::size_t cable) const;
  // Of the run: [engine], or of the first NIC that has another than the model's.
  EngineParams engine_shown() const;

  void describe(ParamVisitor& visit);
};

// The NIC's profile on the host that it names, then `host` (empty: none, or what the topology names), then the
// topology, then each "key=value" of `sets`; a later one wins. Fault rules add up.
// An engine that can do less than the NIC takes the rest from its capabilities.
// A topology by name and size is one, too (sized_topology.h), in a file's `base` as well.
// ConfigError says what is wrong, with the key's path and where it stands; of values that cannot stand together, the
// path of one and what it contradicts.
Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets,
                   std::span<const std::string> faults = {}, std::string_view host = {});

// Which engines the NICs have: "rtl", "model, h1 rtl"; empty: the model's alone.
std::string engines_text(const Config& config);

// The resolved configuration as TOML: loading it as a topology gives the same run.
std::string to_toml(Config& config);

}  // namespace rnicsim::sim
