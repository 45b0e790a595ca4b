// SPDX-License-Identifier: Apache-2.0
// Objects on a device when no process has the device open.
#pragma once

#include <algorithm>

#include "model/nic/contexts/context_cache.h"
#include "model/nic/nic.h"
#include "sim/adapter.h"
#include "sim/system.h"

namespace rnicsim::fuzz {

// True: the only objects are QP1, its CQ and its buffers, which belong to the kernel.
inline bool has_only_the_kernels(sim::Adapter& host) {
  auto& contexts = host.nic().blocks().contexts;
  const auto is_only = [](const auto& indices, std::uint32_t index) {
    return std::ranges::all_of(indices, [index](std::uint32_t found) { return found == index; });
  };
  bool no_qp = true;
  contexts.qps.for_each([&](std::uint32_t qpn, const auto&) { no_qp &= qpn == 1; });
  return no_qp && is_only(contexts.cqs.indices(), 0) && is_only(contexts.regions.indices(), 0) &&
         contexts.srqs.indices().empty();
}

}  // namespace rnicsim::fuzz
