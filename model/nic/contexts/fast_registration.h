// Fast registration (IBTA vol 1, 10.6.3.3): a work request gives a region of kind fast_register its pages, rights and
// key. The region is free until then, and again after its key was invalidated.
#pragma once

#include <cstdint>

#include "model/nic/contexts/context_cache.h"
#include "model/nic/seam/qp_engine.h"

namespace rnicsim::nic {

// `region`: nullptr where the key's index has no entry. `pages`: of the MTT, that the region owns. `pd`: the queue
// pair's.
AccessResult check_registration(const MemoryRegion* region, const PageRange& pages, std::uint32_t pd,
                                const Registration& wanted);

// `wanted` has passed the check.
void take_pages(MemoryRegion& region, const Registration& wanted);

MemoryRegion without_pages(const MemoryRegion& region);

}  // namespace rnicsim::nic
