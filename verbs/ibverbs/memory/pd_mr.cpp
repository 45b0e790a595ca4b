// SPDX-License-Identifier: Apache-2.0
// Protection domains and memory regions.
#include <infiniband/verbs.h>
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#include <cstdint>
#include <memory>
#include <utility>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr unsigned kDeviceAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                   IBV_ACCESS_ON_DEMAND;
// All hints are accepted; only relaxed ordering is passed to the device.
constexpr unsigned kHints = unsigned(IBV_ACCESS_HUGETLB) | unsigned(IBV_ACCESS_OPTIONAL_RANGE);
constexpr unsigned kTold = kDeviceAccess | unsigned(IBV_ACCESS_RELAXED_ORDERING);

int check_access(const Context& context, unsigned access) {
  if ((access & IBV_ACCESS_ON_DEMAND) && !context.has_feature(abi::feature::kOnDemand)) return EOPNOTSUPP;
  if (access & ~(kDeviceAccess | kHints)) return EINVAL;
  const bool remote_changes = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  return remote_changes && !(access & IBV_ACCESS_LOCAL_WRITE) ? EINVAL : 0;
}

// Access rights for which Linux pins pages for writing.
bool writes(unsigned access) {
  return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

// An on-demand region is accessed at the program's own addresses, whatever is mapped there.
int pin(Context& context, Mr& mr) {
  if (mr.on_demand()) {
    mr.bus_address = reinterpret_cast<std::uintptr_t>(mr.addr);
    context.port.on_demand(mr.addr, mr.length);
    return 0;
  }
  if (mr.length == 0 || mr.on_device) return 0;
  mr.writable = writes(mr.access);
  const int error = context.port.pin(mr.addr, mr.length, mr.writable, mr.bus_address);
  mr.pinned = error == 0;
  return error;
}

int unpin(Context& context, Mr& mr) {
  if (!mr.pinned) return 0;
  mr.pinned = false;
  return context.port.unpin(mr.bus_address, mr.length, mr.writable);
}

std::uint32_t take_tag(const Context& context) { return Device::of(context.context.device).take_tag(); }

abi::Mpt entry_of(const Mr& mr, std::uint32_t tag) {
  abi::Mpt mpt;
  mpt.key = tag;
  mpt.pd = mr.pd->handle;
  mpt.kind = mr.null ? abi::MptKind::null : mr.on_device ? abi::MptKind::device_memory : abi::MptKind::region;
  mpt.valid = 1u;
  if (mr.null) return mpt;
  mpt.access_flags = mr.access & kTold;
  mpt.start = mr.start;
  mpt.length = mr.length;
  mpt.bus_address = mr.bus_address;
  return mpt;
}

// The kernel returns the index; the key is index << 8 | tag. The tag makes keys of earlier regions with this index
// invalid.
int create_key(Context& context, Mr& mr) {
  const std::uint32_t tag = take_tag(context);
  abi::CommandResult result;
  if (const int error = context.execute(provider::create_mpt(0, entry_of(mr, tag)), result)) return error;
  mr.handle = result.object;
  mr.lkey = mr.handle << 8 | tag;
  if (!mr.null) mr.rkey = mr.lkey;
  return 0;
}

bool is_implicit(const void* address, std::size_t length, unsigned access) {
  return (access & IBV_ACCESS_ON_DEMAND) && address == nullptr && length == SIZE_MAX;
}

int check_length(const Context& context, const void* address, std::size_t length, unsigned access) {
  if (!(access & IBV_ACCESS_ON_DEMAND)) return length > context.capabilities.max_mr_size ? EINVAL : 0;
  return length > SIZE_MAX - reinterpret_cast<std::uintptr_t>(address) ? EINVAL : 0;
}

int register_region(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access,
                    ibv_mr*& registered) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  if (const int error = check_access(context, access)) return error;
  if (const int error = check_length(context, address, length, access)) return error;
  // An implicit region covers the whole address space, with iova = 0.
  if (is_implicit(address, length, access) && iova != 0) return EINVAL;
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->access = access;
  mr->start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
  if (const int error = pin(context, *mr)) return error;
  if (const int error = create_key(context, *mr)) {
    unpin(context, *mr);
    return error;
  }
  registered = mr.get();
  context.mrs.add(mr->handle, std::move(mr));
  return 0;
}

int register_null(ibv_pd* pd, ibv_mr*& registered) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->length = SIZE_MAX;
  mr->null = true;
  if (const int error = create_key(context, *mr)) return error;
  registered = mr.get();
  context.mrs.add(mr->handle, std::move(mr));
  return 0;
}

// Registers the bytes [offset, offset + length) of device memory; their addresses start at 0.
int register_on_device(ibv_pd* pd, const Dm& dm, std::uint64_t offset, std::size_t length, unsigned access,
                       ibv_mr*& registered) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd)) || !context.dms.holds(dm.handle, &dm)) return ENOENT;
  if (const int error = check_access(context, access)) return error;
  if (!(access & IBV_ACCESS_ZERO_BASED) || (access & IBV_ACCESS_ON_DEMAND)) return EINVAL;
  if (offset > dm.length || length > dm.length - offset) return EINVAL;
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->length = length;
  mr->access = access;
  mr->on_device = true;
  mr->bus_address = dm.handle + offset;
  if (const int error = create_key(context, *mr)) return error;
  registered = mr.get();
  context.mrs.add(mr->handle, std::move(mr));
  return 0;
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  return guarded_object<ibv_mr>([&](ibv_mr*& mr) { return register_region(pd, address, length, iova, access, mr); });
}

