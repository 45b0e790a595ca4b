// SPDX-License-Identifier: Apache-2.0
#include "model/nic/packets/multicast_table.h"

#include <algorithm>

namespace rnicsim::nic {

bool MulticastTable::attach(const roce::Gid& group, Qpn qpn) {
  const auto found = groups_.find(group);
  if (found == groups_.end() && groups_.size() >= limits_.groups) return false;
  if (found != groups_.end() && std::ranges::find(found->second, qpn) != found->second.end()) return true;
  const std::size_t members = found == groups_.end() ? 0 : found->second.size();
  if (members >= limits_.of_a_group || attached_ >= limits_.attached) return false;
  groups_[group].push_back(qpn);
  ++attached_;
  return true;
}

bool MulticastTable::detach(const roce::Gid& group, Qpn qpn) {
  const auto found = groups_.find(group);
  if (found == groups_.end() || std::erase(found->second, qpn) == 0) return false;
  --attached_;
  if (found->second.empty()) groups_.erase(found);
  return true;
}

bool MulticastTable::is_attached(Qpn qpn) const {
  return std::ranges::any_of(
      groups_, [qpn](const auto& group) { return std::ranges::find(group.second, qpn) != group.second.end(); });
}

const std::vector<Qpn>* MulticastTable::members_of(const roce::Gid& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

void MulticastTable::clear() {
  groups_.clear();
  attached_ = 0;
  blocking_.clear();
}

}  // namespace rnicsim::nic
