// SPDX-License-Identifier: Apache-2.0
// Fast registration (IBTA vol 1, 10.6.3.3): a work request gives pages, rights and a key to a region of kind
// fast_register. The region is free before that, and again after its key was invalidated.
#pragma once

#include <cstdint>

#include "model/nic/contexts/context_cache.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// `region`: nullptr: the key's index has no entry. `pages`: MTT entries that the region owns. `pd`: protection domain
// of the queue pair.
AccessResult check_registration(const MemoryRegion* region, const PageRange& pages, std::uint32_t pd,
                                const Registration& wanted);

// `wanted` must have passed the check.
void take_pages(MemoryRegion& region, const Registration& wanted);

MemoryRegion without_pages(const MemoryRegion& region);

}  // namespace rnicsim::nic
