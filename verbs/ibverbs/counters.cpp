// SPDX-License-Identifier: Apache-2.0
// Flow counters: the device counts packets and bytes, and the program chooses an index for each count.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <span>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

bool resolves(const Counters& counters) { return counters.owner().counters.holds(counters.number, &counters); }

bool has_flows(const Counters& counters) {
  return counters.owner().flows.any_of([&](const Flow& flow) { return flow.counters == &counters; });
}

int create(Context& context, const ibv_counters_init_attr& attributes, ibv_counters*& created) {
  if (!context.has_feature(abi::feature::kRaw)) return EOPNOTSUPP;
  if (attributes.comp_mask != 0) return EINVAL;
  auto counters = std::make_unique<Counters>();
  counters->context = &context.context;
  abi::CommandResult result;
  if (const int error = context.execute(provider::header(abi::CommandOpcode::create_counter), result)) return error;
  counters->number = result.object;
  created = counters.get();
  context.counters.add(result.object, std::move(counters));
  return 0;
}

// Only before a flow uses the counters: their description cannot be changed later.
int attach(Counters& counters, const ibv_counter_attach_attr& attributes, const ibv_flow* flow) {
  if (!resolves(counters)) return ENOENT;
  if (attributes.comp_mask != 0) return EINVAL;
  if (flow != nullptr || unsigned(attributes.counter_desc) > IBV_COUNTER_BYTES) return EOPNOTSUPP;
  if (has_flows(counters)) return EBUSY;
  const std::lock_guard guard(counters.mutex);
  counters.points.push_back({attributes.counter_desc, attributes.index});
  return 0;
}

int read(Counters& counters, std::span<std::uint64_t> values, std::uint32_t flags) {
  if (!resolves(counters)) return ENOENT;
  if (flags & ~std::uint32_t{IBV_READ_COUNTERS_ATTR_PREFER_CACHED}) return EINVAL;
  const std::lock_guard guard(counters.mutex);
  const auto has_room = [&](const Counters::Point& point) { return point.index < values.size(); };
  if (!std::ranges::all_of(counters.points, has_room)) return EINVAL;
  abi::QueryCounter answer;
  const auto query = provider::header(abi::CommandOpcode::query_counter, counters.number);
  if (const int error = counters.owner().execute(query, answer)) return error;
  std::ranges::fill(values, 0);
  for (const auto& [what, index] : counters.points)
    values[index] += what == IBV_COUNTER_PACKETS ? answer.packets : answer.bytes;
  return 0;
}

int destroy(Counters& counters) {
  Context& context = counters.owner();
  if (!resolves(counters)) return ENOENT;
  if (const int error = release_counters(counters)) return error;
  context.counters.take(counters.number);
  return 0;
}

}  // namespace

int release_counters(Counters& counters) {
  return counters.owner().execute(provider::header(abi::CommandOpcode::destroy_counter, counters.number));
}

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attributes) {
  return guarded_object<ibv_counters>(
      [&](ibv_counters*& made) { return create(Context::of(context), *attributes, made); });
}

int attach_counters(ibv_counters* counters, ibv_counter_attach_attr* attributes, ibv_flow* flow) {
  return guarded([&] { return attach(Counters::of(counters), *attributes, flow); });
}

int read_counters(ibv_counters* counters, std::uint64_t* values, std::uint32_t count, std::uint32_t flags) {
  return guarded([&] { return read(Counters::of(counters), {values, count}, flags); });
}

int destroy_counters(ibv_counters* counters) {
  return guarded([&] { return destroy(Counters::of(counters)); });
}

}  // namespace rnicsim::verbs
