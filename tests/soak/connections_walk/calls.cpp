// SPDX-License-Identifier: Apache-2.0
// Calls that change the state of an id, in the right order and in any other order.
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/base/kernel.h"
#include "tests/soak/connections_walk/walker.h"

namespace rnicsim::testing {

using Link = Shape::Link;
using Stage = Shape::Stage;

namespace {

constexpr std::uint16_t kFirstPort = 7471;
constexpr std::uint32_t kPorts = 4;
constexpr std::uint8_t kMostDepth = 16;

// Room for private data by IBTA; the kernel needs some bytes of a request's data for its own header.
struct Room {
  std::size_t request, answer, rejection;
};
constexpr Room kConnected{92 - 36, 196, 148}, kDatagram{216 - 36, 136, 136};
const Room& room_of(const Ident& ident) { return ident.datagram ? kDatagram : kConnected; }

// Result of bind, apart from the rules of ports.
int bindable(const Place& place) {
  if (!place.usable() || place.kind == Place::Kind::link_local) return EINVAL;
  return place.wildcard() || place.kind == Place::Kind::own ? 0 : EADDRNOTAVAIL;
}

bool are_legal(const Ident& ident, const rdma_conn_param* given) {
  if (!ident.device) return false;
  if (ident.space != RDMA_PS_TCP) return true;
  if (given == nullptr) return ident.id->qp != nullptr;
  const auto within = [](std::uint8_t depth) { return depth <= kMostDepth || depth == RDMA_MAX_RESP_RES; };
  return within(given->responder_resources) && within(given->initiator_depth);
}

}  // namespace

Place ConnectionWalker::draw_local() {
  using Kind = Place::Kind;
  constexpr Kind kWrong[] = {Kind::peer, Kind::nobody, Kind::away, Kind::link_local, Kind::group, Kind::strange};
  constexpr Kind kRight[] = {Kind::any, Kind::any, Kind::own, Kind::own, Kind::loopback};
  Place place{dice_.once_in(10) ? kWrong[dice_.below(6)] : kRight[dice_.below(5)], dice_.once_in(4),
              std::uint16_t(dice_.once_in(5) ? 0 : kFirstPort + dice_.below(kPorts))};
  if (place.kind == Kind::link_local) place.ipv6 = true;
  return place;
}

Place ConnectionWalker::draw_remote(const Ident& ident) {
  using Kind = Place::Kind;
  const std::uint32_t host = dice_.once_in(4) ? host_ : 1 - host_;
  auto listening = town_.ports[host].listening(ident.space, host != host_);
  if (ident.ipv6) std::erase_if(listening, [&](const Place& place) { return place.ipv6 != *ident.ipv6; });
  if (!listening.empty() && !dice_.once_in(6)) return dice_.one_of(listening);
  constexpr Kind kOthers[] = {Kind::own,  Kind::any,   Kind::loopback, Kind::nobody,
                              Kind::away, Kind::group, Kind::strange};
  return {dice_.once_in(4) ? kOthers[dice_.below(7)] : Kind::peer, dice_.once_in(4),
          std::uint16_t(kFirstPort + dice_.below(kPorts))};
}

sockaddr* ConnectionWalker::written(const Place& place) {
  address_ = place.address(host_);
  return reinterpret_cast<sockaddr*>(&address_);
}

// Makes the next call toward a connection, as far as the id's state is known.
void ConnectionWalker::progress(const Known& ident) {
  Ident& it = *ident;
  it.shapes.wander(it.surroundings());
  if (it.shapes.must_be(Stage::idle)) {
    if (!dice_.once_in(4)) return resolve_address(ident, std::nullopt, draw_remote(*ident));
    return dice_.once_in(5) ? listen(ident) : bind(ident, draw_local());
  }
  if (it.shapes.must_be(Stage::bound)) {
    if (!it.bound_to_device || !dice_.once_in(4)) return listen(ident);
    return resolve_address(ident, std::nullopt, draw_remote(*ident));
  }
  if (it.shapes.must_be(Stage::address_resolved)) {
    if (it.datagram && dice_.once_in(2)) return join(ident);
    return resolve_route(ident, 100);
  }
  if (it.shapes.must_be(Stage::route_resolved)) {
    if (it.qp == Ident::Qp::none && !dice_.once_in(5)) create_qp(ident);
    return connect(ident);
  }
  if (it.shapes.can_be(Link::request_received) || it.shapes.can_be(Link::lookup_received)) {
    if (dice_.once_in(8)) return reject(ident);
    if (it.qp == Ident::Qp::none && !dice_.once_in(5)) create_qp(ident);
    return accept(ident);
  }
  if (it.qp == Ident::Qp::none && it.shapes.can_be(Link::reply_received)) return establish(ident);
  if (it.shapes.can_be(Link::established) && !dice_.once_in(6)) {
    for (std::uint32_t i = dice_.below(8); i > 0 && !town_.broken; --i) post(it);
    return poll(it);
  }
  if (it.shapes.can_be(Link::established) || it.shapes.can_be(Link::disconnect_received)) return disconnect(ident);
  if (it.shapes.can_be(Stage::connect) && it.shapes.can_be(Link::over) && dice_.once_in(4)) return destroy(ident);
  take_events();
}

void ConnectionWalker::call_anything(const Known& ident) {
  switch (dice_.below(19)) {
    case 0: return bind(ident, draw_local());
    case 1: {
      Place source = draw_local();
      source.port = 0;
      return resolve_address(ident, dice_.once_in(2) ? std::optional(source) : std::nullopt, draw_remote(*ident));
    }
    case 2: return resolve_route(ident, int(dice_.below(3)));
    case 3: return listen(ident);
    case 4: return connect(ident);
    case 5: return accept(ident);
    case 6: return reject(ident);
    case 7: return disconnect(ident);
    case 8: return establish(ident);
    case 9: return notify(ident);
    case 10: return init_qp_attributes(ident);
    case 11: return create_qp(ident);
    case 12: return destroy_qp(ident);
    case 13: return create_srq(ident);
    case 14: return join(ident);
    case 15: return leave(ident, dice_.once_in(4));
    case 16: return migrate(ident);
    default: return set_option(ident);
  }
}

void ConnectionWalker::bind(const Known& ident, const Place& place) {
  const Binding binding{place, ident->reuse, ident->family_only.value_or(!place.ipv6), false};
  const Ports::Change change(ports());
  const auto ports_say = ports().answers(ident->space, ident.get(), binding);
  const int answer = errno_of(rdma_bind_addr(ident->id, written(place)));
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (shape.stage != Stage::idle || bindable(place) == EINVAL) return refused(shape);
    if (bindable(place) != 0) return {{bindable(place), shape}};
    const auto errors = change.undisturbed() ? ports_say : std::set{0, EADDRINUSE, EADDRNOTAVAIL};
    Outcomes outcomes;
    for (const int error : errors) outcomes.push_back({error, shape});
    for (auto& [error, after] : outcomes)
      if (error == 0) after.stage = Stage::bound;
    return outcomes;
  };
  if (!validate(*ident, "rdma_bind_addr to " + place.text(), answer, rule) || answer != 0) return;
  ident->device = ident->bound_to_device = !place.wildcard();
  ident->ipv6 = place.ipv6;
  const std::uint16_t port = ntohs(rdma_get_src_port(ident->id));
  if (place.port != 0 ? port != place.port : port < 32768) fail("rdma_bind_addr: port " + std::to_string(port));
  if ((ident->id->verbs != nullptr) != ident->device) fail("rdma_bind_addr: its device");
  Binding bound = binding;
  bound.place.port = port;
  ports().add(ident->space, ident.get(), bound);
}

