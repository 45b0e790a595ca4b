// SPDX-License-Identifier: Apache-2.0
// ibv_advise_mr: brings pages of on-demand regions in before they are needed.
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {
namespace {

struct Range {
  std::uint32_t region;
  std::uint64_t address;  // bus address
  std::uint32_t bytes;
};

// Fills `range` from the SGE. Errors as in Linux's mlx5 driver.
int find(Context& context, const ibv_pd* pd, const ibv_sge& sge, bool writes, Range& range) {
  int error = ENOENT;
  context.mrs.with(sge.lkey >> 8, [&](const Mr& mr) {
    if (mr.lkey != sge.lkey || !mr.on_demand()) return;
    const bool inside =
        sge.addr >= mr.start && sge.addr - mr.start <= mr.length && sge.length <= mr.length - (sge.addr - mr.start);
    const bool writable = mr.access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    range = {mr.handle, mr.bus_address + (sge.addr - mr.start), sge.length};
    error = mr.pd != pd || (writes && !writable) ? EPERM : inside ? 0 : EFAULT;
  });
  return error;
}

}  // namespace

int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges, std::uint32_t count) {
  return guarded([&]() -> int {
    Context& context = Context::of(pd->context);
    if (!context.has_feature(abi::feature::kOnDemand) || advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
      return EOPNOTSUPP;
    if (!context.pds.holds(pd->handle, &Pd::of(pd))) return EINVAL;
    if ((flags & ~std::uint32_t(IBV_ADVISE_MR_FLAG_FLUSH)) || count == 0) return EINVAL;
    const bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
    // All SGEs are checked before the first page is requested.
    std::vector<Range> ranges(count);
    for (std::uint32_t i = 0; i < count; ++i)
      if (const int error = find(context, pd, sges[i], writes, ranges[i])) return error;
    for (const Range& range : ranges)
      if (const int error = context.port.make_present(range.region, range.address, range.bytes, writes,
                                                      flags & IBV_ADVISE_MR_FLAG_FLUSH))
        return error;
    return 0;
  });
}

}  // namespace rnicsim::verbs
