// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_rdma.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr

namespace {

constexpr int kRejectedByConsumer = 28;

std::recursive_mutex everything;
using Lock = std::scoped_lock<std::recursive_mutex>;

int made = 0;
std::uint64_t sent = 0;
std::uint64_t polled_in_vain = 0;

// A descriptor that becomes readable once per tell().
int make_events() { return ::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC); }
void tell(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}
// Waits for one event; false: failed with errno (EAGAIN if the descriptor is non-blocking).
bool await(int fd) {
  std::uint64_t one;
  return ::read(fd, &one, sizeof one) == sizeof one;
}

struct Event : rdma_cm_event {
  std::array<std::byte, 256> data;
};
struct EventChannel : rdma_event_channel {
  std::deque<Event*> events;
};

struct CompletionChannel : ibv_comp_channel {
  std::deque<ibv_cq*> events;
};
struct Cq : ibv_cq {
  std::deque<ibv_wc> completions;
  bool armed = false;
};

struct Write {
  ibv_send_wr request;
  std::vector<std::byte> bytes;
};
struct Qp : ibv_qp {
  struct Receive {
    std::uint64_t id;
    std::vector<ibv_sge> pieces;
  };
  Qp* peer = nullptr;
  bool stopped = false;
  std::deque<Receive> receives;
  std::deque<Write> waiting;  // writes of the peer that wait for a receive
};
std::map<std::uint32_t, Qp*> queue_pairs;
std::uint32_t next_number = 16;

