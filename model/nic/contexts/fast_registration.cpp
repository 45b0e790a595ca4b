// SPDX-License-Identifier: Apache-2.0
#include "model/nic/contexts/fast_registration.h"

namespace rnicsim::nic {
namespace {

constexpr std::uint32_t kPeersWrite = access::kRemoteWrite | access::kRemoteAtomic;
constexpr std::uint32_t kGrantable = kPeersWrite | access::kLocalWrite | access::kRemoteRead | access::kRelaxedOrdering;

bool is_in_pages(const PageRange& pages, const Registration& wanted) {
  if (wanted.log_page < kLeastLogPage || wanted.log_page > kMostLogPage || wanted.length == 0) return false;
  if (wanted.first_byte >> wanted.log_page != 0 || wanted.length - 1 > ~wanted.start) return false;
  const auto room = (std::uint64_t{pages.count} << wanted.log_page) - wanted.first_byte;
  return pages.count != 0 && wanted.length <= room;
}

}  // namespace

AccessResult check_registration(const MemoryRegion* region, const PageRange& pages, std::uint32_t pd,
                                const Registration& wanted) {
  if (region == nullptr || region->kind != RegionKind::fast_register) return AccessResult::bad_key;
  if (region->pd != pd) return AccessResult::bad_pd;
  const bool is_grantable = (wanted.access & ~kGrantable) == 0;
  const bool needs_write = (wanted.access & kPeersWrite) != 0;
  const bool writable = (wanted.access & access::kLocalWrite) != 0;
  if (region->valid || !is_grantable || (needs_write && !writable)) return AccessResult::denied;
  return is_in_pages(pages, wanted) ? AccessResult::ok : AccessResult::bad_range;
}

void take_pages(MemoryRegion& region, const Registration& wanted) {
  region.valid = true;
  region.key = wanted.key;
  region.access = wanted.access;
  region.start = wanted.start;
  region.length = wanted.length;
  region.bus_address = wanted.first_byte;
  region.log_page = wanted.log_page;
}

MemoryRegion without_pages(const MemoryRegion& region) {
  return {
      .kind = region.kind, .key = region.key, .pd = region.pd, .pasid = region.pasid, .first_page = region.first_page};
}

}  // namespace rnicsim::nic