void ConnectionWalker::listen(const Known& ident) {
  const Ports::Change change(ports());
  std::set<int> ports_say{0};
  if (const Binding* bound = ports().find(ident.get()); bound != nullptr && bound->reuse) {
    Binding alone = *bound;
    alone.listens = true;
    ports_say = ports().answers(ident->space, ident.get(), alone);
  }
  const int backlog = int(dice_.once_in(4) ? dice_.between(1, 2) : 0);
  const int answer = errno_of(rdma_listen(ident->id, backlog));
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    const auto simply = listening()(shape);
    if (simply.front().error != 0) return simply;
    Outcomes outcomes;
    for (const int error : change.undisturbed() ? ports_say : std::set{0, EADDRINUSE, EADDRNOTAVAIL})
      outcomes.push_back({error, error == 0 ? simply.front().after : shape});
    return outcomes;
  };
  if (!validate(*ident, "rdma_listen", answer, rule) || answer != 0) return;
  ident->device = ident->bound_to_device;
  ident->reuse = false;
  if (!ident->ipv6) ident->ipv6 = false;
  if (ports().find(ident.get()) == nullptr) {
    const Place place{Place::Kind::any, *ident->ipv6, ntohs(rdma_get_src_port(ident->id))};
    ports().add(ident->space, ident.get(), {place, false, ident->family_only.value_or(!place.ipv6), true});
  }
  Binding& bound = *ports().find(ident.get());
  bound.listens = true;
  bound.reuse = false;
}

