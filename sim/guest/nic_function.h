// SPDX-License-Identifier: Apache-2.0
// The NIC of a simulated host, as a function for a virtual machine that takes the host's place.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/guest/transactor/guest_port.h"

namespace rnicsim::sim {

class Adapter;
class System;
struct Topology;

// ConfigError: the host has several NICs, and a guest is given one.
void refuse_second_nic(std::uint32_t host, const Topology& topology);

// The NIC of a host that is a guest of its system.
Adapter& guest_adapter(System& system, std::uint32_t host);
GuestFunction nic_function(Adapter& adapter);
// Gives the NIC access to the memory of the port's guest. Messages of the port erase the progress line first.
void connect_to_guest(Adapter& adapter, GuestPort& port);

// The queue pairs of the hosts' NICs, as text.
std::string nic_states(System& system, const std::set<std::uint32_t>& hosts);
// True: the simulation was stopped, or the comparison with the RTL found a mismatch.
bool has_stopped(System& system);
void start_beside_guests(System& system);

}  // namespace rnicsim::sim