struct Id : rdma_cm_id {
  Id* peer = nullptr;
  bool listening = false;
  bool connected = false;
};
std::vector<Id*> ids;
std::uint16_t next_port = 40000;

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}
std::size_t length_of(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

void complete(ibv_cq* to, const ibv_wc& completion) {
  auto& cq = *static_cast<Cq*>(to);
  cq.completions.push_back(completion);
  if (!cq.armed) return;
  cq.armed = false;
  static_cast<CompletionChannel*>(cq.channel)->events.push_back(&cq);
  tell(cq.channel->fd);
}

void send_done(Qp& qp, const ibv_send_wr& request, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc completion{};
  completion.wr_id = request.wr_id;
  completion.status = status;
  complete(qp.send_cq, completion);
}

void receive_done(Qp& qp, const Qp::Receive& receive, ibv_wc completion) {
  completion.wr_id = receive.id;
  complete(qp.recv_cq, completion);
}

// Executes an RDMA WRITE at its target; false: there is no receive for the immediate data.
bool place(Qp& at, const Write& write) {
  const bool immediate = write.request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (immediate && at.receives.empty()) return false;
  std::ranges::copy(write.bytes, reinterpret_cast<std::byte*>(write.request.wr.rdma.remote_addr));
  if (!immediate) return true;
  ibv_wc completion{};
  completion.wc_flags = IBV_WC_WITH_IMM;
  completion.imm_data = write.request.imm_data;
  const Qp::Receive receive = at.receives.front();
  at.receives.pop_front();
  receive_done(at, receive, completion);
  return true;
}

void place_waiting(Qp& at) {
  while (!at.waiting.empty() && place(at, at.waiting.front())) {
    if (at.peer != nullptr) send_done(*at.peer, at.waiting.front().request);
    at.waiting.pop_front();
  }
}

void send_datagram(Qp& from, const Write& write) {
  send_done(from, write.request);
  const auto found = queue_pairs.find(write.request.wr.ud.remote_qpn);
  if (found == queue_pairs.end() || found->second->receives.empty()) return;
  Qp& to = *found->second;
  const Qp::Receive receive = to.receives.front();
  to.receives.pop_front();
  std::vector<std::byte> packet(sizeof(ibv_grh));
  packet.insert(packet.end(), write.bytes.begin(), write.bytes.end());
  std::size_t done = 0;
  for (const ibv_sge& piece : receive.pieces) {
    const std::size_t part = std::min<std::size_t>(piece.length, packet.size() - done);
    std::memcpy(reinterpret_cast<void*>(piece.addr), packet.data() + done, part);
    done += part;
  }
  ibv_wc completion{};
  completion.byte_len = std::uint32_t(packet.size());
  receive_done(to, receive, completion);
}

int post_send(ibv_qp* on, ibv_send_wr* request, ibv_send_wr**) {
  const Lock lock(everything);
  auto& qp = *static_cast<Qp*>(on);
  ++sent;
  Write write{*request, {}};
  for (int i = 0; i < request->num_sge; ++i) {
    const auto* from = reinterpret_cast<const std::byte*>(request->sg_list[i].addr);
    write.bytes.insert(write.bytes.end(), from, from + request->sg_list[i].length);
  }
  if (qp.qp_type == IBV_QPT_UD) {
    send_datagram(qp, write);
  } else if (qp.stopped) {
    send_done(qp, *request, IBV_WC_WR_FLUSH_ERR);
  } else if (qp.peer == nullptr || qp.peer->stopped) {
    send_done(qp, *request, IBV_WC_RETRY_EXC_ERR);
  } else if (!qp.peer->waiting.empty() || !place(*qp.peer, write)) {
    qp.peer->waiting.push_back(write);
  } else {
    send_done(qp, *request);
  }
  return 0;
}

int post_receive(ibv_qp* on, ibv_recv_wr* request, ibv_recv_wr**) {
  const Lock lock(everything);
  auto& qp = *static_cast<Qp*>(on);
  qp.receives.push_back({request->wr_id, {request->sg_list, request->sg_list + request->num_sge}});
  place_waiting(qp);
  return 0;
}

int poll_cq(ibv_cq* from, int most, ibv_wc* completions) {
  const Lock lock(everything);
  auto& cq = *static_cast<Cq*>(from);
  int count = 0;
  for (; count < most && !cq.completions.empty(); ++count) {
    completions[count] = cq.completions.front();
    cq.completions.pop_front();
  }
  if (count == 0) ++polled_in_vain;
  return count;
}

int request_notification(ibv_cq* of, int) {
  const Lock lock(everything);
  static_cast<Cq*>(of)->armed = true;
  return 0;
}

ibv_context& device() {
  static ibv_context only = [] {
    ibv_context context{};
    context.ops.post_send = post_send;
    context.ops.post_recv = post_receive;
    context.ops.poll_cq = poll_cq;
    context.ops.req_notify_cq = request_notification;
    return context;
  }();
  return only;
}
ibv_pd& domain() {
  static ibv_pd pd{&device(), 0};
  return pd;
}

void notify(Id& id, rdma_cm_event_type type, int status = 0, const rdma_conn_param* parameters = nullptr,
            Id* listener = nullptr) {
  auto* event = new Event{};
  event->id = &id;
  event->listen_id = listener;
  event->event = type;
  event->status = status;
  if (parameters != nullptr) {
    event->param.conn = *parameters;
    std::memcpy(event->data.data(), parameters->private_data, parameters->private_data_len);
    event->param.conn.private_data = event->data.data();
  }
  auto& channel = *static_cast<EventChannel*>((listener != nullptr ? *listener : id).channel);
  channel.events.push_back(event);
  tell(channel.fd);
}

// Fills in an address of the host, with a port.
void give_address(Id& id) {
  auto& address = reinterpret_cast<sockaddr_in&>(id.route.addr.src_storage);
  if (address.sin_family == 0) address.sin_family = AF_INET;
  if (address.sin_family == AF_INET && address.sin_addr.s_addr == 0) address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (address.sin_port == 0) address.sin_port = htons(next_port++);
}

}  // namespace

