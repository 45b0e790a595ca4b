// SPDX-License-Identifier: Apache-2.0
// Flows: rules that choose the received frames of a raw packet QP.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

using abi::CreateFlow;
using abi::FlowHeader;

// Position of value and mask in a flow spec. The fields have the layout that the device expects.
struct Filter {
  FlowHeader header;
  std::size_t spec_bytes;
  std::size_t value;  // offset in the spec
  std::size_t mask;
  std::size_t bytes;
};

template <class Spec>
constexpr Filter filter_in(FlowHeader header, std::size_t bytes = sizeof(Spec::val)) {
  return {header, sizeof(Spec), offsetof(Spec, val), offsetof(Spec, mask), bytes};
}

std::optional<Filter> filter_of(std::uint32_t type) {
  constexpr std::size_t kIpv6Fields = offsetof(ibv_flow_ipv6_filter, hop_limit) + 1;  // without the padding
  switch (type) {
    case IBV_FLOW_SPEC_ETH: return filter_in<ibv_flow_spec_eth>(FlowHeader::ethernet);
    case IBV_FLOW_SPEC_IPV4: return filter_in<ibv_flow_spec_ipv4>(FlowHeader::ipv4);
    case IBV_FLOW_SPEC_IPV4_EXT: return filter_in<ibv_flow_spec_ipv4_ext>(FlowHeader::ipv4);
    case IBV_FLOW_SPEC_IPV6: return filter_in<ibv_flow_spec_ipv6>(FlowHeader::ipv6, kIpv6Fields);
    case IBV_FLOW_SPEC_ESP: return filter_in<ibv_flow_spec_esp>(FlowHeader::esp);
    case IBV_FLOW_SPEC_TCP: return filter_in<ibv_flow_spec_tcp_udp>(FlowHeader::tcp);
    case IBV_FLOW_SPEC_UDP: return filter_in<ibv_flow_spec_tcp_udp>(FlowHeader::udp);
    case IBV_FLOW_SPEC_VXLAN_TUNNEL: return filter_in<ibv_flow_spec_tunnel>(FlowHeader::vxlan);
    case IBV_FLOW_SPEC_GRE: return filter_in<ibv_flow_spec_gre>(FlowHeader::gre);
    case IBV_FLOW_SPEC_MPLS: return filter_in<ibv_flow_spec_mpls>(FlowHeader::mpls);
    default: return std::nullopt;
  }
}

// Size in bytes of a spec of this type; nullopt: an unknown type.
std::optional<std::size_t> spec_bytes(std::uint32_t type) {
  switch (type) {
    case IBV_FLOW_SPEC_ACTION_TAG: return sizeof(ibv_flow_spec_action_tag);
    case IBV_FLOW_SPEC_ACTION_DROP: return sizeof(ibv_flow_spec_action_drop);
    case IBV_FLOW_SPEC_ACTION_HANDLE: return sizeof(ibv_flow_spec_action_handle);
    case IBV_FLOW_SPEC_ACTION_COUNT: return sizeof(ibv_flow_spec_counter_action);
    default: break;
  }
  const auto filter = filter_of(type & ~std::uint32_t{IBV_FLOW_SPEC_INNER});
  return filter ? std::optional(filter->spec_bytes) : std::nullopt;
}

// A flow that is being built.
struct Rule {
  CreateFlow command;
  const Counters* counters = nullptr;
};

int add_condition(const Filter& filter, bool inner, const std::byte* spec, CreateFlow& command) {
  if (command.kind != abi::FlowKind::normal) return EINVAL;
  if (command.conditions_count == CreateFlow::kMostConditions) return EINVAL;
  abi::FlowCondition& condition = command.conditions[command.conditions_count++];
  condition.header = filter.header;
  condition.inner = inner;
  std::memcpy(condition.value, spec + filter.value, filter.bytes);
  std::memcpy(condition.mask, spec + filter.mask, filter.bytes);
  for (std::size_t i = 0; i < filter.bytes; ++i) condition.value[i] &= condition.mask[i];
  return 0;
}

// Each action may occur once.
int add_flag(CreateFlow& command, std::uint8_t flag) {
  if (command.flags & flag) return EINVAL;
  command.flags |= flag;
  return 0;
}

int count_by(const Context& context, ibv_counters* counters, Rule& rule) {
  if (counters == nullptr || counters->context != &context.context) return EINVAL;
  const Counters& own = Counters::of(counters);
  if (!context.counters.holds(own.number, &own)) return ENOENT;
  rule.counters = &own;
  rule.command.counter = own.number;
  return add_flag(rule.command, CreateFlow::kCount);
}

