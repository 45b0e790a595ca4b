// SPDX-License-Identifier: Apache-2.0
// Thread domains and parent domains: hints of the program about threads and about the memory of objects. Neither the
// device nor the kernel knows them.
#include <infiniband/verbs.h>

#include <memory>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

constexpr std::uint32_t kKnownMask =
    std::uint32_t(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

const Pd::Parent* parent_of(ibv_pd* pd) { return pd != nullptr && Pd::of(pd).parent ? &*Pd::of(pd).parent : nullptr; }

bool holds(const Context& context, const Td& td) { return context.thread_domains.holds(td.number, &td); }

int check(const Context& context, const ibv_parent_domain_init_attr& attributes) {
  if (attributes.comp_mask & ~kKnownMask) return EINVAL;
  if (attributes.pd == nullptr || attributes.pd->context != &context.context) return EINVAL;
  if (!context.pds.holds(attributes.pd->handle, &Pd::of(attributes.pd))) return ENOENT;
  if (Pd::of(attributes.pd).parent) return EINVAL;  // the parent must be a PD, not another parent domain
  if (attributes.td != nullptr && attributes.td->context != &context.context) return EINVAL;
  if (attributes.td != nullptr && !holds(context, Td::of(attributes.td))) return ENOENT;
  const bool has_allocators = attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  return has_allocators && (attributes.alloc == nullptr) != (attributes.free == nullptr) ? EINVAL : 0;
}

Allocator allocator_of(const ibv_parent_domain_init_attr& attributes, ibv_pd* pd) {
  Allocator allocator{.pd = pd};
  if (attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) allocator.context = attributes.pd_context;
  if (attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
    allocator.alloc = attributes.alloc;
    allocator.free = attributes.free;
  }
  return allocator;
}

}  // namespace

bool is_imported(ibv_pd& pd) {
  const Pd::Parent* parent = parent_of(&pd);
  return (parent != nullptr ? *parent->protection : Pd::of(&pd)).import != 0;
}

// True: an object of any kind still uses the PD.
bool has_objects(const Context& context, const Pd& pd) {
  const auto of_pd = [&](const auto& object) { return object.pd == &pd; };
  return context.mrs.any_of(of_pd) || context.mws.any_of(of_pd) || context.ahs.any_of(of_pd) ||
         context.srqs.any_of(of_pd) || context.wqs.any_of(of_pd) ||
         context.qps.any_of([&](const Qp& qp) { return qp.qp_base.pd == &pd; }) ||
         context.cqs.any_of([&](const Cq& cq) { return cq.parent_domain == &pd; });
}

bool Pds::holds(std::uint32_t handle, const Pd* pd) const {
  if (ImportableRegistry<Pd>::holds(handle, pd)) return true;
  return pd->parent && parents.holds(pd->parent->number, pd) && handle == pd->parent->protection->handle;
}

DmaMemory allocate_for(Context& context, ibv_pd* pd, MemoryUse use, std::size_t bytes, std::size_t alignment) {
  const Pd::Parent* parent = parent_of(pd);
  return {context.port, parent != nullptr ? &parent->allocator : nullptr, use, bytes, alignment};
}

DoorbellPage& doorbell_page_for(Context& context, ibv_pd* pd) {
  const Pd::Parent* parent = parent_of(pd);
  if (parent == nullptr || parent->thread == nullptr || parent->thread->page == nullptr) return context.pages.take();
  context.pages.share(*parent->thread->page);
  return *parent->thread->page;
}

bool is_of_one_thread(ibv_pd* pd) {
  const Pd::Parent* parent = parent_of(pd);
  return parent != nullptr && parent->thread != nullptr;
}

ibv_td* alloc_td(ibv_context* handle, ibv_td_init_attr* attributes) {
  return guarded_object<ibv_td>([&](ibv_td*& made) {
    if (attributes->comp_mask != 0) return EINVAL;
    Context& context = Context::of(handle);
    auto td = std::make_unique<Td>();
    td->context = handle;
    td->number = context.next_domain++;
    td->page = context.pages.take_for_thread();
    made = td.get();
    context.thread_domains.add(td->number, std::move(td));
    return 0;
  });
}

int dealloc_td(ibv_td* handle) {
  return guarded([&] {
    Context& context = Context::of(handle->context);
    Td& td = Td::of(handle);
    if (!holds(context, td)) return ENOENT;
    if (context.pds.parents.any_of([&](const Pd& pd) { return pd.parent->thread == &td; })) return EBUSY;
    if (td.page != nullptr) context.pages.give_back(*td.page);
    context.thread_domains.take(td.number);
    return 0;
  });
}

ibv_pd* alloc_parent_domain(ibv_context* handle, ibv_parent_domain_init_attr* attributes) {
  return guarded_object<ibv_pd>([&](ibv_pd*& made) {
    Context& context = Context::of(handle);
    if (const int error = check(context, *attributes)) return error;
    auto pd = std::make_unique<Pd>();
    pd->context = handle;
    pd->handle = attributes->pd->handle;
    pd->parent = Pd::Parent{.number = context.next_domain++,
                            .protection = &Pd::of(attributes->pd),
                            .thread = attributes->td != nullptr ? &Td::of(attributes->td) : nullptr,
                            .allocator = allocator_of(*attributes, pd.get())};
    made = pd.get();
    context.pds.parents.add(pd->parent->number, std::move(pd));
    return 0;
  });
}

int dealloc_parent_domain(Context& context, Pd& pd) {
  if (has_objects(context, pd)) return EBUSY;
  context.pds.parents.take(pd.parent->number);
  return 0;
}

bool has_parent_domains(const Context& context, const Pd& pd) {
  return context.pds.parents.any_of([&](const Pd& parent) { return parent.parent->protection == &pd; });
}

}  // namespace rnicsim::verbs
