// A host, and one more device of it, as a topology file writes them: a name, and addresses where the defaults do not
// suit.
#pragma once

#include <vector>

#include "model/abi/attach.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// ConfigError: what is wrong with the record.
abi::NetworkInterface to_host(const Record& record, std::size_t index);
// One more of [[devices]]: `topology` has those before it.
abi::NetworkInterface to_device(const Record& record, const Topology& topology);
Record to_record(const abi::NetworkInterface& interface);
// ConfigError: not a name that a node of the kind ("hosts", "switches") may have.
void check_node_name(const Setting& name, const char* kind);
// No two hosts may share a name, and no two interfaces an address. `records` are those of the last ones.
void check_distinct(const std::vector<abi::NetworkInterface>& interfaces, const std::vector<Record>& records);

// "10.0.0.1", "fd00::1", "02:00:00:00:00:01"
std::string ipv4_text(const abi::NetworkInterface& interface);
std::string ipv6_text(const abi::NetworkInterface& interface);
std::string mac_text(const abi::NetworkInterface& interface);

}  // namespace rnicsim::sim
