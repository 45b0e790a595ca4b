// SPDX-License-Identifier: Apache-2.0
// The QPs attached to each multicast group, in the order of attachment; and the QPs whose own datagrams to groups do
// not come back to this device.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "model/roce/types.h"

namespace rnicsim::nic {

using roce::Qpn;

struct MulticastLimits {
  std::uint32_t groups = 0;
  std::uint32_t of_a_group = 0;  // QPs attached to one group
  std::uint32_t attached = 0;    // attachments to all groups
};

class MulticastTable {
 public:
  explicit MulticastTable(const MulticastLimits& limits) : limits_(limits) {}

  // False: no room. Attaching a QP twice has no further effect.
  bool attach(const roce::Gid& group, Qpn qpn);
  // False: the QP is not attached.
  bool detach(const roce::Gid& group, Qpn qpn);
  bool is_attached(Qpn qpn) const;  // to any group
  // nullptr: no QP is attached.
  const std::vector<Qpn>* members(const roce::Gid& group) const {
    return groups_.empty() ? nullptr : members_of(group);  // inline, because each packet asks and most have no groups
  }

  void block_self(Qpn qpn) { blocking_.insert(qpn.value); }
  bool blocks_self(Qpn qpn) const { return blocking_.contains(qpn.value); }
  // The QP, which has no attachment, is destroyed.
  void forget(Qpn qpn) { blocking_.erase(qpn.value); }
  void clear();

 private:
  const std::vector<Qpn>* members_of(const roce::Gid& group) const;

  const MulticastLimits limits_;
  std::map<roce::Gid, std::vector<Qpn>> groups_;
  std::uint32_t attached_ = 0;
  std::set<std::uint32_t> blocking_;
};

}  // namespace rnicsim::nic
