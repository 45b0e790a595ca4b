// A host as a topology file writes it: a name, and addresses where the defaults do not suit.
#pragma once

#include <vector>

#include "model/abi/attach.h"
#include "sim/config/toml_file.h"

namespace rnicsim::sim {

// ConfigError: what is wrong with the record.
abi::HostEntry to_host(const Record& record, std::size_t index);
Record to_record(const abi::HostEntry& host);
// ConfigError: not a name that a node of the kind ("hosts", "switches") may have.
void check_node_name(const Setting& name, const char* kind);
// No two hosts may share a name or an address.
void check_distinct(const std::vector<abi::HostEntry>& hosts, const std::vector<Record>& records);

// "10.0.0.1", "fd00::1", "02:00:00:00:00:01"
std::string ipv4_text(const abi::HostEntry& host);
std::string ipv6_text(const abi::HostEntry& host);
std::string mac_text(const abi::HostEntry& host);

}  // namespace rnicsim::sim
