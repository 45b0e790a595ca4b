// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/port_table.h"

#include <cerrno>
#include <utility>

namespace rnicsim::host {

// A wildcard conflicts with every address of its port, also of the other family.
int PortTable::conflict(Owner owner, const Binding& binding) const {
  for (const auto& [other, theirs] : bindings_) {
    if (other == owner || theirs.address.port != binding.address.port) continue;
    if (theirs.reuse && binding.reuse) continue;
    if (theirs.address.ipv6 != binding.address.ipv6 && theirs.one_family && binding.one_family) continue;
    if (theirs.address.is_wildcard() || binding.address.is_wildcard()) return EADDRNOTAVAIL;
    if (theirs.address.same_host(binding.address)) return EADDRINUSE;
  }
  return 0;
}

int PortTable::bind(Owner owner, Binding& binding) {
  if (binding.address.port != 0) {
    if (const int error = conflict(owner, binding)) return error;
    bindings_[owner] = binding;
    return 0;
  }
  for (int tried = kFirstEphemeral; tried <= kLastEphemeral; ++tried) {
    binding.address.port = next_;
    next_ = next_ == kLastEphemeral ? kFirstEphemeral : std::uint16_t(next_ + 1);
    if (conflict(owner, binding) != 0) continue;
    bindings_[owner] = binding;
    return 0;
  }
  binding.address.port = 0;
  return EADDRNOTAVAIL;
}

void PortTable::change(Owner owner, const Binding& binding) {
  const auto found = bindings_.find(owner);
  if (found != bindings_.end()) found->second = binding;
}

int PortTable::listen(Owner owner) {
  const auto found = bindings_.find(owner);
  if (found == bindings_.end()) return EINVAL;
  Binding& binding = found->second;
  if (!std::exchange(binding.reuse, false)) return 0;
  const int error = conflict(owner, binding);
  if (error != 0) binding.reuse = true;
  return error;
}

}  // namespace rnicsim::host