namespace rnicsim::fake_rdma {
int objects() {
  const Lock lock(everything);
  return made;
}
std::uint64_t vain_polls() {
  const Lock lock(everything);
  return polled_in_vain;
}
std::uint64_t sends() {
  const Lock lock(everything);
  return sent;
}
}  // namespace rnicsim::fake_rdma

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  auto* channel = new EventChannel;
  channel->fd = make_events();
  const Lock lock(everything);
  ++made;
  return channel;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  const Lock lock(everything);
  ::close(channel->fd);
  auto* own = static_cast<EventChannel*>(channel);
  for (Event* event : own->events) delete event;
  delete own;
  --made;
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  if (!await(channel->fd)) return -1;
  const Lock lock(everything);
  auto& events = static_cast<EventChannel*>(channel)->events;
  *event = events.front();
  events.pop_front();
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete static_cast<Event*>(event);
  return 0;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** created, void* context, rdma_port_space space) {
  const Lock lock(everything);
  auto* id = new Id{};
  id->channel = channel;
  id->context = context;
  id->ps = space;
  ids.push_back(id);
  ++made;
  *created = id;
  return 0;
}
int rdma_destroy_id(rdma_cm_id* destroyed) {
  const Lock lock(everything);
  auto* id = static_cast<Id*>(destroyed);
  if (id->peer != nullptr) {
    if (id->connected) notify(*id->peer, RDMA_CM_EVENT_DISCONNECTED);
    if (!id->connected) notify(*id->peer, RDMA_CM_EVENT_REJECTED, kRejectedByConsumer);
    id->peer->peer = nullptr;
  }
  std::erase(ids, id);
  delete id;
  --made;
  return 0;
}
int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  const Lock lock(everything);
  id->channel = channel;
  return 0;
}
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  const Lock lock(everything);
  std::memcpy(&id->route.addr.src_storage, address, length_of(address));
  const std::uint16_t port = port_of(id->route.addr.src_storage);
  const bool used =
      port != 0 && std::ranges::any_of(ids, [&](const Id* other) {
        return other != id && other->ps == id->ps && other->listening && port_of(other->route.addr.src_storage) == port;
      });
  if (used) {
    errno = EADDRINUSE;
    return -1;
  }
  give_address(*static_cast<Id*>(id));
  id->verbs = &device();
  id->port_num = 1;
  return 0;
}
int rdma_listen(rdma_cm_id* id, int) {
  const Lock lock(everything);
  static_cast<Id*>(id)->listening = true;
  return 0;
}
int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination, int) {
  const Lock lock(everything);
  if (source != nullptr) std::memcpy(&id->route.addr.src_storage, source, length_of(source));
  std::memcpy(&id->route.addr.dst_storage, destination, length_of(destination));
  give_address(*static_cast<Id*>(id));
  id->verbs = &device();
  id->port_num = 1;
  notify(*static_cast<Id*>(id), RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}
int rdma_resolve_route(rdma_cm_id* id, int) {
  const Lock lock(everything);
  notify(*static_cast<Id*>(id), RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}
int rdma_connect(rdma_cm_id* from, rdma_conn_param* parameters) {
  const Lock lock(everything);
  auto& id = *static_cast<Id*>(from);
  const auto listener = std::ranges::find_if(ids, [&](const Id* other) {
    return other->listening && port_of(other->route.addr.src_storage) == port_of(id.route.addr.dst_storage);
  });
  if (listener == ids.end()) {
    notify(id, RDMA_CM_EVENT_REJECTED, kRejectedByConsumer);
    return 0;
  }
  auto* request = new Id{};
  request->channel = (*listener)->channel;
  request->ps = id.ps;
  request->verbs = &device();
  request->port_num = 1;
  request->route.addr.src_storage = id.route.addr.dst_storage;
  request->route.addr.dst_storage = id.route.addr.src_storage;
  request->peer = &id;
  id.peer = request;
  Id* const listening = *listener;
  ids.push_back(request);
  ++made;
  notify(*request, RDMA_CM_EVENT_CONNECT_REQUEST, 0, parameters, listening);
  return 0;
}
int rdma_accept(rdma_cm_id* from, rdma_conn_param* parameters) {
  const Lock lock(everything);
  auto& id = *static_cast<Id*>(from);
  if (id.peer == nullptr) {
    errno = ENOTCONN;
    return -1;
  }
  auto& here = *static_cast<Qp*>(id.qp);
  auto& there = *static_cast<Qp*>(id.peer->qp);
  here.peer = &there;
  there.peer = &here;
  id.connected = id.peer->connected = true;
  notify(*id.peer, RDMA_CM_EVENT_ESTABLISHED, 0, parameters);
  notify(id, RDMA_CM_EVENT_ESTABLISHED);
  return 0;
}
int rdma_set_option(rdma_cm_id*, int, int, void*, size_t) { return 0; }

int rdma_create_qp(rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr* attributes) {
  const Lock lock(everything);
  auto* qp = new Qp{};
  qp->context = &device();
  qp->pd = &domain();
  qp->send_cq = attributes->send_cq;
  qp->recv_cq = attributes->recv_cq;
  qp->qp_type = attributes->qp_type;
  qp->qp_num = next_number++;
  queue_pairs[qp->qp_num] = qp;
  id->qp = qp;
  id->pd = qp->pd;
  ++made;
  return 0;
}
void rdma_destroy_qp(rdma_cm_id* id) {
  const Lock lock(everything);
  auto* qp = static_cast<Qp*>(id->qp);
  if (qp->peer != nullptr) qp->peer->peer = nullptr;
  queue_pairs.erase(qp->qp_num);
  delete qp;
  id->qp = nullptr;
  --made;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* channel = new CompletionChannel;
  channel->context = context;
  channel->fd = make_events();
  const Lock lock(everything);
  ++made;
  return channel;
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  const Lock lock(everything);
  ::close(channel->fd);
  delete static_cast<CompletionChannel*>(channel);
  --made;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* context, int, void* cq_context, ibv_comp_channel* channel, int) {
  const Lock lock(everything);
  auto* cq = new Cq{};
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  ++made;
  return cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  const Lock lock(everything);
  delete static_cast<Cq*>(cq);
  --made;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  if (!await(channel->fd)) return -1;
  const Lock lock(everything);
  auto& events = static_cast<CompletionChannel*>(channel)->events;
  *cq = events.front();
  *context = (*cq)->cq_context;
  events.pop_front();
  return 0;
}
void ibv_ack_cq_events(ibv_cq*, unsigned) {}

ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int) {
  const Lock lock(everything);
  auto* region = new ibv_mr{};
  region->context = pd->context;
  region->pd = pd;
  region->addr = address;
  region->length = length;
  ++made;
  return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t, unsigned access) {
  return ibv_reg_mr(pd, address, length, int(access));
}
int ibv_dereg_mr(ibv_mr* region) {
  const Lock lock(everything);
  delete region;
  --made;
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  *attributes = {};
  attributes->max_qp_wr = 4096;
  return 0;
}
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
  auto& port = *reinterpret_cast<ibv_port_attr*>(attributes);
  port.active_mtu = IBV_MTU_4096;
  port.gid_tbl_len = 1;
  return 0;
}
int _ibv_query_gid_ex(ibv_context*, uint32_t, uint32_t, ibv_gid_entry* entry, uint32_t, size_t) {
  *entry = {};
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  return 0;
}
ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr*) {
  const Lock lock(everything);
  ++made;
  return new ibv_ah{pd->context, pd, 0};
}
int ibv_destroy_ah(ibv_ah* handle) {
  const Lock lock(everything);
  delete handle;
  --made;
  return 0;
}
int ibv_modify_qp(ibv_qp* of, ibv_qp_attr* attributes, int) {
  const Lock lock(everything);
  auto& qp = *static_cast<Qp*>(of);
  if (attributes->qp_state != IBV_QPS_ERR) return 0;
  qp.stopped = true;
  for (const Qp::Receive& receive : qp.receives) {
    ibv_wc completion{};
    completion.status = IBV_WC_WR_FLUSH_ERR;
    receive_done(qp, receive, completion);
  }
  qp.receives.clear();
  return 0;
}

}  // extern "C"
