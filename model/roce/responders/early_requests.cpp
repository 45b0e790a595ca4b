// SPDX-License-Identifier: Apache-2.0
#include "model/roce/responders/early_requests.h"

#include <algorithm>

namespace rnicsim::roce {

std::optional<RemoteRange> EarlyWrite::part(Psn psn, std::uint32_t payload, bool ends, std::uint32_t mtu) const {
  const auto packets = packets_for(target.length, mtu);
  const auto distance_of = distance(first, psn);
  if (!granted || distance_of < 0 || static_cast<std::uint32_t>(distance_of) >= packets) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(distance_of);
  const auto offset = index * mtu;
  const bool fits = payload == std::min(target.length - offset, mtu) && ends == (index + 1 == packets);
  return fits ? std::optional(RemoteRange{target.address + offset, target.rkey, payload}) : std::nullopt;
}

std::optional<RemoteRange> EarlyRequests::place_of(Psn psn, std::uint32_t payload, bool ends, std::uint32_t mtu) const {
  for (const auto& write : writes_)
    if (const auto part = write.part(psn, payload, ends, mtu)) return part;
  return std::nullopt;
}

// A WRITE whose execution has begun is tracked by the responder's message instead.
void EarlyRequests::move_to(Psn expected) {
  came_.move_to(expected);
  std::erase_if(writes_, [&](const EarlyWrite& write) { return before(write.first, expected); });
}

}  // namespace rnicsim::roce
