// SPDX-License-Identifier: Apache-2.0
// Events: read from the kernel, converted for the program, acknowledged.
#include <infiniband/verbs.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

extern "C" {
void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from);
}

namespace rnicsim::rdmacm {

namespace {

struct Event : rdma_cm_event {
  Event() : rdma_cm_event{} {}

  std::array<std::uint8_t, RDMA_MAX_PRIVATE_DATA> private_data{};
  Id* owner = nullptr;     // id that counts the acknowledgement; for a CONNECT_REQUEST the listener
  Group* group = nullptr;  // the same for a multicast event

  static Event& of(rdma_cm_event& event) { return static_cast<Event&>(event); }
};

void count_acknowledged(CpuTime& cpu, std::atomic<std::uint32_t>& completed) {
  completed.fetch_add(1, std::memory_order_release);
  cpu.acknowledged(&completed);
}

// Acknowledges an event that the program does not get.
bool discard(Id& owner) {
  count_acknowledged(owner.port, owner.events_completed);
  return false;
}

template <class To, class From>
void take_private_data(Event& event, To& to, const From& from) {
  to.private_data_len = from.private_data_len;
  if (from.private_data_len == 0) return;
  std::memcpy(event.private_data.data(), from.private_data, from.private_data_len);
  to.private_data = event.private_data.data();
}

void take_connection(Event& event, const kernel::rdma_ucm_conn_param& from) {
  rdma_conn_param& to = event.param.conn;
  take_private_data(event, to, from);
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.flow_control = from.flow_control;
  to.retry_count = from.retry_count;
  to.rnr_retry_count = from.rnr_retry_count;
  to.srq = from.srq;
  to.qp_num = from.qp_num;
}

void take_datagram(Event& event, const kernel::rdma_ucm_ud_param& from) {
  rdma_ud_param& to = event.param.ud;
  take_private_data(event, to, from);
  ib_uverbs_ah_attr path = from.ah_attr;
  ibv_copy_ah_attr_from_kern(&to.ah_attr, &path);
  to.qp_num = from.qp_num;
  to.qkey = from.qkey;
}

void take_parameters(Event& event, const Id& id, const kernel::rdma_ucm_event_resp& raw) {
  if (id.datagram()) {
    take_datagram(event, raw.param.ud);
  } else {
    take_connection(event, raw.param.conn);
  }
}

void fail(Event& event, rdma_cm_event_type instead, int error) {
  event.event = instead;
  event.status = -error;
}

void address_resolved(Event& event, Id& id) {
  int error = query_address(id);
  if (error == 0) error = query_gids(id);
  if (error != 0) fail(event, RDMA_CM_EVENT_ADDR_ERROR, error);
}

void route_resolved(Event& event, Id& id) {
  if (const int error = query_paths(id)) fail(event, RDMA_CM_EVENT_ROUTE_ERROR, error);
}

int query_request(Id& id) {
  if (const int error = query_address(id)) return error;
  if (const int error = query_gids(id)) return error;
  return query_paths(id);
}

// Makes the id of a requested connection. It is synchronous if the listener is.
int make_connection(const Id& listener, const kernel::rdma_ucm_event_resp& raw, Id*& made) {
  auto id = std::make_unique<Id>(listener.events(), listener.context, listener.ps, listener.qp_type);
  id->handle = raw.id;
  id->remote_ece = raw.ece;
  if (!listener.datagram()) {
    id->initiator_depth = raw.param.conn.initiator_depth;
    id->responder_resources = raw.param.conn.responder_resources;
  }
  int error = listener.synchronous() ? migrate_id(*id, nullptr) : 0;
  if (error == 0) error = query_request(*id);
  if (error != 0) {
    destroy_id(*id.release());
    return error;
  }
  made = id.release();
  return 0;
}

bool connection_requested(Event& event, Id& listener, const kernel::rdma_ucm_event_resp& raw) {
  Id* id = nullptr;
  if (make_connection(listener, raw, id) != 0) return discard(listener);
  event.listen_id = &listener;
  event.id = id;
  return true;
}

// A program that has a QP of its own answers the REP itself.
void connection_answered(Event& event, Id& id, const kernel::rdma_ucm_event_resp& raw) {
  id.remote_ece = raw.ece;
  if (id.qp == nullptr) return;
  const int error = finish_connection(id);
  if (error == 0) {
    event.event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  id.connect_failed = true;
  reject(id, nullptr, 0, 0);
  fail(event, RDMA_CM_EVENT_CONNECT_ERROR, error);
}

int attach(Group& group) {
  ibv_qp* qp = group.id->qp;
  if (qp == nullptr || group.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) return 0;
  const int error = ibv_attach_mcast(qp, &group.gid, 0);
  group.attached = error == 0;
  return error;
}

// For multicast events the kernel's uid is the Group.
void of_group(Event& event, const kernel::rdma_ucm_event_resp& raw) {
  Group& group = *reinterpret_cast<Group*>(raw.uid);
  event.group = &group;
  event.owner = group.id;
  event.id = group.id;
  if (event.event == RDMA_CM_EVENT_MULTICAST_JOIN) {
    take_datagram(event, raw.param.ud);
    group.gid = event.param.ud.ah_attr.grh.dgid;
    if (const int error = attach(group)) fail(event, RDMA_CM_EVENT_MULTICAST_ERROR, error);
  }
  event.param.ud.private_data = group.context;
}

// False: the program does not get this event.
bool deliver(Event& event, const kernel::rdma_ucm_event_resp& raw) {
  if (raw.uid == 0) return false;  // the connection has no id yet
  event.event = rdma_cm_event_type(raw.event);
  event.status = int(raw.status);
  if (event.event == RDMA_CM_EVENT_MULTICAST_JOIN || event.event == RDMA_CM_EVENT_MULTICAST_ERROR) {
    of_group(event, raw);
    return true;
  }
  Id& id = *reinterpret_cast<Id*>(raw.uid);
  event.owner = &id;
  event.id = &id;
  take_parameters(event, id, raw);
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: address_resolved(event, id); break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: route_resolved(event, id); break;
    case RDMA_CM_EVENT_CONNECT_REQUEST: return connection_requested(event, id, raw);
    case RDMA_CM_EVENT_CONNECT_RESPONSE: connection_answered(event, id, raw); break;
    case RDMA_CM_EVENT_REJECTED:
      if (id.connect_failed) return discard(id);
      to_error(id);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      if (id.connect_failed) return discard(id);
      break;
    default: break;
  }
  return true;
}

}  // namespace

int next_event(EventChannel& channel, rdma_cm_event*& taken) {
  for (;;) {
    abi::EventRecord record;
    if (const int error = channel.pipe.next(record)) {
      channel.port.charge(abi::CpuCost::system_call);
      return error;
    }
    const kernel::rdma_ucm_get_event command{.response = 0};
    kernel::rdma_ucm_event_resp raw{};
    const int error = channel.ask(kernel::RDMA_USER_CM_CMD_GET_EVENT, command, raw);
    if (error == EAGAIN) continue;  // the id was destroyed or moved to another channel
    if (error != 0) return error;
    auto event = std::make_unique<Event>();
    if (deliver(*event, raw)) {
      taken = event.release();
      return 0;
    }
  }
}

void acknowledge(rdma_cm_event& acknowledged) {
  const std::unique_ptr<Event> event(&Event::of(acknowledged));
  // The group first: a thread in rdma_leave_multicast frees the group, a thread in rdma_destroy_id both.
  CpuTime& cpu = event->owner->port;
  if (event->group != nullptr) count_acknowledged(cpu, event->group->events_completed);
  count_acknowledged(cpu, event->owner->events_completed);
}

void acknowledge_last(Id& id) {
  if (id.event != nullptr) acknowledge(*std::exchange(id.event, nullptr));
}

// For REJECTED the status is the peer's reason. Other values are negative errnos of the kernel, or a status of a SIDR
// reply.
int outcome(const rdma_cm_event& event) {
  if (event.status == 0) return 0;
  return event.event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : std::abs(event.status);
}

int complete(Id& id) {
  if (!id.synchronous()) return 0;
  acknowledge_last(id);
  if (const int error = next_event(id.events(), id.event)) return error;
  return outcome(*id.event);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return guarded_minus_one([&] {
    if (channel == nullptr || event == nullptr) return EINVAL;
    return next_event(EventChannel::of(channel), *event);
  });
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  return guarded_minus_one([&] {
    if (event == nullptr) return EINVAL;
    acknowledge(*event);
    return 0;
  });
}

const char* rdma_event_str(rdma_cm_event_type event) {
  static constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  static_assert(std::size(kNames) == RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);
  return std::size_t(event) < std::size(kNames) ? kNames[event] : "UNKNOWN EVENT";
}

}  // extern "C"
