// SPDX-License-Identifier: Apache-2.0
// Address handles: the path to a peer or a multicast group, resolved once. AHs exist in the library only; each WQE has
// its own copy of the path for the device.
#include <infiniband/verbs.h>

#include <memory>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"
#include "verbs/ibverbs/path.h"

namespace rnicsim::verbs {

namespace {

bool is_rate(std::uint8_t rate) { return rate == IBV_RATE_MAX || ibv_rate_to_mult(ibv_rate(rate)) > 0; }

int create_ah(ibv_pd* pd, const ibv_ah_attr& attributes, ibv_ah*& created) {
  Context& context = Context::of(pd->context);
  if (!context.pds.holds(pd->handle, &Pd::of(pd))) return ENOENT;
  if (const int error = check_path(context, attributes, attributes.port_num)) return error;
  if (!is_rate(attributes.static_rate)) return EINVAL;
  if (context.address_handles >= context.capabilities.max_ah) return ENOMEM;
  auto ah = std::make_unique<Ah>();
  ah->context = &context.context;
  ah->pd = pd;
  ah->path = encode_path(context, attributes);
  if (const int error = context.port.resolve_path(ah->path)) return error;
  ah->handle = context.next_ah.fetch_add(1, std::memory_order_relaxed);
  ++context.address_handles;
  ++Pd::of(pd).address_handles;
  created = ah.get();
  context.ahs.add(ah->handle, std::move(ah));
  return 0;
}

int destroy_ah(ibv_ah* handle) {
  Context& context = Context::of(handle->context);
  Ah& ah = Ah::of(handle);
  if (!context.ahs.holds(ah.handle, &ah)) return ENOENT;
  --context.address_handles;
  --Pd::of(ah.pd).address_handles;
  context.ahs.take(ah.handle);
  return 0;
}

}  // namespace

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return guarded_object<ibv_ah>([&](ibv_ah*& ah) { return create_ah(pd, *attributes, ah); });
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attributes{};
  if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attributes) != 0) return nullptr;
  return ibv_create_ah(pd, &attributes);
}

int ibv_destroy_ah(ibv_ah* ah) {
  return guarded([&] { return destroy_ah(ah); });
}

}  // extern "C"
