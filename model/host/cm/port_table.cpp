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

bool PortTable::conflicts(Owner owner, const Binding& binding) const {
  return std::ranges::any_of(bindings_, [&](const auto& entry) {
    const auto& [other, theirs] = entry;
    if (other == owner || !may_meet(theirs, binding)) return false;
    return !(theirs.reuse && binding.reuse && !theirs.listens && !binding.listens);
  });
}

int PortTable::bind(Owner owner, Binding& binding) {
  if (binding.address.port != 0) {
    if (conflicts(owner, binding)) return EADDRINUSE;
    bindings_[owner] = binding;
    return 0;
  }
  for (int tried = kFirstEphemeral; tried <= kLastEphemeral; ++tried) {
    binding.address.port = next_;
    next_ = next_ == kLastEphemeral ? kFirstEphemeral : std::uint16_t(next_ + 1);
    if (conflicts(owner, binding)) continue;
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
  if (!conflicts(owner, found->second)) return 0;
  found->second.listens = false;
  return EADDRINUSE;
}

}  // namespace rnicsim::host
