// Protection domains and memory regions.
#include <infiniband/verbs.h>
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include <memory>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr unsigned kDeviceAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;
constexpr unsigned kHints = unsigned(IBV_ACCESS_HUGETLB) | unsigned(IBV_ACCESS_OPTIONAL_RANGE);

int check_access(unsigned access) {
  if (access & IBV_ACCESS_ON_DEMAND) return EOPNOTSUPP;
  if (access & ~(kDeviceAccess | kHints)) return EINVAL;
  const bool remote_changes = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  return remote_changes && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

int pin(Context& context, Mr& mr) {
  if (mr.length == 0) return 0;
  const int error = context.port.pin(mr.addr, mr.length);
  mr.pinned = error == 0;
  return error;
}

int unpin(Context& context, Mr& mr) {
  if (!mr.pinned) return 0;
  mr.pinned = false;
  return context.port.unpin(mr.addr, mr.length);
}

// The kernel answers the index, the device keeps index << 8 | tag: a key of an earlier region at that index is stale.
int create_key(Context& context, Mr& mr, unsigned access) {
  const std::uint32_t tag = Device::of(context.context.device).take_tag();
  abi::Mpt mpt;
  mpt.key = tag;
  mpt.pd = mr.pd->handle;
  mpt.access_flags = access & kDeviceAccess;
  mpt.start = mr.start;
  mpt.length = mr.length;
  mpt.bus_address = reinterpret_cast<std::uintptr_t>(mr.addr);
  mpt.valid = 1u;
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_mpt(0, mpt), result)) return error;
  mr.handle = result.object;
  mr.lkey = mr.rkey = mr.handle << 8 | tag;
  return 0;
}

int register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access,
                    ibv_mr*& registered) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  if (const int error = check_access(access)) return error;
  if (length > context.capabilities.max_mr_size) return EINVAL;
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
  if (const int error = pin(context, *mr)) return error;
  if (const int error = create_key(context, *mr, access)) {
    unpin(context, *mr);
    return error;
  }
  registered = mr.get();
  context.mrs.add(mr->handle, std::move(mr));
  return 0;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return guarded_object<ibv_mr>([&](ibv_mr*& mr) { return register_region(pd, address, length, iova, access, mr); });
}

int alloc_pd(Context& context, ibv_pd*& allocated) {
  auto pd = std::make_unique<Pd>();
  pd->context = &context.context;
  if (const int error = context.port.alloc_pd(pd->handle)) return error;
  allocated = pd.get();
  context.pds.add(pd->handle, std::move(pd));
  return 0;
}

}  // namespace

// The key first: while it is good, the memory must be there.
int release_mr(Mr& mr) {
  Context& context = Context::of(mr.context);
  if (const int error = context.execute(provider::header(abi::CommandOpcode::destroy_mpt, mr.handle))) return error;
  return unpin(context, mr);
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return guarded_object<ibv_pd>([&](ibv_pd*& pd) { return alloc_pd(Context::of(context), pd); });
}

int ibv_dealloc_pd(ibv_pd* pd) {
  return guarded([&] {
    Context& context = Context::of(pd->context);
    if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
    if (Pd::of(pd).address_handles != 0) return EBUSY;
    if (Pd::of(pd).parent) return dealloc_parent_domain(context, Pd::of(pd));
    if (has_parent_domains(context, Pd::of(pd))) return EBUSY;
    if (const int error = context.port.dealloc_pd(pd->handle)) return error;
    context.pds.take(pd->handle);
    return 0;
  });
}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  return reg_mr(pd, address, length, reinterpret_cast<std::uintptr_t>(address), unsigned(access));
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  return reg_mr(pd, address, length, iova, unsigned(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return reg_mr(pd, address, length, iova, access);
}

int ibv_dereg_mr(ibv_mr* mr) {
  return guarded([&] {
    Context& context = Context::of(mr->context);
    if (!context.mrs.holds(mr->handle, &Mr::of(mr))) return ENOENT;
    if (const int error = release_mr(Mr::of(mr))) return error;
    context.mrs.take(mr->handle);
    return 0;
  });
}

}  // extern "C"