void ConnectionWalker::resolve_address(const Known& ident, const std::optional<Place>& source,
                                       const Place& destination) {
  // Not modelled: an id bound to a wildcard address changes its address, and others may want the same port there.
  if (const Binding* bound = ports().find(ident.get()); bound != nullptr && bound->place.wildcard()) return;
  const bool chosen = source && !source->wildcard();
  const bool ipv6 = ident->ipv6.value_or(chosen ? source->ipv6 : destination.ipv6);
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (!destination.usable() || (source && !source->usable())) return refused(shape);
    Shape bound = shape;
    if (shape.stage == Stage::idle) {
      if (chosen && bindable(*source) != 0) return {{bindable(*source), shape}};
      bound.stage = Stage::bound;
    }
    if (bound.stage != Stage::bound || ipv6 != destination.ipv6) return refused(bound);
    if (destination.kind == Place::Kind::away) return {{ENETUNREACH, bound}};
    bound.stage = Stage::address_query;
    return {{0, bound}};
  };
  if (!may_wait(*ident, rule)) return;
  sockaddr_storage from{};
  if (source) from = source->address(host_);
  // A resolution in progress keeps its outcome.
  if (ident->shapes.must_be(Stage::idle) || ident->shapes.must_be(Stage::bound))
    ident->address_found = destination.kind != Place::Kind::nobody;
  const int timeout = int(dice_.between(1, 30));
  const int answer = errno_of(rdma_resolve_addr(ident->id, source ? reinterpret_cast<sockaddr*>(&from) : nullptr,
                                                written(destination), timeout));
  const bool was_idle = ident->shapes.must_be(Stage::idle);
  // The id may have returned to the bound state, so that the call starts a new resolution.
  const bool asked_anew = answer == 0 || (ident->synchronous && ident->id->event != nullptr);
  if (asked_anew) ident->address_found = destination.kind != Place::Kind::nobody;
  if (was_idle) {
    ident->target = nullptr;
    // hear() needs the address family.
    const auto left = rule(Shape{});
    if (left.front().after.stage != Stage::idle) {
      ident->ipv6 = ipv6;
      ident->bound_to_device = chosen;
    }
  }
  if (!validate_waiting(ident, "rdma_resolve_addr of " + destination.text(), answer, rule) || !asked_anew) return;
  const bool known = destination.kind == Place::Kind::peer || destination.kind == Place::Kind::own;
  Ports& theirs = town_.ports[destination.kind == Place::Kind::peer ? 1 - host_ : host_];
  ident->target = known ? theirs.listener(ident->space, destination) : nullptr;
}

void ConnectionWalker::resolve_route(const Known& ident, int timeout_ms) {
  const Rule rule = resolving_route(ident->bound_to_device, timeout_ms != 0);
  if (!may_wait(*ident, rule)) return;
  const int answer = errno_of(rdma_resolve_route(ident->id, timeout_ms));
  validate_waiting(ident, "rdma_resolve_route", answer, rule);
}

// --- Connections.

