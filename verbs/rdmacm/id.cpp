// SPDX-License-Identifier: Apache-2.0
// Ids: creation, destruction, migration between channels.
#include "verbs/rdmacm/id.h"

#include <utility>

#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/queue_lock.h"

namespace rnicsim::rdmacm {

Id::Id(EventChannel& events, void* user_context, rdma_port_space port_space, ibv_qp_type type)
    : rdma_cm_id{}, port(events.port) {
  channel = &events;
  context = user_context;
  ps = port_space;
  qp_type = type;
}

Id::~Id() {
  if (device != nullptr) release_device(port, *device);
}

namespace {

// Removes records of events that the kernel no longer has on the id's channel, for the id and its multicast groups.
void forget_events(Id& id) {
  std::vector<std::uint32_t> numbers{id.handle};
  {
    const std::lock_guard guard(id.groups_mutex);
    for (const auto& group : id.groups) numbers.push_back(group->handle);
  }
  for (const std::uint32_t number : numbers) id.events().forget(number);
}

}  // namespace

int create_id(rdma_event_channel* channel, void* context, rdma_port_space port_space, ibv_qp_type type, Id*& created) {
  std::unique_ptr<EventChannel> own;
  if (channel == nullptr) {
    if (const int error = open_channel(own)) return error;
    channel = own.get();
  }
  auto id = std::make_unique<Id>(EventChannel::of(channel), context, port_space, type);
  id->own_channel = std::move(own);
  const kernel::rdma_ucm_create_id command{.uid = reinterpret_cast<std::uintptr_t>(id.get()),
                                           .response = 0,
                                           .ps = std::uint16_t(port_space),
                                           .qp_type = std::uint8_t(type),
                                           .reserved = {}};
  kernel::rdma_ucm_create_id_resp response{};
  if (const int error = id->events().ask(kernel::RDMA_USER_CM_CMD_CREATE_ID, command, response)) return error;
  id->handle = response.id;
  created = id.release();
  return 0;
}

int destroy_id(Id& id) {
  const kernel::rdma_ucm_destroy_id command{.response = 0, .id = id.handle, .reserved = 0};
  kernel::rdma_ucm_destroy_id_resp response{};
  if (const int error = id.events().ask(kernel::RDMA_USER_CM_CMD_DESTROY_ID, command, response)) return error;
  forget_events(id);
  acknowledge_last(id);
  wait_acknowledged(id.port, id.events_completed, response.events_reported, "rdma_destroy_id");
  delete &id;
  return 0;
}

int migrate_id(Id& id, rdma_event_channel* channel) {
  if (channel == nullptr && id.synchronous()) return EINVAL;
  std::unique_ptr<EventChannel> own;
  if (channel == nullptr) {
    if (const int error = open_channel(own)) return error;
    channel = own.get();
  }
  const kernel::rdma_ucm_migrate_id command{.response = 0, .id = id.handle, .fd = id.events().pipe.number()};
  kernel::rdma_ucm_migrate_resp response{};
  EventChannel& target = EventChannel::of(channel);
  if (const int error = target.ask(kernel::RDMA_USER_CM_CMD_MIGRATE_ID, command, response)) return error;
  if (channel != id.channel) forget_events(id);
  if (id.synchronous()) acknowledge_last(id);
  id.channel = channel;
  id.own_channel = std::move(own);
  wait_acknowledged(id.port, id.events_completed, response.events_reported, "rdma_migrate_id");
  return 0;
}

// Waits through the port and not on a condition: the acknowledging thread may be a software thread of the simulator.
void wait_acknowledged(CpuTime& cpu, const std::atomic<std::uint32_t>& completed, std::uint32_t reported,
                       const char* function) {
  for (std::uint32_t acknowledged; (acknowledged = completed.load(std::memory_order_acquire)) < reported;)
    cpu.wait_acknowledged(&completed, reported - acknowledged, function);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps) {
  return guarded_minus_one([&] {
    const ibv_qp_type type = ps == RDMA_PS_IPOIB || ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    Id* created = nullptr;
    if (const int error = create_id(channel, context, ps, type, created)) return error;
    *id = created;
    return 0;
  });
}

int rdma_destroy_id(rdma_cm_id* id) {
  return guarded_minus_one([&] { return destroy_id(Id::of(id)); });
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  return guarded_minus_one([&] { return migrate_id(Id::of(id), channel); });
}

}  // extern "C"
