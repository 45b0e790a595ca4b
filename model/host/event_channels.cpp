// SPDX-License-Identifier: Apache-2.0
#include "model/host/event_channels.h"

#include <cerrno>
#include <vector>

namespace rnicsim::host {
namespace {

using abi::EventType;
using abi::IcmTable;

// The table of the object in an event; nullopt: an event of port or device.
std::optional<IcmTable> table_of(EventType type) {
  switch (type) {
    case EventType::completion:
    case EventType::cq_error: return IcmTable::cqc;
    case EventType::srq_limit:
    case EventType::srq_error: return IcmTable::srqc;
    case EventType::port_active:
    case EventType::port_error:
    case EventType::device_fatal: return std::nullopt;
    default: return IcmTable::qpc;
  }
}

void put(auto& channel, const abi::EventRecord& record) {
  if (!channel.kept.empty() || !channel.sink(record)) channel.kept.push_back(record);
}

}  // namespace

std::uint32_t EventChannels::open(Pasid owner, Sink sink) {
  channels_.emplace(next_channel_, Channel{owner, std::move(sink)});
  return next_channel_++;
}

int EventChannels::close(Pasid owner, std::uint32_t channel) {
  if (!owns(owner, channel)) return ENOENT;
  channels_.erase(channel);
  return 0;
}

int EventChannels::bind_completions(Pasid owner, std::uint32_t cqn, std::uint32_t channel) {
  auto* cq = Objects::find(objects_.cqs, owner, cqn);
  if (!cq || !owns(owner, channel)) return ENOENT;
  cq->channel = channel;
  return 0;
}

int EventChannels::bind_events(Pasid owner, std::uint32_t channel) {
  if (!owns(owner, channel)) return ENOENT;
  channels_.at(channel).listens = true;
  return 0;
}

int EventChannels::refill(Pasid owner, std::uint32_t channel) {
  if (!owns(owner, channel)) return ENOENT;
  auto& [process, sink, listens, kept] = channels_.at(channel);
  while (!kept.empty() && sink(kept.front())) kept.pop_front();
  return 0;
}

void EventChannels::close_all(Pasid owner) {
  std::erase_if(channels_, [&](const auto& entry) { return entry.second.owner == owner; });
}

bool EventChannels::owns(Pasid owner, std::uint32_t channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && found->second.owner == owner;
}

void EventChannels::bind_object(IcmTable table, std::uint32_t number, std::uint32_t channel) {
  const auto bind = [&](auto& objects) {
    if (const auto found = objects.find(number); found != objects.end()) found->second.events = channel;
  };
  if (table == IcmTable::cqc) bind(objects_.cqs);
  if (table == IcmTable::srqc) bind(objects_.srqs);
  if (table == IcmTable::qpc) bind(objects_.qps);
  const auto qp = table == IcmTable::qpc ? objects_.qps.find(number) : objects_.qps.end();
  if (qp != objects_.qps.end() && qp->second.xrcd) qp->second.handles.back().events = channel;
}

void EventChannels::forget_object(IcmTable table, std::uint32_t number) {
  for (auto& [index, channel] : channels_)
    std::erase_if(channel.kept, [&](const abi::EventRecord& record) {
      return record.type != abi::EventRecord::kConnectionEvent && record.number == number &&
             table_of(EventType(record.type)) == table;
    });
}

void EventChannels::deliver(const abi::Eqe& eqe) {
  const abi::EventRecord record{std::uint32_t(eqe.type), eqe.number};
  const auto table = table_of(eqe.type);
  if (!table) {
    for (auto& [number, channel] : channels_)
      if (channel.listens) put(channel, record);
  } else if (eqe.type != EventType::completion) {
    deliver_asynchronous(*table, record);
  } else if (const auto cq = objects_.cqs.find(record.number); cq != objects_.cqs.end()) {
    deliver_to(cq->second.channel, record);
  }
}

void EventChannels::deliver_asynchronous(IcmTable table, const abi::EventRecord& record) {
  const auto qp = table == IcmTable::qpc ? objects_.qps.find(record.number) : objects_.qps.end();
  if (qp == objects_.qps.end() || !qp->second.xrcd)
    return deliver_to(asynchronous_channel(table, record.number), record);
  for (const auto& handle : qp->second.handles) deliver_to(handle.events, record);
}

std::optional<std::uint32_t> EventChannels::asynchronous_channel(IcmTable table, std::uint32_t number) const {
  const auto of = [&](const auto& objects) {
    const auto found = objects.find(number);
    return found != objects.end() ? found->second.events : std::nullopt;
  };
  if (table == IcmTable::cqc) return of(objects_.cqs);
  return table == IcmTable::srqc ? of(objects_.srqs) : of(objects_.qps);
}

// Numbers of closed channels are never used again.
void EventChannels::deliver_to(std::optional<std::uint32_t> channel, const abi::EventRecord& record) {
  if (!channel) return;
  if (const auto found = channels_.find(*channel); found != channels_.end()) put(found->second, record);
}

void EventChannels::deliver_connection(std::uint32_t channel, std::uint32_t id) {
  deliver_to(channel, {abi::EventRecord::kConnectionEvent, id});
}

void EventChannels::forget_connection(std::uint32_t channel, std::uint32_t id) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  std::erase_if(found->second.kept, [&](const abi::EventRecord& record) {
    return record.type == abi::EventRecord::kConnectionEvent && record.number == id;
  });
}

}  // namespace rnicsim::host
