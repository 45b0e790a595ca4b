// SPDX-License-Identifier: Apache-2.0
// An rdma_cm_id, and functions shared by the sources of this folder. Functions return 0 or an errno.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "verbs/rdmacm/devices.h"
#include "verbs/rdmacm/event_channel.h"

namespace rnicsim::rdmacm {

struct Id;

// A multicast group that an id joined or is joining.
struct Group {
  Id* id = nullptr;
  void* context = nullptr;
  sockaddr_storage address{};
  std::uint32_t handle = 0;  // the kernel's
  std::uint16_t join_flags = 0;
  bool attached = false;  // the QP is attached to the group
  ibv_gid gid{};
  std::atomic<std::uint32_t> events_completed{0};
};

struct Id : rdma_cm_id {
  Id(EventChannel& events, void* user_context, rdma_port_space port_space, ibv_qp_type type);
  ~Id();
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;

  EventChannel& events() const { return EventChannel::of(channel); }
  bool synchronous() const { return own_channel != nullptr; }
  bool datagram() const { return qp_type == IBV_QPT_UD; }

  DevicePort& port;
  std::uint32_t handle = 0;                   // the kernel's
  std::unique_ptr<EventChannel> own_channel;  // set: the id is synchronous
  Device* device = nullptr;                   // set once the id is bound to a device
  std::atomic<std::uint32_t> events_completed{0};
  bool connect_failed = false;  // the program got CONNECT_ERROR; later ends are not reported
  std::uint8_t initiator_depth = 0;
  std::uint8_t responder_resources = 0;
  std::vector<ibv_sa_path_rec> paths;                     // memory of route.path_rec
  std::vector<std::byte> connect_data;                    // for an endpoint: sent before the program's private data
  std::optional<ibv_qp_init_attr> connection_attributes;  // for a passive endpoint: attributes of its connections' QPs
  kernel::rdma_ucm_ece local_ece{};
  kernel::rdma_ucm_ece remote_ece{};
  std::mutex groups_mutex;  // never held during a call that may wait
  std::list<std::unique_ptr<Group>> groups;

  static Id& of(rdma_cm_id* id) { return *static_cast<Id*>(id); }
};

// --- id.cpp. An id created without a channel is synchronous.
int create_id(rdma_event_channel* channel, void* context, rdma_port_space port_space, ibv_qp_type type, Id*& created);
int destroy_id(Id& id);
int migrate_id(Id& id, rdma_event_channel* channel);
// Waits until the program has acknowledged all `reported` events.
void wait_acknowledged(CpuTime& cpu, const std::atomic<std::uint32_t>& completed, std::uint32_t reported,
                       const char* function);

// --- address.cpp
socklen_t address_size(const sockaddr* address);  // 0: unsupported address family
int bind_address(Id& id, const sockaddr* address);
int resolve_address(Id& id, const sockaddr* source, const sockaddr* destination, int timeout_ms);
int resolve_route(Id& id, int timeout_ms);
int query_address(Id& id);
int query_gids(Id& id);
int query_paths(Id& id);

// --- events.cpp
int next_event(EventChannel& channel, rdma_cm_event*& event);
void acknowledge(rdma_cm_event& event);
void acknowledge_last(Id& id);  // only for a synchronous id
// For a synchronous id: waits for the event that ends the operation, and returns its outcome. For others: returns 0.
int complete(Id& id);
int outcome(const rdma_cm_event& event);

// --- qp_states.cpp. Without a QP, ready_to_receive(), ready_to_send() and to_error() do nothing.
int init_qp_attributes(Id& id, ibv_qp_attr& attributes, int& mask);
int make_usable(Id& id, ibv_qp& qp);  // for a new QP
// RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH mean: the value that the kernel returns.
int ready_to_receive(Id& id, std::uint8_t responder_resources);
int ready_to_send(Id& id, std::uint8_t initiator_depth);
int to_error(Id& id);

// --- qp.cpp, srq.cpp, completion_queues.cpp
int create_qp(Id& id, ibv_qp_init_attr_ex& attributes);
int create_qp(Id& id, ibv_pd* pd, ibv_qp_init_attr& attributes);
void destroy_qp(Id& id);
void destroy_srq(Id& id);
int create_send_cq(Id& id, std::uint32_t size);
int create_receive_cq(Id& id, std::uint32_t size);
void destroy_send_cq(Id& id);
void destroy_receive_cq(Id& id);
void destroy_cqs(Id& id);

// --- connect.cpp. finish_connection() completes the active side after a REP.
int finish_connection(Id& id);
int reject(Id& id, const void* private_data, std::uint8_t bytes, std::uint8_t reason);

// --- options.cpp
int set_option(Id& id, int level, int name, const void* value, std::size_t bytes);

// --- ece.cpp. For a new QP; without effect if the device does not support ECE.
int exchange_ece(Id& id, ibv_qp& qp);

}  // namespace rnicsim::rdmacm