rdma_conn_param ConnectionWalker::draw_parameters(Ident& ident, std::vector<std::uint8_t>& data, std::size_t most) {
  const std::size_t bytes = dice_.once_in(12) ? most + 1 + dice_.below(40) : dice_.between(8, std::uint32_t(most));
  data.resize(std::min<std::size_t>(bytes, 255));
  for (auto& byte : data) byte = std::uint8_t(dice_.bits());
  std::memcpy(data.data(), &ident.token, sizeof ident.token);
  rdma_conn_param wanted{};
  wanted.private_data = data.data();
  wanted.private_data_len = std::uint8_t(data.size());
  const auto depth = [&] {
    return std::uint8_t(dice_.once_in(20) && ident.space == RDMA_PS_TCP ? dice_.between(17, 254)
                        : dice_.once_in(10)                             ? 255
                                                                        : dice_.below(17));
  };
  wanted.responder_resources = depth();
  wanted.initiator_depth = depth();
  wanted.retry_count = std::uint8_t(dice_.below(8));
  wanted.rnr_retry_count = std::uint8_t(dice_.below(8));
  wanted.flow_control = std::uint8_t(dice_.below(2));
  wanted.qp_num = dice_.once_in(20) ? 0x800000 : ++town_.next_qpn;
  return wanted;
}

// A QPN that another connection uses or used may be mistaken for the other connection's.
void ConnectionWalker::take_qpn(const Known& ident, std::uint32_t qpn) {
  const auto [entry, first] = town_.by_qpn.try_emplace({host_, qpn}, ident);
  if (first) return;
  const Known other = std::exchange(entry->second, ident).lock();
  if (other == ident) return;
  ident->unique = false;
  if (other) other->unique = false;
}

void ConnectionWalker::connect(const Known& ident) {
  std::vector<std::uint8_t> data;
  rdma_conn_param wanted = draw_parameters(*ident, data, room_of(*ident).request);
  rdma_conn_param* given = dice_.once_in(15) ? nullptr : &wanted;
  const bool fits = given == nullptr || data.size() <= room_of(*ident).request;
  const Rule rule = [&, legal = are_legal(*ident, given)](const Shape& shape) -> Outcomes {
    return legal ? connecting(ident->datagram, fits)(shape) : refused(shape);
  };
  if (!may_wait(*ident, rule)) return;
  const auto* qp = ident->id->qp;
  ident->shapes.wander(ident->surroundings());
  if (ident->shapes.can_be(Stage::route_resolved)) {
    ident->said = given != nullptr ? data : std::vector<std::uint8_t>{};
    ident->wanted = given != nullptr ? wanted : rdma_conn_param{};
    ident->wanted.qp_num = qp != nullptr ? qp->qp_num : ident->wanted.qp_num;
    ident->since = now();
    if (fits) take_qpn(ident, ident->wanted.qp_num);
  }
  const int answer = errno_of(rdma_connect(ident->id, given));
  validate_waiting(ident, "rdma_connect", answer, rule);
}

