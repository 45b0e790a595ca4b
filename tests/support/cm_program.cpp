// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cm_program.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "model/base/kernel.h"
#include "model/host/software_process.h"

namespace rnicsim::testing {
namespace {

constexpr int kPatience = 2000;  // milliseconds

void must(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// Ids of programs that ended without destroying them; kept reachable, so that the leak checker reports none.
std::vector<std::set<rdma_cm_id*>>& remains() {
  static auto& left = *new std::vector<std::set<rdma_cm_id*>>;
  return left;
}

}  // namespace

CmProgram::CmProgram(host::SoftwareProcess& process) : process_(process), channel_(rdma_create_event_channel()) {
  must(channel_ == nullptr, "rdma_create_event_channel");
}

CmProgram::~CmProgram() {
  if (left_) {
    remains().push_back(ids_);
    return;
  }
  while (!ids_.empty()) destroy(*ids_.begin());
  rdma_destroy_event_channel(channel_);
}

rdma_cm_id* CmProgram::make(rdma_port_space space) {
  rdma_cm_id* id = nullptr;
  must(rdma_create_id(channel_, &id, this, space), "rdma_create_id");
  ids_.insert(id);
  return id;
}

void CmProgram::destroy(rdma_cm_id* id) {
  ids_.erase(id);
  if (id->qp != nullptr) rdma_destroy_qp(id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

rdma_cm_id* CmProgram::listen(std::uint16_t port, rdma_port_space space, int backlog) {
  rdma_cm_id* id = make(space);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  must(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&any)), "rdma_bind_addr");
  must(rdma_listen(id, backlog), "rdma_listen");
  return id;
}

void CmProgram::make_qp(rdma_cm_id* id) { must(try_qp(id), "rdma_create_qp"); }

int CmProgram::try_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attributes{};
  attributes.cap = {4, 4, 1, 1, 0};
  attributes.qp_type = id->qp_type;
  return rdma_create_qp(id, nullptr, &attributes);
}

void CmProgram::resolve(rdma_cm_id* id, sockaddr_in to) {
  must(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), kPatience), "rdma_resolve_addr");
  await(RDMA_CM_EVENT_ADDR_RESOLVED);
  must(rdma_resolve_route(id, kPatience), "rdma_resolve_route");
  await(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

rdma_cm_id* CmProgram::connect(sockaddr_in to, rdma_port_space space) {
  rdma_cm_id* id = make(space);
  resolve(id, to);
  make_qp(id);
  rdma_conn_param wanted{};
  wanted.responder_resources = wanted.initiator_depth = 1;
  wanted.retry_count = wanted.rnr_retry_count = 7;
  must(rdma_connect(id, &wanted), "rdma_connect");
  return id;
}

int CmProgram::accept(rdma_cm_id* id) {
  rdma_conn_param wanted{};
  wanted.responder_resources = wanted.initiator_depth = 1;
  wanted.rnr_retry_count = 7;
  if (id->qp != nullptr) wanted.qp_num = id->qp->qp_num;
  return rdma_accept(id, &wanted);
}

CmEvent CmProgram::next() {
  rdma_cm_event* event = nullptr;
  must(rdma_get_cm_event(channel_, &event), "rdma_get_cm_event");

  const CmEvent told{event->event, process_.port().thread_time(), event->status, event->id};
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) ids_.insert(event->id);
  seen.push_back(told);
  // Acknowledged also if the handler throws: an id with an unacknowledged event cannot be destroyed.
  const std::unique_ptr<rdma_cm_event, decltype(&rdma_ack_cm_event)> acknowledged(event, rdma_ack_cm_event);
  if (handler) handler(*event);
  return told;
}

CmEvent CmProgram::await(rdma_cm_event_type type) {
  for (;;) {
    const CmEvent event = next();
    if (event.type == type) return event;
  }
}

// The alarm is a further id: at that time it resolves an address of this host, and the event ends the wait.
void CmProgram::run_until(Duration time) {
  rdma_cm_id* alarm = make();
  const auto events = std::exchange(seen, {});
  process_.spawn("alarm", [this, alarm, time] {
    sleep_to(time);
    abi::NetworkInterface self;
    process_.port().port_info(self);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    std::memcpy(&own.sin_addr, self.ipv4, sizeof self.ipv4);
    must(rdma_resolve_addr(alarm, nullptr, reinterpret_cast<sockaddr*>(&own), kPatience), "rdma_resolve_addr");
  });
  while (next().id != alarm) {}
  seen.pop_back();
  seen.insert(seen.begin(), events.begin(), events.end());
  destroy(alarm);
}

void CmProgram::sleep_to(Duration time) {
  process_.port().settle();
  if (time > now()) sleep_until(time);
}

bool CmProgram::readable() const {
  pollfd record{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  return ::poll(&record, 1, 0) == 1;
}

sockaddr_in CmProgram::ipv4(std::uint8_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(10u << 24 | std::uint32_t(host) << 8 | 1);
  return address;
}

}  // namespace rnicsim::testing
