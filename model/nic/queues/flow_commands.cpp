// SPDX-License-Identifier: Apache-2.0
// Commands for raw packets: receive-side scaling, flows and their counters.
#include <algorithm>
#include <bit>

#include "model/nic/queues/command_unit.h"

namespace rnicsim::nic {

void CommandUnit::create_rss() {
  const Qpn number{object()};
  const auto& context = input<RssContext>();
  if (!params_.raw) return complete(CommandStatus::not_supported);
  if (number.value >= params_.max_qp) return refuse(CommandSyndrome::number_out_of_range, CommandStatus::exceeds_limit);
  if (contexts_.qps.find(number.value) != nullptr || scaling_.find(number) != nullptr)
    return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
  if (context.queues.empty() || context.queues.size() > params_.max_rss_queues)
    return refuse(CommandSyndrome::bad_queues);
  if ((context.fields & ~rss_field::kAll) != 0) return refuse(CommandSyndrome::bad_range);
  if (!std::ranges::all_of(context.queues, [this](Qpn queue) { return takes_frames(queue); }))
    return refuse(CommandSyndrome::not_raw);
  scaling_.add(number, context) ? complete(CommandStatus::ok)
                                : refuse(CommandSyndrome::no_room, CommandStatus::exceeds_limit);
}

void CommandUnit::destroy_rss() {
  const Qpn number{object()};
  if (flows_.leads_to(number)) return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  scaling_.remove(number) ? complete(CommandStatus::ok)
                          : refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
}

bool CommandUnit::takes_frames(Qpn qpn) const {
  const auto* qp = contexts_.qps.find(qpn.value);
  return qp != nullptr && qp->transport == roce::Transport::raw;
}

void CommandUnit::create_flow() {
  const auto& rule = input<FlowRule>();
  if (!params_.raw) return complete(CommandStatus::not_supported);
  if (!takes_frames(rule.destination) && scaling_.find(rule.destination) == nullptr)
    return refuse(CommandSyndrome::not_raw);
  const auto known = [](const FlowCondition& condition) { return condition.header <= FlowHeader::mpls; };
  const bool sound =
      rule.kind <= FlowKind::sniffer && std::ranges::all_of(rule.conditions, known) &&
      (rule.kind == FlowKind::normal ? rule.conditions.size() <= FlowTable::kMostConditions : rule.conditions.empty());
  if (!sound) return refuse(CommandSyndrome::bad_flow);
  complete(flows_.add(object(), rule));
}

void CommandUnit::destroy_flow() { complete(flows_.remove(object())); }

void CommandUnit::create_counter() {
  if (!params_.raw) return complete(CommandStatus::not_supported);
  complete(flows_.add_counter(object()));
}

void CommandUnit::destroy_counter() { complete(flows_.remove_counter(object())); }

void CommandUnit::query_counter() {
  const auto* count = flows_.counter(object());
  if (count == nullptr) return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
  current_->output = FlowCounterValue{count->packets, count->bytes};
  complete(CommandStatus::ok);
}

void CommandUnit::complete(FlowTable::Result result) {
  switch (result) {
    case FlowTable::Result::done: return complete(CommandStatus::ok);
    case FlowTable::Result::exists: return refuse(CommandSyndrome::exists, CommandStatus::resource_busy);
    case FlowTable::Result::no_such: return refuse(CommandSyndrome::no_object, CommandStatus::bad_resource);
    case FlowTable::Result::no_room: return refuse(CommandSyndrome::no_room, CommandStatus::exceeds_limit);
    case FlowTable::Result::in_use: return refuse(CommandSyndrome::in_use, CommandStatus::resource_busy);
  }
}

}  // namespace rnicsim::nic
