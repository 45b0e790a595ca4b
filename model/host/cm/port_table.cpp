#include "model/host/cm/port_table.h"

#include <algorithm>
#include <cerrno>

namespace rnicsim::host {
namespace {

bool may_meet(const PortTable::Binding& a, const PortTable::Binding& b) {
  if (a.address.port != b.address.port) return false;
  if (a.address.ipv6 != b.address.ipv6) {
    // An IPv6 wildcard takes IPv4, too, unless it says otherwise.
    const auto& six = a.address.ipv6 ? a : b;
    return six.address.is_wildcard() && !six.ipv6_only;
  }
  return a.address.is_wildcard() || b.address.is_wildcard() || a.address.same_host(b.address);
}

}  // namespace

int PortTable::conflict(Owner owner, const Binding& binding) const {
  const auto found = std::ranges::find_if(bindings_, [&](const auto& entry) {
    const auto& [other, theirs] = entry;
    if (other == owner || !may_meet(theirs, binding)) return false;
    return !(theirs.reuse && binding.reuse && !theirs.listens && !binding.listens);
  });
  if (found == bindings_.end()) return 0;
  return binding.address.is_wildcard() || found->second.address.is_any() ? EADDRNOTAVAIL : EADDRINUSE;
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

int PortTable::listen(Owner owner) {
  const auto found = bindings_.find(owner);
  if (found == bindings_.end()) return EINVAL;
  found->second.listens = true;
  const int error = conflict(owner, found->second);
  if (error != 0) found->second.listens = false;
  return error;
}

}  // namespace rnicsim::host
