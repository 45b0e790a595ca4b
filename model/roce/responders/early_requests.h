// SPDX-License-Identifier: Apache-2.0
// Requests of one queue pair that arrived while earlier ones were missing: their PSNs, and the targets of WRITEs whose
// first packet has arrived. RC carries the address in the first packet of a message only.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/roce/psn_set.h"
#include "model/roce/verdict.h"

namespace rnicsim::roce {

// A WRITE whose first packet arrived early.
struct EarlyWrite {
  Psn first;
  RemoteRange target;    // range of the whole message
  bool granted = false;  // the key grants the range, and its memory is present

  // Target of the payload of packet `psn`; nullopt: the packet does not fit this WRITE.
  std::optional<RemoteRange> part(Psn psn, std::uint32_t payload, bool ends, std::uint32_t mtu) const;
};

class EarlyRequests {
 public:
  bool empty() const { return came_.empty(); }
  bool contains(Psn psn) const { return came_.contains(psn); }
  // `expected`: the first missing PSN.
  void insert(Psn psn, Psn expected) {
    if (came_.empty()) came_.move_to(expected);
    came_.insert(psn);
  }
  void begin_write(const EarlyWrite& write) { writes_.push_back(write); }
  std::optional<RemoteRange> place_of(Psn psn, std::uint32_t payload, bool ends, std::uint32_t mtu) const;
  // All requests before `expected` were executed.
  void move_to(Psn expected);

 private:
  PsnSet came_;
  std::vector<EarlyWrite> writes_;
};

}  // namespace rnicsim::roce