int add_action(const Context& context, const std::byte* spec, std::uint32_t type, Rule& rule) {
  switch (type) {
    case IBV_FLOW_SPEC_ACTION_TAG: {
      ibv_flow_spec_action_tag action;
      std::memcpy(&action, spec, sizeof action);
      rule.command.tag = action.tag_id;
      return add_flag(rule.command, CreateFlow::kTag);
    }
    case IBV_FLOW_SPEC_ACTION_DROP: return add_flag(rule.command, CreateFlow::kDrop);
    case IBV_FLOW_SPEC_ACTION_COUNT: {
      ibv_flow_spec_counter_action action;
      std::memcpy(&action, spec, sizeof action);
      return count_by(context, action.counters, rule);
    }
    default: return EOPNOTSUPP;  // IPsec
  }
}

int add_spec(const Context& context, const std::byte* spec, std::uint32_t type, Rule& rule) {
  const std::uint32_t inner = type & IBV_FLOW_SPEC_INNER;
  if (const auto filter = filter_of(type & ~inner)) return add_condition(*filter, inner != 0, spec, rule.command);
  return add_action(context, spec, type, rule);
}

// The specs follow the attributes. attributes.size cannot be used as their bound: rdma-core goes by num_of_specs, and
// pyverbs sets the size of the attributes alone.
int add_specs(const Context& context, const ibv_flow_attr& attributes, Rule& rule) {
  const auto* at = reinterpret_cast<const std::byte*>(&attributes + 1);
  for (int i = 0; i < attributes.num_of_specs; ++i) {
    std::uint32_t type = 0;
    std::uint16_t size = 0;
    std::memcpy(&type, at, sizeof type);
    std::memcpy(&size, at + offsetof(ibv_flow_spec, hdr.size), sizeof size);
    if (spec_bytes(type) != std::size_t{size}) return EINVAL;
    if (const int error = add_spec(context, at, type, rule)) return error;
    at += size;
  }
  return 0;
}

int check_attributes(const Context& context, const ibv_flow_attr& attributes) {
  if (attributes.comp_mask != 0) return EINVAL;
  constexpr std::uint32_t kKnownFlags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS;
  if (attributes.flags & ~kKnownFlags) return EINVAL;
  if (attributes.flags & IBV_FLOW_ATTR_FLAGS_EGRESS) return EOPNOTSUPP;
  if (unsigned(attributes.type) > IBV_FLOW_ATTR_SNIFFER) return EINVAL;
  return context.has_port(attributes.port) ? 0 : EINVAL;
}

int check_receiver(const Qp& qp) {
  if (!resolves(qp)) return ENOENT;
  if (qp.qp_base.qp_type == IBV_QPT_UD) return EOPNOTSUPP;
  return qp.qp_base.qp_type == IBV_QPT_RAW_PACKET ? 0 : EINVAL;
}

int create(Qp& qp, const ibv_flow_attr& attributes, ibv_flow*& created) {
  Context& context = qp.owner();
  if (!context.has_feature(abi::feature::kRaw)) return EOPNOTSUPP;
  if (const int error = check_receiver(qp)) return error;
  if (const int error = check_attributes(context, attributes)) return error;
  Rule rule{.command = {.header = provider::header(abi::CommandOpcode::create_flow),
                        .qpn = qp.qp_base.qp_num,
                        .priority = attributes.priority,
                        .kind = abi::FlowKind(attributes.type)}};
  if (attributes.flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) rule.command.flags |= CreateFlow::kPassOn;
  if (const int error = add_specs(context, attributes, rule)) return error;
  auto flow = std::make_unique<Flow>();
  flow->context = &context.context;
  flow->counters = rule.counters;
  abi::CommandResult result;
  if (const int error = context.execute(rule.command, result)) return error;
  flow->handle = result.object;
  created = flow.get();
  context.flows.add(result.object, std::move(flow));
  return 0;
}

int destroy(Flow& flow) {
  Context& context = flow.owner();
  if (!context.flows.holds(flow.handle, &flow)) return ENOENT;
  if (const int error = release_flow(flow)) return error;
  context.flows.take(flow.handle);
  return 0;
}

}  // namespace

int release_flow(Flow& flow) {
  return flow.owner().execute(provider::header(abi::CommandOpcode::destroy_flow, flow.handle));
}

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) {
  return guarded_object<ibv_flow>([&](ibv_flow*& made) { return create(Qp::of(qp), *attributes, made); });
}

int destroy_flow(ibv_flow* flow) {
  return guarded([&] { return destroy(Flow::of(flow)); });
}

}  // namespace rnicsim::verbs