// --- ibv_rereg_mr.
struct Reregistration {
  unsigned flags;
  ibv_pd* pd;
  void* address;
  std::size_t length;
  unsigned access;

  bool moves() const { return flags & IBV_REREG_MR_CHANGE_TRANSLATION; }
  bool changes_pd() const { return flags & IBV_REREG_MR_CHANGE_PD; }
  bool changes_access() const { return flags & IBV_REREG_MR_CHANGE_ACCESS; }
  // Pages that were pinned for reading must be pinned again for writing. On-demand pages are not pinned.
  bool repins(const Mr& mr) const {
    const bool other_kind = bool(access & IBV_ACCESS_ON_DEMAND) != mr.on_demand();
    return moves() || (changes_access() && (other_kind || (writes(access) && !mr.writable)));
  }
};

// Errors that rdma-core finds itself (ERR_INPUT); check_command() has those of driver and kernel (ERR_CMD).
int check_input(const Mr& mr, const Reregistration& wanted) {
  if (mr.import != 0) return EOPNOTSUPP;  // the memory may belong to another process
  if (mr.null || mr.on_device || (wanted.flags & ~unsigned(IBV_REREG_MR_FLAGS_SUPPORTED))) return EINVAL;
  if (wanted.moves() && (wanted.address == nullptr || wanted.length == 0)) return EINVAL;
  return wanted.access != 0 && !wanted.changes_access() ? EINVAL : 0;
}

int check_command(const Context& context, const Mr& mr, const Reregistration& wanted) {
  if (!context.mrs.holds(mr.handle, &mr)) return ENOENT;
  if (wanted.flags == 0) return EINVAL;
  const unsigned access = wanted.changes_access() ? wanted.access : mr.access;
  if (const int error = check_length(context, wanted.moves() ? wanted.address : mr.addr,
                                     wanted.moves() ? wanted.length : mr.length, access))
    return error;
  if (wanted.changes_pd() && wanted.pd == nullptr) return EINVAL;
  if (wanted.changes_pd() && !context.pds.holds(wanted.pd->handle, &Pd::of(wanted.pd))) return ENOENT;
  return check_access(context, wanted.access);
}

// The region after the change.
Mr changed(const Mr& mr, const Reregistration& wanted) {
  Mr next = mr;
  if (wanted.changes_pd()) next.pd = wanted.pd;
  if (wanted.changes_access()) next.access = wanted.access;
  if (wanted.moves()) {
    next.addr = wanted.address;
    next.length = wanted.length;
  }
  if (wanted.repins(mr)) next.pinned = false;
  const bool was_zero_based = mr.access & IBV_ACCESS_ZERO_BASED;
  if (next.access & IBV_ACCESS_ZERO_BASED)
    next.start = 0;
  else if (wanted.moves() || was_zero_based)
    next.start = reinterpret_cast<std::uintptr_t>(next.addr);
  return next;
}

// New memory or another PD makes the old keys invalid; other access rights do not.
std::uint32_t tag_after(const Context& context, const Mr& mr, const Reregistration& wanted) {
  return wanted.moves() || wanted.changes_pd() ? take_tag(context) : mr.lkey & 0xff;
}

// Returns enum ibv_rereg_mr_err_code and sets errno.
int register_anew(Mr& mr, const Reregistration& wanted) {
  Context& context = Context::of(mr.context);
  if ((errno = check_input(mr, wanted))) return IBV_REREG_MR_ERR_INPUT;
  if ((errno = check_command(context, mr, wanted))) return IBV_REREG_MR_ERR_CMD;
  Mr next = changed(mr, wanted);
  const bool repins = wanted.repins(mr);
  if (repins && (errno = pin(context, next))) return IBV_REREG_MR_ERR_CMD;
  const std::uint32_t tag = tag_after(context, mr, wanted);
  if (const int error = context.execute(provider::modify_mpt(mr.handle, entry_of(next, tag)))) {
    if (repins) unpin(context, next);
    errno = error;
    return IBV_REREG_MR_ERR_CMD;
  }
  next.lkey = next.rkey = mr.handle << 8 | tag;
  std::swap(mr, next);
  if (repins && (errno = unpin(context, next))) return IBV_REREG_MR_ERR_DO_FORK_OLD;
  return 0;
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

// The key is destroyed first: while it is valid, the memory must stay pinned.
int release_mr(Mr& mr) {
  Context& context = Context::of(mr.context);
  if (const int error = context.execute(provider::header(abi::CommandOpcode::destroy_mpt, mr.handle))) return error;
  return unpin(context, mr);
}

ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return guarded_object<ibv_mr>([&](ibv_mr*& mr) { return register_null(pd, mr); });
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
  return guarded_object<ibv_mr>(
      [&](ibv_mr*& mr) { return register_on_device(pd, Dm::of(dm), offset, length, access, mr); });
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
    if (Pd::of(pd).address_handles != 0 || has_scaling_qps(context, *pd)) return EBUSY;
    if (Pd::of(pd).parent) return dealloc_parent_domain(context, Pd::of(pd));
    if (has_parent_domains(context, Pd::of(pd))) return EBUSY;
    if (const int error = context.port.dealloc_pd(pd->handle)) return error;
    context.pds.take(Pd::of(pd));
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

int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  return register_anew(Mr::of(mr), {unsigned(flags), pd, address, length, unsigned(access)});
}

int ibv_dereg_mr(ibv_mr* mr) {
  return guarded([&] {
    Context& context = Context::of(mr->context);
    if (!context.mrs.holds(mr->handle, &Mr::of(mr))) return ENOENT;
    if (const int error = release_mr(Mr::of(mr))) return error;
    context.mrs.take(Mr::of(mr));
    return 0;
  });
}

}  // extern "C"
