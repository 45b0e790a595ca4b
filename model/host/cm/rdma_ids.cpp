// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/rdma_ids.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/abi/command.h"
#include "model/host/cm/address_header.h"
#include "model/host/cm/event_types.h"

namespace rnicsim::host {
namespace {

// Values that Linux asks for and promises.
constexpr cm::TimeCode kResponseTimeout = 20;
constexpr std::uint8_t kMaxRetries = 15;
constexpr std::uint32_t kDefaultQkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr std::uint32_t kMaxBacklog = 1024;
constexpr std::uint8_t kMaxRetryCount = 7;  // 3 bits

cm::TransportService service_of(IdQpType type) {
  if (type == IdQpType::xrc_send || type == IdQpType::xrc_recv) return cm::TransportService::extended;
  return type == IdQpType::uc ? cm::TransportService::uc : cm::TransportService::rc;
}

bool is_known(IdQpType type) {
  switch (type) {
    case IdQpType::rc:
    case IdQpType::uc:
    case IdQpType::ud:
    case IdQpType::xrc_send:
    case IdQpType::xrc_recv: return true;
  }
  return false;
}

// The private data of a message: address header, then the program's data. nullopt: no room.
std::optional<std::vector<std::uint8_t>> with_addresses(const RdmaId& id, const rdma_ucm_conn_param& params,
                                                        std::size_t room) {
  if (params.private_data_len > room - AddressHeader::kBytes) return std::nullopt;
  const auto header = AddressHeader{id.source, *id.destination}.encode();
  std::vector<std::uint8_t> data(header.begin(), header.end());
  data.insert(data.end(), params.private_data, params.private_data + params.private_data_len);
  return data;
}

std::span<const std::uint8_t> private_data_of(const rdma_ucm_conn_param& params) {
  return {params.private_data, params.private_data_len};
}

}  // namespace

RdmaIds::RdmaIds(const Host& host, EventSink sink)
    : host_(host),
      sink_(std::move(sink)),
      manager_([&] {
        const Device& first = host.devices.front();
        const std::uint64_t guid = abi::node_guid_of(first.interface);
        cm::ConnectionManager::Params params{guid, first.ack_delay, std::uint32_t(guid * 0x9e3779b9u) | 0x40000000u};
        for (const Device& other : host.devices)
          for (const Gid& gid : gids_of(other.interface))
            if (&other != &first) params.other_guids[gid] = abi::node_guid_of(other.interface);
        return params;
      }()),
      random_(std::uint32_t(abi::node_guid_of(host.devices.front().interface))) {}

// --- Ids.

RdmaId* RdmaIds::find(std::uint32_t channel, std::uint32_t number) {
  const auto found = ids_.find(number);
  const bool known = found != ids_.end() && found->second.channel == channel && found->second.listener == 0;
  return known ? &found->second : nullptr;
}

RdmaId* RdmaIds::by_connection(cm::ConnectionId connection) {
  const auto found = by_connection_.find(connection);
  return found != by_connection_.end() ? &ids_.at(found->second) : nullptr;
}

RdmaId& RdmaIds::add(Pasid owner, std::uint32_t channel, std::uint64_t uid) {
  const std::uint32_t number = next_number_++;
  RdmaId& id = ids_[number];
  id.number = number;
  id.owner = owner;
  id.channel = channel;
  id.uid = uid;
  id.psn = random24();
  return id;
}

int RdmaIds::create(Pasid owner, std::uint32_t channel, const rdma_ucm_create_id& wanted, std::uint32_t& number) {
  IdQpType type{};
  switch (wanted.ps) {
    case RDMA_PS_TCP: type = IdQpType::rc; break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB: type = IdQpType::ud; break;
    case RDMA_PS_IB:
      type = IdQpType(wanted.qp_type);
      if (!is_known(type)) return EINVAL;
      break;
    default: return EINVAL;
  }
  RdmaId& id = add(owner, channel, wanted.uid);
  id.port_space = rdma_ucm_port_space(wanted.ps);
  id.qp_type = type;
  number = id.number;
  return 0;
}

std::uint64_t RdmaIds::service_id(const RdmaId& id) {
  const std::uint16_t port = id.state == IdState::listen ? id.source.port : id.destination->port;
  return std::uint64_t(id.port_space) << 16 | port;
}

void RdmaIds::drop_connection(RdmaId& id) {
  if (!id.connection) return;
  by_connection_.erase(*id.connection);
  manager_.destroy(*std::exchange(id.connection, std::nullopt));
}

std::uint32_t RdmaIds::destroy(RdmaId& id) {
  const std::uint32_t reported = id.events_reported;
  const std::uint32_t number = id.number;
  if (id.state == IdState::listen && --services_[service_id(id)] == 0) {
    services_.erase(service_id(id));
    manager_.unlisten(service_id(id));
  }
  drop_tasks(number);
  drop_events(id);
  // Requests that the program has not received yet.
  for (auto next = ids_.begin(); next != ids_.end();) {
    RdmaId& request = (next++)->second;
    if (request.listener != number) continue;
    drop_connection(request);
    ids_.erase(request.number);
  }
  drop_connection(id);
  ports_of(id).release(number);
  ids_.erase(number);
  return reported;
}

void RdmaIds::close_channel(std::uint32_t channel) {
  destroy_where([&](const RdmaId& id) { return id.channel == channel; });
  events_.erase(channel);
}

void RdmaIds::close_process(Pasid process) {
  destroy_where([&](const RdmaId& id) { return id.owner == process; });
}

// destroy() of a listener also erases requests, so the iteration continues by number.
void RdmaIds::destroy_where(const std::function<bool(const RdmaId&)>& doomed) {
  for (auto next = ids_.begin(); next != ids_.end();) {
    const std::uint32_t number = next->first;
    if (doomed(next->second)) destroy(next->second);
    next = ids_.upper_bound(number);
  }
}

int RdmaIds::migrate(Pasid owner, std::uint32_t from, std::uint32_t number, std::uint32_t to,
                     std::uint32_t& events_reported) {
  RdmaId* id = find(from, number);
  if (id == nullptr || id->owner != owner) return ENOENT;
  events_reported = id->events_reported;
  if (from == to) return 0;
  id->channel = to;
  for (auto& [other, request] : ids_)
    if (request.listener == number) request.channel = to;
  std::deque<QueuedEvent> kept;
  for (const QueuedEvent& event : std::exchange(events_[from], {})) {
    if (event.id != number) {
      kept.push_back(event);
      continue;
    }
    const std::uint32_t subject = event.group != 0 ? event.group : number;
    sink_.forgotten(from, subject);
    events_[to].push_back(event);
    sink_.queued(to, subject);
  }
  events_[from] = std::move(kept);
  return 0;
}

// --- Connections.

int RdmaIds::listen(RdmaId& id, std::uint32_t backlog) {
  if (id.state == IdState::idle)
    if (const int error = bind_wildcard(id, false)) return error;
  if (id.state != IdState::address_bound) return EINVAL;
  if (const int error = ports_of(id).listen(id.number)) return error;
  id.reuse_address = false;
  id.state = IdState::listen;
  id.backlog = backlog > 0 && backlog < kMaxBacklog ? backlog : kMaxBacklog;
  if (++services_[service_id(id)] == 1) manager_.listen(service_id(id));
  return 0;
}

int RdmaIds::connect(RdmaId& id, const rdma_ucm_conn_param& params) {
  if (id.state != IdState::route_resolved) return EINVAL;
  const bool datagram = id.qp_type == IdQpType::ud;
  const auto data = with_addresses(
      id, params, datagram ? sizeof(cm::ServiceIdRequest::private_data) : sizeof(cm::ConnectRequest::private_data));
  if (!data) return EINVAL;
  id.qpn = params.qp_num & 0xffffff;
  id.srq = params.srq != 0;
  drop_connection(id);
  id.connection = manager_.create();
  by_connection_[*id.connection] = id.number;
  id.state = IdState::connect;
  const std::uint64_t service = service_id(id);
  if (datagram)
    return manager_.resolve_service(*id.connection, {.service_id = service,
                                                     .route = id.path->route,
                                                     .response_timeout = kResponseTimeout,
                                                     .max_retries = kMaxRetries,
                                                     .private_data = *data});
  cm::ConnectParams request;
  request.service_id = service;
  request.path.local_lid = request.path.remote_lid = 0xffff;  // RoCE: permissive
  request.path.local_gid = id.path->route.local;
  request.path.remote_gid = id.path->route.remote;
  request.path.flow_label = id.path->route.flow_label;
  request.path.packet_rate = id.path->rate;
  request.path.traffic_class = id.path->route.traffic_class;
  request.path.hop_limit = id.path->route.hop_limit;
  request.path.service_level = id.path->route.service_level;
  request.packet_life_time = id.path->packet_life_time;
  request.path_mtu = id.path->mtu;
  request.transport = service_of(id.qp_type);
  request.qpn = id.qpn;
  request.starting_psn = id.psn;
  request.responder_resources = params.responder_resources;
  request.initiator_depth = params.initiator_depth;
  request.flow_control = params.flow_control != 0;
  request.retry_count = std::min(params.retry_count, kMaxRetryCount);
  request.rnr_retry_count = std::min(params.rnr_retry_count, kMaxRetryCount);
  request.srq = id.srq;
  request.response_timeout = kResponseTimeout;
  request.max_retries = kMaxRetries;
  request.private_data = *data;
  return manager_.connect(*id.connection, request);
}

int RdmaIds::accept(RdmaId& id, std::uint64_t uid, const rdma_ucm_conn_param& params) {
  if (id.state != IdState::connect || !id.connection) return EINVAL;
  int error = 0;
  if (id.qp_type == IdQpType::ud) {
    id.qkey = params.valid && params.qkey != 0 ? params.qkey : kDefaultQkey;
    id.qpn = params.qp_num & 0xffffff;
    error = manager_.answer_service(*id.connection, cm::ServiceIdStatus::valid, id.qpn, id.qkey,
                                    params.valid ? private_data_of(params) : std::span<const std::uint8_t>{});
  } else if (params.valid) {
    id.qpn = params.qp_num & 0xffffff;
    id.srq = params.srq != 0;
    error = manager_.reply(*id.connection, {.qpn = id.qpn,
                                            .starting_psn = id.psn,
                                            .responder_resources = params.responder_resources,
                                            .initiator_depth = params.initiator_depth,
                                            .flow_control = params.flow_control != 0,
                                            .rnr_retry_count = std::min(params.rnr_retry_count, kMaxRetryCount),
                                            .srq = id.srq,
                                            .private_data = private_data_of(params)});
  } else {
    error = manager_.ready(*id.connection);
  }
  if (error != 0) {
    manager_.reject(*id.connection, cm::RejectReason::consumer);
    return error;
  }
  if (params.valid) {
    id.uid = uid;
    id.accepted = true;
  }
  return 0;
}

int RdmaIds::reject(RdmaId& id, std::uint8_t reason, std::span<const std::uint8_t> private_data) {
  constexpr std::uint8_t kOptionNotSupported = 35;
  if (reason == 0) reason = std::uint8_t(cm::RejectReason::consumer);
  if (reason != std::uint8_t(cm::RejectReason::consumer) && reason != kOptionNotSupported) return EINVAL;
  if (!id.connection) return EINVAL;
  if (id.qp_type == IdQpType::ud)
    return manager_.answer_service(*id.connection, cm::ServiceIdStatus::rejected, 0, 0, private_data);
  return manager_.reject(*id.connection, cm::RejectReason(reason), private_data);
}

int RdmaIds::disconnect(RdmaId& id) {
  if (!id.connection) return EINVAL;
  if (manager_.disconnect(*id.connection) != 0) manager_.confirm_disconnect(*id.connection);
  return 0;
}

int RdmaIds::notify(RdmaId& id, std::uint32_t event) {
  constexpr std::uint32_t kCommunicationEstablished = 4;  // enum ibv_event_type
  if (!id.connection || event != kCommunicationEstablished) return EINVAL;
  const int error = manager_.establish(*id.connection);
  take_events();
  return error;
}

int RdmaIds::set_option(RdmaId& id, std::uint32_t level, std::uint32_t name, std::span<const std::byte> value) {
  if (level != RDMA_OPTION_ID) return ENOSYS;
  const auto number = [&](auto zero) -> std::optional<decltype(zero)> {
    if (value.size() != sizeof zero) return std::nullopt;
    std::memcpy(&zero, value.data(), sizeof zero);
    return zero;
  };
  switch (name) {
    case RDMA_OPTION_ID_TOS: {
      const auto tos = number(std::uint8_t{});
      if (!tos) return EINVAL;
      id.traffic_class = *tos;
      return 0;
    }
    case RDMA_OPTION_ID_REUSEADDR: {
      const auto reuse = number(std::int32_t{});
      if (!reuse || (id.state != IdState::idle && *reuse == 0) || id.state == IdState::listen) return EINVAL;
      id.reuse_address = *reuse != 0;
      ports_of(id).change(id.number, binding_of(id, id.source));
      return 0;
    }
    case RDMA_OPTION_ID_AFONLY: {
      const auto only = number(std::int32_t{});
      if (!only || (id.state != IdState::idle && id.state != IdState::address_bound)) return EINVAL;
      id.one_family = *only != 0;
      ports_of(id).change(id.number, binding_of(id, id.source));
      return 0;
    }
    case RDMA_OPTION_ID_ACK_TIMEOUT: {
      const auto timeout = number(std::uint8_t{});
      const bool waits = id.qp_type == IdQpType::rc || id.qp_type == IdQpType::xrc_send;
      if (!timeout || !waits || *timeout > 31) return EINVAL;
      id.ack_timeout = *timeout;
      return 0;
    }
    default: return ENOSYS;
  }
}

int RdmaIds::init_qp_attributes(RdmaId& id, std::uint32_t state, ib_uverbs_qp_attr& attributes) {
  using namespace abi::qp_attr;
  constexpr std::uint32_t kInit = 1, kRtr = 2, kRts = 3;
  if (!id.device || state < kInit || state > kRts) return EINVAL;
  attributes = {};
  attributes.qp_state = state;
  attributes.port_num = 1;
  const bool connected = id.qp_type != IdQpType::ud;
  if (!connected || !id.connection) {
    attributes.qp_attr_mask = kState | kPkeyIndex | kPort | (connected ? kAccessFlags : kQkey);
    if (!connected) attributes.qkey = id.qkey != 0 ? id.qkey : kDefaultQkey;
    return 0;
  }
  const cm::Connection* connection = manager_.find(*id.connection);
  const bool usable =
      connection != nullptr && connection->state != cm::State::idle && connection->state != cm::State::timewait;
  if (!usable || (state != kInit && connection->state == cm::State::request_sent)) return EINVAL;
  const bool asks = id.qp_type == IdQpType::rc || id.qp_type == IdQpType::xrc_send;
  const bool answers = id.qp_type == IdQpType::rc || id.qp_type == IdQpType::xrc_recv;
  if (state == kInit) {
    attributes.qp_attr_mask = kState | kAccessFlags | kPkeyIndex | kPort;
    attributes.qp_access_flags = abi::access::kRemoteWrite;
    if (connection->responder_resources != 0)
      attributes.qp_access_flags |= abi::access::kRemoteRead | abi::access::kRemoteAtomic;
  } else if (state == kRtr) {
    attributes.qp_attr_mask =
        kState | kPath | kPathMtu | kRemoteQpn | kReceivePsn | (answers ? kMaxDestRdAtomic | kMinRnrTimer : 0);
    set_address_handle(device_of(id), connection->route, attributes.ah_attr);
    attributes.path_mtu = connection->path_mtu;
    attributes.dest_qp_num = connection->peer.qpn;
    attributes.rq_psn = id.psn;
    attributes.max_dest_rd_atomic = connection->responder_resources;
  } else {
    attributes.qp_attr_mask =
        kState | kSendPsn | (asks || answers ? kTimeout : 0) | (asks ? kRetryCount | kRnrRetry | kMaxRdAtomic : 0);
    attributes.sq_psn = connection->send_psn;
    attributes.timeout = id.ack_timeout.value_or(connection->ack_timeout);
    attributes.retry_cnt = connection->retry_count;
    attributes.rnr_retry = connection->rnr_retry_count;
    attributes.max_rd_atomic = connection->initiator_depth;
  }
  return 0;
}

void RdmaIds::set_address_handle(const Device& device, const cm::Route& route, ib_uverbs_ah_attr& handle) {
  handle = {};
  std::ranges::copy(route.remote, handle.grh.dgid);
  handle.grh.flow_label = route.flow_label;
  handle.grh.sgid_index = std::uint8_t(device.gid_index(route.local));
  handle.grh.hop_limit = route.hop_limit;
  handle.grh.traffic_class = route.traffic_class;
  handle.sl = route.service_level;
  handle.is_global = 1;
  handle.port_num = 1;
}

// --- Groups.

int RdmaIds::join(RdmaId& id, std::uint64_t uid, const IpAddress& address, std::uint16_t flags, std::uint32_t& number) {
  if (flags != RDMA_MC_JOIN_FLAG_FULLMEMBER && flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return EINVAL;
  if (id.qp_type != IdQpType::ud || !id.device || !address.is_group() ||
      (id.state != IdState::address_bound && id.state != IdState::address_resolved))
    return EINVAL;
  number = next_number_++;
  id.groups[number] = {uid, address, address.bytes, 0};
  later(host_.resolve_known, {id.number, Step::group, 0, number});
  return 0;
}

void RdmaIds::finish_group(RdmaId& id, std::uint32_t number) {
  const auto found = id.groups.find(number);
  if (found == id.groups.end()) return;
  rdma_ucm_event_resp event{};
  event.uid = found->second.uid;
  event.id = number;
  event.event = std::uint32_t(CmEventType::multicast_join);
  event.param.ud.qp_num = 0xffffff;
  event.param.ud.qkey = id.qkey != 0 ? id.qkey : kDefaultQkey;
  set_address_handle(device_of(id),
                     {.local = id.source.bytes,
                      .remote = found->second.gid,
                      .traffic_class = id.traffic_class,
                      .hop_limit = kHopLimit,
                      .service_level = std::uint8_t(id.traffic_class >> 5)},
                     event.param.ud.ah_attr);
  queue(id, number, event);
}

int RdmaIds::leave(std::uint32_t channel, std::uint32_t number, std::uint32_t& events_reported) {
  for (auto& [other, id] : ids_) {
    const auto found = id.groups.find(number);
    if (found == id.groups.end()) continue;
    if (id.channel != channel) return ENOENT;
    events_reported = found->second.events_reported;
    std::erase_if(events_[channel], [&](const QueuedEvent& queued) { return queued.group == number; });
    sink_.forgotten(channel, number);
    id.groups.erase(found);
    return 0;
  }
  return ENOENT;
}

}  // namespace rnicsim::host
