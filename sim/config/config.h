// SPDX-License-Identifier: Apache-2.0
// The configuration of a run: parameters, topology and fault rules.
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
#include "sim/config/profiles/profiles.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

struct Config {
  // Parameters of the nodes and cables that name no profile.
  nic::NicParams nic;
  host::HostParams host;
  fabric::LinkParams link;
  fabric::SwitchParams switches;
  NetworkParams network;
  EngineParams engine;
  std::string host_profile;  // host profile of the hosts that name no type; empty: none
  Profiles profiles;
  Choices choices;
  Topology topology;
  std::vector<std::optional<std::size_t>> cables_of;  // by interface: index of its cable
  std::vector<FaultSetting> faults;                   // rules of all files, then of the command line
  std::vector<std::string> warnings;                  // a sentence for each setting without effect

  // Parameters of one interface, switch or cable (index in the topology) or host (number). nic_of() has no capability
  // that the NIC's engine lacks, has the port that the NIC's cable names, and the PCIe costs of the host's type.
  nic::NicParams nic_of(std::size_t interface) const;
  EngineParams engine_of(std::size_t interface) const;
  const host::HostParams& host_of(std::size_t host) const;
  const fabric::SwitchParams& switch_of(std::size_t index) const;
  const fabric::LinkParams& link_of(std::size_t cable) const;
  // Port at both ends of a cable: the profile that the cable names; else the NIC's port; between switches [nic.port].
  nic::PortParams port_of(std::size_t cable) const;
  // Engine to print for the run: [engine], or the engine of the first NIC whose engine is not the model.
  EngineParams engine_shown() const;

  void describe(ParamVisitor& visit);
};

// Loads, in this order: the NIC's profile on the host that it names; the profile `host` (empty: the topology's, or
// none); the topology; each "key=value" of `sets`. A later value wins; fault rules are added. Capabilities that the
// engine lacks are removed from the NIC's. `topology` (and a file's `base`) may be a name with a size
// (sized_topology.h). ConfigError: names the key's path and its file and line; for values that contradict each other,
// one path and the contradiction.
Config load_config(std::string_view nic, std::string_view topology, std::span<const std::string> sets,
                   std::span<const std::string> faults = {}, std::string_view host = {});

// Engines of the NICs: "rtl", "model, h1 rtl"; empty: all NICs have the C++ model.
std::string engines_text(const Config& config);

// The resolved configuration as TOML. Loaded as a topology, the text gives the same run.
std::string to_toml(Config& config);

}  // namespace rnicsim::sim
