// SPDX-License-Identifier: Apache-2.0
// Events: each must be possible, contain the right data, and be acknowledged once.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/base/kernel.h"
#include "tests/soak/connections_walk/walker.h"

namespace rnicsim::testing {

using Link = Shape::Link;
using Stage = Shape::Stage;

namespace {

constexpr int kNoListener = 8, kStale = 10, kConsumer = 28, kVendorOption = 35;  // reasons of a REJ (IBTA)
constexpr Duration kShortestPatience{60'000'000'000'000};  // ps: 16 messages, with at least 4.29 s after each

bool readable(const rdma_event_channel* channel) {
  pollfd record{.fd = channel->fd, .events = POLLIN, .revents = 0};
  return ::poll(&record, 1, 0) == 1;
}

}  // namespace

void ConnectionWalker::take_events() {
  if (!synchronous_) {
    const std::size_t channel = dice_.below(kChannels);
    for (std::uint32_t more = dice_.between(1, 4); more > 0 && !town_.broken; --more)
      if (!read_event(channels_[channel], on_channel(channel))) return;
    return;
  }
  const Known ident = any();
  if (ident == nullptr || ident->ends_untold) return;
  if (ident->shapes.must_be(Stage::listen) && dice_.once_in(2)) return take_request(ident);
  if (!ident->shapes.must_be(Stage::listen)) read_event(ident->id->channel, {ident});
}

// Returns false if there was no event.
bool ConnectionWalker::read_event(rdma_event_channel* channel, const std::vector<Known>& whose) {
  if (synchronous_ && !readable(channel)) return false;
  if (synchronous_ && whose.front()->shapes.must_be(Stage::listen)) {
    take_request(whose.front());
    return true;
  }
  rdma_cm_event* event = nullptr;
  const bool promised = readable(channel);
  const int answer = errno_of(rdma_get_cm_event(channel, &event));
  if (answer != 0) {
    expect("rdma_get_cm_event", answer, {EAGAIN});
    if (promised && std::ranges::none_of(whose, [](const Known& ident) { return ident->ends_untold; }))
      fail("a channel is readable, and there is no event");
    for (const Known& ident : whose) {
      ident->shapes.wander(ident->surroundings());
      if (!ident->shapes.silent()) fail("an event of " + name(*ident) + " did not come;" + ident->shapes.text());
      ident->shapes.wander(ident->surroundings());
      for (const auto& joined : ident->groups)
        if (!joined->told && now() > joined->since + Duration{1'000'000'000})
          fail("the event of a group of " + name(*ident) + " did not come");
    }
    pass(dice_.between(1, 40'000));
    return false;
  }
  const rdma_cm_id* event_id = event->id;
  const rdma_cm_id* owner = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->listen_id : event->id;
  const auto ident = std::ranges::find_if(whose, [&](const Known& one) { return one->id == owner; });
  if (ident == whose.end()) return fail("an event of nobody's on that channel"), false;
  const bool of_group = event->event == RDMA_CM_EVENT_MULTICAST_JOIN || event->event == RDMA_CM_EVENT_MULTICAST_ERROR;
  held_.push_back({event, ident->get(),
                   of_group ? static_cast<Joined*>(const_cast<void*>(event->param.ud.private_data)) : nullptr});
  if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
    hear_request(*ident, *event);
  else
    hear(*ident, *event);
  if (dice_.once_in(2)) acknowledge(held_.size() - 1);
  if (walks_ && !idents_.empty() && idents_.back()->id == event_id && dice_.once_in(2)) progress(idents_.back());
  return true;
}

void ConnectionWalker::take_request(const Known& listener) {
  if (!readable(listener->id->channel)) return;
  rdma_cm_id* id = nullptr;
  if (!expect("rdma_get_request", errno_of(rdma_get_request(listener->id, &id)), {0})) return;
  if (id->event == nullptr) return fail("rdma_get_request: an id without its event");
  const Known connection = hear_request(listener, *id->event);
  if (walks_ && !dice_.once_in(3) && !town_.broken) progress(connection);
}

ConnectionWalker::Known ConnectionWalker::hear_request(const Known& listener, const rdma_cm_event& event) {
  note("request of a connection from " + name(*listener));
  if (!listener->shapes.must_be(Stage::listen)) fail("a request to who does not listen");
  const bool datagram = listener->datagram;
  const auto ident = std::make_shared<Ident>(
      Shape{.stage = Stage::connect, .link = datagram ? Link::lookup_received : Link::request_received});
  ident->channel = listener->channel;
  ident->device = ident->bound_to_device = ident->unheard = true;
  ident->ipv6 = listener->ipv6;
  adopt(ident, event.id);
  if (event.id->verbs == nullptr || event.id->context != listener->id->context || event.status != 0)
    fail("an id of a request is not as its listener");
  // The private data name the peer's id.
  const auto* data =
      static_cast<const std::uint8_t*>(datagram ? event.param.ud.private_data : event.param.conn.private_data);
  const std::size_t bytes = datagram ? event.param.ud.private_data_len : event.param.conn.private_data_len;
  if (bytes != (datagram ? 180u : 56u)) return fail("private data of " + std::to_string(bytes) + " bytes"), ident;
  std::uint64_t token = 0;
  std::memcpy(&token, data, sizeof token);
  const auto found = town_.by_token.find(token);
  const Known caller = found != town_.by_token.end() ? found->second.lock() : nullptr;
  if (!caller) return ident;
  std::vector<std::uint8_t> said = caller->said;
  said.resize(bytes);
  if (std::memcmp(said.data(), data, bytes) != 0) fail("a request with others' private data");
  if (caller->space != ident->space) fail("a request from another port space");
  if (!datagram) {
    const auto& got = event.param.conn;
    const auto& asked = caller->wanted;
    const auto depth = [](std::uint8_t depth) { return depth == RDMA_MAX_RESP_RES ? 16 : depth; };
    if (got.responder_resources != depth(asked.initiator_depth) ||
        got.initiator_depth != depth(asked.responder_resources) || got.qp_num != asked.qp_num ||
        got.retry_count != asked.retry_count || got.rnr_retry_count != asked.rnr_retry_count ||
        got.flow_control != asked.flow_control)
      fail("a request with other parameters");
  }
  caller->peer = ident;
  ident->peer = caller;
  ident->unique = caller->unique;
  caller->peer_token = ident->token;
  ident->peer_token = caller->token;
  return ident;
}

void ConnectionWalker::hear(const Known& ident, rdma_cm_event& event) {
  Ident& it = *ident;
  note("event " + std::string(rdma_event_str(event.event) + 14) + " " + std::to_string(event.status) + " of " +
       name(it));
  it.shapes.wander(it.surroundings());
  bool fits = false;
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      it.device = true;
      fits = it.shapes.heard(event.event);
      break;
    case RDMA_CM_EVENT_ADDR_ERROR: fits = it.shapes.heard(event.event) && event.status == -ETIMEDOUT; break;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      fits = it.id->qp == nullptr && it.shapes.heard(event.event);
      check_answer(it, event);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      hear_ready(it, event);
      fits = true;
      break;
    case RDMA_CM_EVENT_REJECTED:
      check_rejection(it, event);
      if (it.qp != Ident::Qp::none) it.qp = Ident::Qp::error;
      expect_state(it, IBV_QPS_ERR);
      fits = it.shapes.heard(event.event);
      break;
    case RDMA_CM_EVENT_UNREACHABLE:
      check_failure(it, event);
      fits = it.shapes.heard(event.event);
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: fits = it.shapes.heard(event.event); break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
    case RDMA_CM_EVENT_MULTICAST_ERROR:
      hear_group(it, event);
      fits = true;
      break;
    default: break;
  }
  if (!fits) fail(std::string(rdma_event_str(event.event)) + " of " + name(it) + " may not come;" + it.shapes.text());
  it.shapes.wander(it.surroundings());
}

// Event of an established connection, or of a QP that could not be moved to RTS.
void ConnectionWalker::hear_ready(Ident& it, rdma_cm_event& event) {
  const bool established = event.event == RDMA_CM_EVENT_ESTABLISHED;
  if (established && it.shapes.heard(RDMA_CM_EVENT_CONNECT_RESPONSE, getting_ready(it.datagram), 0)) {
    check_answer(it, event);
    if (it.id->qp == nullptr || (it.qp != Ident::Qp::init && it.qp != Ident::Qp::unknown))
      fail("established without a QP that could be: " + name(it));
    it.qp = Ident::Qp::rts;
    it.connected = true;
    expect_state(it, IBV_QPS_RTS);
    ++town_.established;
    return;
  }
  if (established) {
    if (it.shapes.heard(event.event)) return;
    return fail("ESTABLISHED of " + name(it) + " may not come;" + it.shapes.text());
  }
  const Rule failing = [&](const Shape& shape) -> Outcomes {
    if (it.qp == Ident::Qp::init && shape.link == Link::reply_received) return {};
    return {{1, rejected(shape)}};
  };
  it.ended = it.ends_untold = true;
  if (!it.shapes.heard(RDMA_CM_EVENT_CONNECT_RESPONSE, failing, 1))
    fail("CONNECT_ERROR of " + name(it) + " may not come;" + it.shapes.text());
  it.qp = Ident::Qp::error;
}

void ConnectionWalker::check_answer(const Ident& it, const rdma_cm_event& event) {
  const Known peer = it.peer.lock();
  if (!peer || it.datagram) return;
  const auto& got = event.param.conn;
  std::vector<std::uint8_t> said = peer->said;
  said.resize(196);
  if (got.private_data_len != said.size() || std::memcmp(got.private_data, said.data(), said.size()) != 0)
    fail("an answer to " + name(it) + " with others' private data");
}

void ConnectionWalker::check_rejection(const Ident& it, const rdma_cm_event& event) {
  const int reason = event.status;
  if (reason != kNoListener && reason != kStale && reason != kConsumer && reason != kVendorOption && reason != 4)
    fail("a rejection for reason " + std::to_string(reason));
  if (reason != kNoListener || it.target == nullptr) return;
  // Fails if the target has listened all the time.
  for (Ports& ports : town_.ports)
    if (const Binding* binding = ports.find(it.target); binding != nullptr && binding->listens)
      fail("nobody listens, it is said, where " + name(it) + " wants to");
}

void ConnectionWalker::check_failure(const Ident& it, const rdma_cm_event& event) {
  if (it.datagram && event.status > 0) return;
  if (event.status != -ETIMEDOUT) return fail("UNREACHABLE with status " + std::to_string(event.status));
  const auto around = it.surroundings();
  if (!around.may_be_stale && now() < it.since + kShortestPatience) fail(name(it) + " gave up its peer too early");
}

void ConnectionWalker::hear_group(Ident& it, rdma_cm_event& event) {
  const auto joined =
      std::ranges::find_if(it.groups, [&](const auto& one) { return one.get() == event.param.ud.private_data; });
  if (joined == it.groups.end() || std::exchange((*joined)->told, true)) return fail("an event of no group's");
  if (event.event == RDMA_CM_EVENT_MULTICAST_JOIN) {
    if (event.param.ud.qp_num != 0xffffff || event.status != 0) fail("a group's event says something else");
    return;
  }
  const auto same =
      std::ranges::count_if(it.groups, [&](const auto& one) { return one->group.ipv6 == (*joined)->group.ipv6; });
  if (same < 2 && it.qp != Ident::Qp::error) fail("a group could not be joined: " + std::to_string(event.status));
}

void ConnectionWalker::acknowledge(std::size_t which) {
  const Held held = held_[which];
  held_.erase(held_.begin() + std::ptrdiff_t(which));
  expect("rdma_ack_cm_event", errno_of(rdma_ack_cm_event(held.event)), {0});
}

void ConnectionWalker::acknowledge_some() {
  for (std::uint32_t i = dice_.below(4); i > 0 && !held_.empty(); --i) acknowledge(dice_.below(held_.size()));
}

void ConnectionWalker::acknowledge_all_of(const Ident& ident) {
  for (std::size_t i = held_.size(); i > 0; --i)
    if (held_[i - 1].owner == &ident) acknowledge(i - 1);
}

}  // namespace rnicsim::testing
