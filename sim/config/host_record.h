// SPDX-License-Identifier: Apache-2.0
// Reads a topology file's records of hosts and of further devices of hosts: a name, and addresses that replace the
// defaults.
#pragma once

#include <vector>

#include "model/abi/attach.h"
#include "sim/config/toml_file.h"
#include "sim/config/topology.h"

namespace rnicsim::sim {

// ConfigError: the record is not valid.
abi::NetworkInterface to_host(const Record& record, std::size_t index);
// A record of [[devices]]; `topology` holds the devices before it.
abi::NetworkInterface to_device(const Record& record, const Topology& topology);
Record to_record(const abi::NetworkInterface& interface);
// `kind`: "hosts" or "switches". ConfigError: not a valid name for such a node.
void check_node_name(const Setting& name, const char* kind);
// ConfigError: two hosts share a name, or two interfaces an address. `records` belong to the last interfaces.
void check_distinct(const std::vector<abi::NetworkInterface>& interfaces, const std::vector<Record>& records);

// Addresses as text: "10.0.0.1", "fd00::1", "02:00:00:00:00:01".
std::string ipv4_text(const abi::NetworkInterface& interface);
std::string ipv6_text(const abi::NetworkInterface& interface);
std::string mac_text(const abi::NetworkInterface& interface);

}  // namespace rnicsim::sim