void ConnectionWalker::accept(const Known& ident) {
  std::vector<std::uint8_t> data;
  rdma_conn_param wanted = draw_parameters(*ident, data, room_of(*ident).answer);
  rdma_conn_param* given = dice_.once_in(15) ? nullptr : &wanted;
  const bool fits = given == nullptr || data.size() <= room_of(*ident).answer;
  const bool legal = are_legal(*ident, given) && (given != nullptr || ident->id->qp != nullptr);
  const Ident::Qp qp = ident->datagram ? Ident::Qp::none : ident->qp;
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (!legal) return refused(shape);
    Outcomes outcomes;
    const bool may_move = qp == Ident::Qp::init || qp == Ident::Qp::unknown;
    const bool moves = may_move && initializing(false, true, IBV_QPS_RTR)(shape).front().error == 0;
    if (qp == Ident::Qp::none || moves) outcomes = accepting(ident->datagram, fits)(shape);
    if (qp == Ident::Qp::unknown || (qp != Ident::Qp::none && !moves)) outcomes.push_back({EINVAL, shape});
    return outcomes;
  };
  if (!may_wait(*ident, rule)) return;
  const bool ended_before = std::exchange(ident->ended, true);
  ident->shapes.wander(ident->surroundings());
  const bool waits = ident->shapes.can_be(Link::request_received) || ident->shapes.can_be(Link::lookup_received);
  if (waits && legal) {
    const auto* own = ident->id->qp;
    ident->said = given != nullptr ? data : std::vector<std::uint8_t>{};
    ident->since = now();
    if (!ident->datagram) take_qpn(ident, own != nullptr ? own->qp_num : wanted.qp_num);
  }
  const int answer = errno_of(rdma_accept(ident->id, given));
  const bool done = answer == 0 || (ident->synchronous && ident->id->event != nullptr);
  // Events until the kernel's answer were not delivered.
  ident->shapes.wander(ident->surroundings());
  if (done) ident->unheard = false;
  if (!ident->datagram && ident->qp != Ident::Qp::none)
    ident->qp = done ? Ident::Qp::rts : legal && qp == Ident::Qp::init ? Ident::Qp::unknown : ident->qp;
  ident->connected |= done && ident->qp == Ident::Qp::rts;
  if (ident->datagram && ident->synchronous)
    validate(*ident, "rdma_accept", answer, rule);
  else
    validate_waiting(ident, "rdma_accept", answer, rule);
  if (done) ident->ended = ended_before;
}

void ConnectionWalker::establish(const Known& ident) {
  const Rule rule = [&](const Shape& shape) -> Outcomes {
    if (ident->id->qp != nullptr || !has_device(shape, ident->bound_to_device)) return refused(shape);
    return getting_ready(ident->datagram)(shape);
  };
  const bool ended_before = std::exchange(ident->ended, true);
  const int answer = errno_of(rdma_establish(ident->id));
  validate(*ident, "rdma_establish", answer, rule);
  if (answer == 0) ident->ended = ended_before;
}

void ConnectionWalker::reject(const Known& ident) {
  const std::size_t most = room_of(*ident).rejection;
  std::vector<std::uint8_t> data(dice_.once_in(6) ? most + 1 + dice_.below(20) : dice_.below(most + 1));
  ident->ended = true;
  const int answer = errno_of(dice_.once_in(4) ? rdma_reject_ece(ident->id, data.data(), std::uint8_t(data.size()))
                                               : rdma_reject(ident->id, data.data(), std::uint8_t(data.size())));
  validate(*ident, "rdma_reject", answer, rejecting(ident->datagram, data.size() <= most));
}

void ConnectionWalker::disconnect(const Known& ident) {
  const Rule rule = [&, device = ident->device](const Shape& shape) -> Outcomes {
    return device ? disconnecting()(shape) : refused(shape);
  };
  if (!may_wait(*ident, rule)) return;
  ident->ended = true;
  if (ident->device && ident->qp != Ident::Qp::none) ident->qp = Ident::Qp::error;
  const int answer = errno_of(rdma_disconnect(ident->id));
  if (ident->device) expect_state(*ident, IBV_QPS_ERR);
  validate_waiting(ident, "rdma_disconnect", answer, rule);
}

void ConnectionWalker::notify(const Known& ident) {
  const auto event = dice_.once_in(4) ? IBV_EVENT_PATH_MIG : IBV_EVENT_COMM_EST;
  const int answer = errno_of(rdma_notify(ident->id, event));
  validate(*ident, "rdma_notify", answer, notifying(ident->bound_to_device, event == IBV_EVENT_COMM_EST));
}

void ConnectionWalker::init_qp_attributes(const Known& ident) {
  ibv_qp_attr attributes{};
  const auto state = ibv_qp_state(dice_.below(7));
  attributes.qp_state = state;
  int mask = 0;
  const int answer = errno_of(rdma_init_qp_attr(ident->id, &attributes, &mask));
  const Rule rule = initializing(ident->datagram, ident->bound_to_device, state);
  if (!validate(*ident, "rdma_init_qp_attr " + std::to_string(state), answer, rule) || answer != 0) return;
  if (attributes.qp_state != state || (mask & IBV_QP_STATE) == 0) fail("rdma_init_qp_attr: another state");
}

}  // namespace rnicsim::testing
