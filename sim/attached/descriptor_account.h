// SPDX-License-Identifier: Apache-2.0
// Charges descriptors that the simulator holds for processes and their objects to the budget, and logs refusals.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "sim/attached/attach_server.h"
#include "sim/attached/attached_hosts.h"
#include "sim/attached/descriptor_budget.h"

namespace rnicsim::sim {

class DescriptorAccount {
 public:
  DescriptorAccount(DescriptorBudget& budget, const AttachedHosts& hosts) : budget_(budget), hosts_(hosts) {}

  // True: there are descriptors for one more process. False: the guest was refused.
  bool has_room(Guest& guest, std::uint32_t host);
  // True: no descriptor is left for one more object of the process, `what`, which would hold one descriptor while the
  // object exists. Logged once for each process and kind of object.
  bool lacks(const Process& process, const char* what);

 private:
  DescriptorBudget& budget_;
  const AttachedHosts& hosts_;
  std::set<std::string> shortages_;  // texts that were already logged
};

}  // namespace rnicsim::sim
