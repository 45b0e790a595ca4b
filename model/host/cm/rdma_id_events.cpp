// SPDX-License-Identifier: Apache-2.0
// Asynchronous events of ids: the ends of resolutions, events of the communication manager, and the programs' event
// queues.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/host/cm/address_header.h"
#include "model/host/cm/rdma_ids.h"

namespace rnicsim::host {
namespace {

constexpr cm::TimeCode kServiceTimeout = 24;  // service timeout in MRAs, as Linux sends it

template <std::size_t Bytes>
void set_private_data(const std::array<std::uint8_t, Bytes>& data, std::size_t from, auto& param) {
  const std::size_t bytes = std::min<std::size_t>(Bytes - from, sizeof param.private_data);
  std::copy_n(data.begin() + std::ptrdiff_t(from), bytes, param.private_data);
  param.private_data_len = std::uint8_t(bytes);
}

rdma_ucm_event_resp make_event(CmEventType type, int status = 0) {
  rdma_ucm_event_resp event{};
  event.event = std::uint32_t(type);
  event.status = std::uint32_t(status);
  return event;
}

// QP type at the receiver of a REQ; nullopt: the transport is not supported.
std::optional<IdQpType> type_of(const cm::ConnectRequest& request) {
  switch (request.transport) {
    case cm::TransportService::rc: return IdQpType::rc;
    case cm::TransportService::uc: return IdQpType::uc;
    case cm::TransportService::extended:
      return request.extended_transport == cm::kExtendedXrc ? std::optional(IdQpType::xrc_recv) : std::nullopt;
    case cm::TransportService::rd: break;
  }
  return std::nullopt;
}

// True if the disconnection was answered: by the peer's DREQ, or by a DREP for the own DREQ.
bool answered(const cm::Event& event) {
  return event.kind == cm::EventKind::disconnect_requested ||
         std::holds_alternative<cm::DisconnectReply>(event.message);
}

}  // namespace

// --- Time.

void RdmaIds::later(Duration delay, const Task& task) { tasks_.emplace(now_ + delay, task); }

void RdmaIds::drop_tasks(std::uint32_t number) {
  std::erase_if(tasks_, [&](const auto& entry) { return entry.second.number == number; });
}

std::optional<Duration> RdmaIds::next_deadline() const {
  const auto timer = manager_.next_deadline();
  if (tasks_.empty()) return timer;
  return timer ? std::min(*timer, tasks_.begin()->first) : tasks_.begin()->first;
}

void RdmaIds::advance(Duration now) {
  for (auto next = next_deadline(); next && *next <= now; next = next_deadline()) {
    now_ = *next;
    manager_.advance(now_);
    take_events();
    while (!tasks_.empty() && tasks_.begin()->first <= now_) {
      const Task task = tasks_.begin()->second;
      tasks_.erase(tasks_.begin());
      do_task(task);
    }
  }
  now_ = now;
  manager_.advance(now);
}

void RdmaIds::do_task(const Task& task) {
  RdmaId& id = ids_.at(task.number);
  switch (task.step) {
    case Step::address: return finish_address(id, task);
    case Step::route: return finish_route(id);
    case Step::group: return finish_group(id, task.group);
  }
}

// --- Events of the communication manager.

void RdmaIds::receive(const cm::Route& route, const cm::Envelope& envelope) {
  manager_.receive(route, envelope);
  take_events();
}

void RdmaIds::take_events() {
  while (const auto event = manager_.next_event()) on(*event);
}

void RdmaIds::on(const cm::Event& event) {
  using cm::EventKind;
  if (event.kind == EventKind::request_received || event.kind == EventKind::service_requested) return on_request(event);
  RdmaId* id = by_connection(event.id);
  if (id == nullptr) return;
  switch (event.kind) {
    case EventKind::reply_received: {
      const auto& reply = std::get<cm::ConnectReply>(event.message);
      auto response = make_event(CmEventType::connect_response);
      auto& param = response.param.conn;
      set_private_data(reply.private_data, 0, param);
      param.responder_resources = reply.initiator_depth;
      param.initiator_depth = reply.responder_resources;
      param.flow_control = reply.end_to_end_flow_control;
      param.rnr_retry_count = reply.rnr_retry_count;
      param.srq = reply.srq;
      param.qp_num = reply.qpn(manager_.find(event.id)->transport);
      param.valid = 1;
      manager_.promise(event.id, kServiceTimeout);
      return queue(*id, 0, response);
    }
    case EventKind::established: return tell(*id, CmEventType::established, 0);
    case EventKind::request_failed:
    case EventKind::reply_failed:
    case EventKind::service_failed: return tell(*id, CmEventType::unreachable, -ETIMEDOUT);
    case EventKind::rejected: {
      const auto& reject = std::get<cm::ConnectReject>(event.message);
      auto response = make_event(CmEventType::rejected, int(reject.reason));
      set_private_data(reject.private_data, 0, response.param.conn);
      return queue(*id, 0, response);
    }
    case EventKind::disconnect_requested:
    case EventKind::disconnected:
      if (id->state != IdState::connect) return;
      id->state = IdState::disconnect;
      return tell(*id, CmEventType::disconnected, answered(event) ? 0 : -ETIMEDOUT);
    case EventKind::timewait_over: return tell(*id, CmEventType::timewait_exit, 0);
    case EventKind::service_answered: {
      const auto& reply = std::get<cm::ServiceIdReply>(event.message);
      if (reply.status != cm::ServiceIdStatus::valid) return tell(*id, CmEventType::unreachable, int(reply.status));
      auto response = make_event(CmEventType::established);
      auto& param = response.param.ud;
      set_private_data(reply.private_data, 0, param);
      param.qp_num = reply.qpn;
      param.qkey = id->qkey = reply.qkey;
      set_address_handle(device_of(*id), id->path->route, param.ah_attr);
      return queue(*id, 0, response);
    }
    case EventKind::request_received:
    case EventKind::service_requested: return;
  }
}

// The id that listens at this address, or else at a wildcard.
RdmaId* RdmaIds::listener_of(std::uint64_t service_id, const IpAddress& local) {
  RdmaId* wildcard = nullptr;
  for (auto& [number, id] : ids_) {
    if (id.state != IdState::listen || RdmaIds::service_id(id) != service_id) continue;
    if (id.source.same_host(local)) return &id;
    const bool takes = id.source.ipv6 == local.ipv6 || (id.source.ipv6 && !id.one_family.value_or(false));
    if (id.source.is_wildcard() && takes) wildcard = &id;
  }
  return wildcard;
}

void RdmaIds::on_request(const cm::Event& event) {
  const cm::Connection& connection = *manager_.find(event.id);
  const auto* connect = std::get_if<cm::ConnectRequest>(&event.message);
  const auto* resolve = std::get_if<cm::ServiceIdRequest>(&event.message);
  const std::uint8_t* data = connect != nullptr ? connect->private_data.data() : resolve->private_data.data();
  const auto header =
      AddressHeader::decode(std::span<const std::uint8_t, AddressHeader::kBytes>(data, AddressHeader::kBytes));
  RdmaId* listener = header ? listener_of(connection.service_id, header->destination) : nullptr;
  const auto type = connect != nullptr ? type_of(*connect) : std::optional(IdQpType::ud);
  const bool fits = listener != nullptr && listener->qp_type == type;
  // The address must belong to the device that received the request.
  const Device* device = header ? device_with(header->destination.bytes) : nullptr;
  if (!fits || device == nullptr || !device->has(connection.route.local)) return manager_.destroy(event.id);
  // As Linux: a full backlog drops a REQ, whose sender tries again, and refuses a SIDR_REQ.
  if (listener->backlog == 0) return connect != nullptr ? manager_.forget(event.id) : manager_.destroy(event.id);
  --listener->backlog;

  RdmaId& id = add(listener->owner, listener->channel, 0);
  id.port_space = listener->port_space;
  id.qp_type = *type;
  id.state = IdState::connect;
  id.source = header->destination;
  id.source.port = listener->source.port;
  id.destination = header->source;
  id.device = device->interface.device;
  id.traffic_class = listener->traffic_class;
  id.ack_timeout = listener->ack_timeout;
  id.accepted = false;
  id.listener = listener->number;
  id.connection = event.id;
  id.path = IdPath{connection.route, connection.path_mtu, device->rate, 0};
  by_connection_[event.id] = id.number;

  auto response = make_event(CmEventType::connect_request);
  response.uid = listener->uid;
  response.id = id.number;
  if (connect != nullptr) {
    auto& param = response.param.conn;
    set_private_data(connect->private_data, AddressHeader::kBytes, param);
    param.responder_resources = connect->initiator_depth;
    param.initiator_depth = connect->responder_resources;
    param.flow_control = connect->end_to_end_flow_control;
    param.retry_count = connect->retry_count;
    param.rnr_retry_count = connect->rnr_retry_count;
    param.srq = connect->srq;
    param.qp_num = connect->local_qpn;
    param.valid = 1;
    id.path->packet_life_time = cm::TimeCode(connection.ack_timeout - (connection.ack_timeout > 0));
    manager_.promise(event.id, kServiceTimeout);
  } else {
    set_private_data(resolve->private_data, AddressHeader::kBytes, response.param.ud);
  }
  events_[listener->channel].push_back({listener->number, 0, response});
  sink_.queued(listener->channel, listener->number);
}

// --- The programs' events.

void RdmaIds::tell(RdmaId& id, CmEventType event, int status) { queue(id, 0, make_event(event, status)); }

void RdmaIds::queue(RdmaId& id, std::uint32_t group, const rdma_ucm_event_resp& event) {
  // The program has no id yet for a request that it has not accepted.
  if (!id.accepted) return;
  QueuedEvent queued{id.number, group, event};
  if (group == 0) {
    queued.event.uid = id.uid;
    queued.event.id = id.number;
  }
  events_[id.channel].push_back(queued);
  sink_.queued(id.channel, group != 0 ? group : id.number);
}

void RdmaIds::drop_events(RdmaId& id) {
  std::erase_if(events_[id.channel], [&](const QueuedEvent& queued) { return queued.id == id.number; });
  sink_.forgotten(id.channel, id.number);
  for (const auto& [number, group] : id.groups) sink_.forgotten(id.channel, number);
}

int RdmaIds::next_event(std::uint32_t channel, rdma_ucm_event_resp& event) {
  auto& queue = events_[channel];
  if (queue.empty()) return EAGAIN;
  const QueuedEvent queued = queue.front();
  queue.pop_front();
  event = queued.event;
  RdmaId& id = ids_.at(queued.id);
  ++id.events_reported;
  if (const auto group = id.groups.find(queued.group); group != id.groups.end()) ++group->second.events_reported;
  if (CmEventType(event.event) == CmEventType::connect_request) {
    ++id.backlog;
    // The request's id no longer depends on its listener.
    ids_.at(event.id).listener = 0;
  }
  return 0;
}

}  // namespace rnicsim::host
