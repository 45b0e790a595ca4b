// SPDX-License-Identifier: Apache-2.0
// Import of PDs and regions from other contexts of this or another process. The kernel checks what may be imported.
// One user destroys the object; the others unimport it.
#include <infiniband/verbs.h>

#include <memory>
#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

int import_pd(Context& context, std::uint32_t handle, ibv_pd*& imported) {
  if (const int error = context.port.import_pd(context.number, handle)) return error;
  auto pd = std::make_unique<Pd>();
  pd->context = &context.context;
  pd->handle = handle;
  imported = pd.get();
  context.pds.add_import(std::move(pd));
  return 0;
}

// `addr` stays NULL: only the owner knows the address of the memory.
int import_mr(ibv_pd* pd, std::uint32_t handle, ibv_mr*& imported) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  abi::QueryMpt answer;
  if (const int error = context.execute(provider::header(abi::CommandOpcode::query_mpt, handle), answer)) return error;
  const abi::Mpt& entry = answer.context;
  const bool null = entry.kind == abi::MptKind::null;
  const bool on_device = entry.kind == abi::MptKind::device_memory;
  if (entry.kind != abi::MptKind::region && !null && !on_device) return ENOENT;
  if (entry.pd != pd->handle) return EINVAL;
  auto mr = std::make_unique<Mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->handle = handle;
  mr->lkey = entry.key;
  mr->null = null;
  mr->on_device = on_device;
  mr->access = entry.access_flags;
  mr->start = entry.start;
  mr->length = null ? SIZE_MAX : std::size_t(entry.length);
  if (!null) mr->rkey = mr->lkey;
  imported = mr.get();
  context.mrs.add_import(std::move(mr));
  return 0;
}

// An imported PD that objects still use stays until the context is closed.
int unimport_pd(Pd& pd) {
  Context& context = Context::of(pd.context);
  if (!context.pds.holds(pd.handle, &pd)) return ENOENT;
  if (pd.parent) return EINVAL;
  if (has_objects(context, pd) || has_parent_domains(context, pd)) return 0;
  context.pds.take(pd);
  return 0;
}

// The memory stays pinned, since the region still exists.
int unimport_mr(Mr& mr) {
  Context& context = Context::of(mr.context);
  if (!context.mrs.holds(mr.handle, &mr)) return ENOENT;
  context.mrs.take(mr);
  return 0;
}

}  // namespace

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  return guarded_object<ibv_pd>([&](ibv_pd*& pd) { return import_pd(Context::of(context), handle, pd); });
}

void ibv_unimport_pd(ibv_pd* pd) {
  guarded([&] { return unimport_pd(Pd::of(pd)); });
}

ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  return guarded_object<ibv_mr>([&](ibv_mr*& mr) { return import_mr(pd, handle, mr); });
}

void ibv_unimport_mr(ibv_mr* mr) {
  guarded([&] { return unimport_mr(Mr::of(mr)); });
}

}  // extern "C"
