#include "model/host/event_channels.h"

#include <cerrno>
#include <vector>

namespace rnicsim::host {

std::uint32_t EventChannels::open(Pasid owner, Sink sink) {
  channels_.emplace(next_channel_, Channel{owner, std::move(sink)});
  return next_channel_++;
}

int EventChannels::close(Pasid owner, std::uint32_t channel) {
  if (!owns(owner, channel)) return ENOENT;
  channels_.erase(channel);
  for (auto& [cqn, cq] : objects_.cqs)
    if (cq.channel == channel) cq.channel.reset();
  if (const auto bound = asynchronous_.find(owner); bound != asynchronous_.end() && bound->second == channel)
    asynchronous_.erase(bound);
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
  asynchronous_[owner] = channel;
  return 0;
}

void EventChannels::close_all(Pasid owner) {
  std::vector<std::uint32_t> mine;
  for (const auto& [number, channel] : channels_)
    if (channel.owner == owner) mine.push_back(number);
  for (const std::uint32_t channel : mine) close(owner, channel);
}

bool EventChannels::owns(Pasid owner, std::uint32_t channel) const {
  const auto found = channels_.find(channel);
  return found != channels_.end() && found->second.owner == owner;
}

void EventChannels::deliver(const abi::Eqe& eqe) {
  using abi::EventType;
  const abi::EventRecord record{std::uint32_t(eqe.type), eqe.number};
  switch (eqe.type) {
    case EventType::completion:
      if (const auto cq = objects_.cqs.find(record.number); cq != objects_.cqs.end() && cq->second.channel)
        deliver_to(*cq->second.channel, record);
      break;
    case EventType::cq_error:
      if (const auto cq = objects_.cqs.find(record.number); cq != objects_.cqs.end())
        deliver_asynchronous(cq->second.owner, record);
      break;
    case EventType::srq_limit:
    case EventType::srq_error:
      if (const auto srq = objects_.srqs.find(record.number); srq != objects_.srqs.end())
        deliver_asynchronous(srq->second.owner, record);
      break;
    case EventType::port_active:
    case EventType::port_error:
    case EventType::device_fatal: {
      const auto listeners = asynchronous_;
      for (const auto& [owner, channel] : listeners) deliver_to(channel, record);
      break;
    }
    default:
      if (const auto qp = objects_.qps.find(record.number); qp != objects_.qps.end())
        deliver_asynchronous(qp->second.owner, record);
  }
}

void EventChannels::deliver_to(std::uint32_t channel, const abi::EventRecord& record) {
  if (const auto found = channels_.find(channel); found != channels_.end()) found->second.sink(record);
}

void EventChannels::deliver_asynchronous(Pasid owner, const abi::EventRecord& record) {
  if (const auto bound = asynchronous_.find(owner); bound != asynchronous_.end()) deliver_to(bound->second, record);
}

}  // namespace rnicsim::host
