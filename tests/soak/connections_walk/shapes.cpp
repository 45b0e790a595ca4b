// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/connections_walk/shapes.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rnicsim::testing {

using Link = Shape::Link;
using Stage = Shape::Stage;

namespace {

void add_link(std::vector<Shape>& next, const Shape& from, Link link) {
  next.push_back(from);
  next.back().link = link;
}

// The connection ends: by the peer, or because the peer does not answer.
void add_end(std::vector<Shape>& next, Shape shape, Link link) {
  shape.link = link;
  if (std::exchange(shape.stage, Stage::disconnect) == Stage::connect)
    shape.unread.push_back(RDMA_CM_EVENT_DISCONNECTED);
  next.push_back(shape);
}

class Successors {
 public:
  Successors(const Shape& from, const Surroundings& surroundings) : from_(from), around_(surroundings) {
    resolve();
    connect();
    if (around_.ends_untold && !from.unread.empty() &&
        (from.unread.front() == RDMA_CM_EVENT_REJECTED || from.unread.front() == RDMA_CM_EVENT_DISCONNECTED)) {
      next.push_back(from);
      next.back().unread.erase(next.back().unread.begin());
    }
  }

  std::vector<Shape> next;

 private:
  void to(Stage stage, rdma_cm_event_type event) {
    next.push_back(from_);
    next.back().stage = stage;
    next.back().unread.push_back(event);
  }
  void to(Link link, rdma_cm_event_type event) {
    add_link(next, from_, link);
    if (!around_.unheard) next.back().unread.push_back(event);
  }

  void resolve() {
    if (from_.stage == Stage::address_query && around_.address_found)
      to(Stage::address_resolved, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (from_.stage == Stage::address_query && !around_.address_found) to(Stage::bound, RDMA_CM_EVENT_ADDR_ERROR);
    if (from_.stage == Stage::route_query) to(Stage::route_resolved, RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  void connect() {
    const bool ended = around_.peer_may_end;
    switch (from_.link) {
      case Link::request_sent:
        to(Link::reply_received, RDMA_CM_EVENT_CONNECT_RESPONSE);
        to(Link::over, RDMA_CM_EVENT_REJECTED);
        to(Link::over, RDMA_CM_EVENT_UNREACHABLE);
        if (around_.may_be_stale) to(Link::timewait, RDMA_CM_EVENT_REJECTED);
        break;
      case Link::request_received:
        if (ended) add_link(next, from_, Link::over);
        break;
      case Link::reply_sent:
        to(Link::established, RDMA_CM_EVENT_ESTABLISHED);
        to(Link::over, RDMA_CM_EVENT_UNREACHABLE);
        if (ended) to(Link::over, RDMA_CM_EVENT_REJECTED);
        if (ended) add_end(next, from_, Link::disconnect_received);
        if (around_.may_be_stale) to(Link::timewait, RDMA_CM_EVENT_REJECTED);
        break;
      case Link::reply_received:
        if (ended) to(Link::timewait, RDMA_CM_EVENT_REJECTED);
        break;
      case Link::established:
        if (ended) to(Link::timewait, RDMA_CM_EVENT_REJECTED);
        if (ended) add_end(next, from_, Link::disconnect_received);
        if (around_.may_be_stale) add_link(next, from_, Link::disconnect_sent);
        break;
      case Link::disconnect_sent:
        add_end(next, from_, Link::timewait);
        if (ended) add_end(next, from_, Link::disconnect_received);
        if (ended) to(Link::timewait, RDMA_CM_EVENT_REJECTED);
        break;
      case Link::timewait: to(Link::over, RDMA_CM_EVENT_TIMEWAIT_EXIT); break;
      case Link::lookup_sent:
        to(Link::over, RDMA_CM_EVENT_ESTABLISHED);
        to(Link::over, RDMA_CM_EVENT_UNREACHABLE);
        break;
      case Link::disconnect_received:
        // the peer's DREP to this side's DREQ, which crossed the peer's DREQ
        if (ended) add_link(next, from_, Link::timewait);
        break;
      case Link::none:
      case Link::lookup_received:
      case Link::over: break;
    }
  }

  const Shape& from_;
  const Surroundings& around_;
};

// True: an event will follow.
bool is_under_way(const Shape& shape) {
  switch (shape.link) {
    case Link::request_sent:
    case Link::reply_sent:
    case Link::disconnect_sent:
    case Link::timewait:
    case Link::lookup_sent: return true;
    default: return shape.stage == Stage::address_query || shape.stage == Stage::route_query;
  }
}

Outcomes done(Shape shape, Link link) {
  shape.link = link;
  return {{0, shape}};
}

}  // namespace

Outcomes refused(const Shape& shape) { return {{EINVAL, shape}}; }

// --- Sets of shapes.

void Shapes::wander(const Surroundings& surroundings) {
  std::vector<Shape> fresh(all_.begin(), all_.end());
  while (!fresh.empty()) {
    const Shape shape = fresh.back();
    fresh.pop_back();
    for (const Shape& next : Successors(shape, surroundings).next)
      if (all_.insert(next).second) fresh.push_back(next);
  }
}

bool Shapes::keep(std::set<Shape> kept) {
  if (kept.empty()) return false;
  all_ = std::move(kept);
  return true;
}

std::set<int> Shapes::errors(const Rule& rule) const {
  std::set<int> errors;
  for (const Shape& shape : all_)
    for (const Outcome& outcome : rule(shape)) errors.insert(outcome.error);
  return errors;
}

bool Shapes::answered(int error, const Rule& rule) {
  std::set<Shape> kept;
  for (const Shape& shape : all_)
    for (const Outcome& outcome : rule(shape))
      if (outcome.error == error) kept.insert(outcome.after);
  return keep(std::move(kept));
}

bool Shapes::heard(rdma_cm_event_type event) { return heard_one_of({event}); }

bool Shapes::heard(rdma_cm_event_type event, const Rule& then, int error) {
  const auto before = all_;
  if (heard(event) && answered(error, then)) return true;
  all_ = before;
  return false;
}

bool Shapes::heard_one_of(const std::vector<rdma_cm_event_type>& events) {
  std::set<Shape> kept;
  for (Shape shape : all_) {
    if (shape.unread.empty() || std::ranges::find(events, shape.unread.front()) == events.end()) continue;
    shape.unread.erase(shape.unread.begin());
    kept.insert(shape);
  }
  return keep(std::move(kept));
}

bool Shapes::silent() {
  auto kept = all_;
  std::erase_if(kept, [](const Shape& shape) { return !shape.unread.empty(); });
  return keep(std::move(kept));
}

bool Shapes::settled() {
  auto kept = all_;
  std::erase_if(kept, is_under_way);
  return keep(std::move(kept));
}

bool Shapes::can_be(Stage stage) const {
  return std::ranges::any_of(all_, [&](const Shape& shape) { return shape.stage == stage; });
}

bool Shapes::must_be(Stage stage) const {
  return std::ranges::all_of(all_, [&](const Shape& shape) { return shape.stage == stage; });
}

bool Shapes::can_be(Link link) const {
  return std::ranges::any_of(all_, [&](const Shape& shape) { return shape.link == link; });
}

bool Shapes::will_hear_after(const Rule& rule, int error) const {
  for (const Shape& shape : all_)
    for (const auto& [answer, after] : rule(shape))
      if (answer == error && after.unread.empty() && !is_under_way(after)) return false;
  return true;
}

std::string Shapes::text() const {
  std::string text;
  for (const Shape& shape : all_) {
    text += " (stage " + std::to_string(int(shape.stage)) + ", link " + std::to_string(int(shape.link)) + ", unread";
    for (const auto event : shape.unread) text += std::string(" ") + (rdma_event_str(event) + 14);
    text += ")";
  }
  return text;
}

// --- Rules: results of the kernel's calls.

bool has_device(const Shape& shape, bool bound_to_device) {
  return bound_to_device || (shape.stage >= Stage::address_resolved && shape.stage != Stage::listen);
}

Shape rejected(const Shape& shape) {
  Shape after = shape;
  switch (shape.link) {
    case Link::request_sent:
    case Link::request_received:
    case Link::reply_received: after.link = Link::over; break;
    case Link::reply_sent: after.link = Link::timewait; break;
    default: break;
  }
  return after;
}

Rule listening() {
  return [](const Shape& shape) -> Outcomes {
    if (shape.stage != Stage::idle && shape.stage != Stage::bound) return refused(shape);
    Shape after = shape;
    after.stage = Stage::listen;
    return {{0, after}};
  };
}

Rule resolving_route(bool bound_to_device, bool timeout_given) {
  return [=](const Shape& shape) -> Outcomes {
    if (!timeout_given || !has_device(shape, bound_to_device) || shape.stage != Stage::address_resolved)
      return refused(shape);
    Shape after = shape;
    after.stage = Stage::route_query;
    return {{0, after}};
  };
}

Rule connecting(bool datagram, bool fits) {
  return [=](const Shape& shape) -> Outcomes {
    if (shape.stage != Stage::route_resolved || !fits) return refused(shape);
    Shape after = shape;
    after.stage = Stage::connect;
    after.link = datagram ? Link::lookup_sent : Link::request_sent;
    return {{0, after}};
  };
}

// As in Linux, a request that cannot be accepted is rejected.
Rule accepting(bool datagram, bool fits) {
  return [=](const Shape& shape) -> Outcomes {
    if (shape.stage != Stage::connect || !shape.has_connection()) return refused(shape);
    if (fits && datagram && shape.link == Link::lookup_received) return done(shape, Link::over);
    if (fits && !datagram && shape.link == Link::request_received) return done(shape, Link::reply_sent);
    return refused(datagram ? shape : rejected(shape));
  };
}

Rule getting_ready(bool datagram) {
  return [=](const Shape& shape) -> Outcomes {
    if (shape.stage != Stage::connect || !shape.has_connection()) return refused(shape);
    if (datagram && shape.link == Link::lookup_received) return done(shape, Link::over);
    if (!datagram && shape.link == Link::reply_received) return done(shape, Link::established);
    return refused(datagram ? shape : rejected(shape));
  };
}

Rule rejecting(bool datagram, bool fits) {
  return [=](const Shape& shape) -> Outcomes {
    if (!fits) return refused(shape);
    if (datagram) return shape.link == Link::lookup_received ? done(shape, Link::over) : refused(shape);
    const Shape after = rejected(shape);
    return after.link != shape.link ? Outcomes{{0, after}} : refused(shape);
  };
}

Rule disconnecting() {
  return [](const Shape& shape) -> Outcomes {
    if (!shape.has_connection()) return refused(shape);
    if (shape.link == Link::established) return done(shape, Link::disconnect_sent);
    if (shape.link == Link::disconnect_received) return done(shape, Link::timewait);
    return {{0, shape}};
  };
}

Rule notifying(bool bound_to_device, bool of_establishment) {
  return [=](const Shape& shape) -> Outcomes {
    if (!has_device(shape, bound_to_device) || !shape.has_connection() || !of_establishment) return refused(shape);
    if (shape.link == Link::established) return {{EISCONN, shape}};
    if (shape.link != Link::reply_sent) return refused(shape);
    Shape after = shape;
    after.link = Link::established;
    after.unread.push_back(RDMA_CM_EVENT_ESTABLISHED);
    return {{0, after}};
  };
}

Rule initializing(bool datagram, bool bound_to_device, std::uint32_t state) {
  return [=](const Shape& shape) -> Outcomes {
    if (!has_device(shape, bound_to_device) || state < IBV_QPS_INIT || state > IBV_QPS_RTS) return refused(shape);
    if (datagram || !shape.has_connection()) return {{0, shape}};
    if (shape.link == Link::over || shape.link == Link::timewait) return refused(shape);
    const bool too_early = state != IBV_QPS_INIT && shape.link == Link::request_sent;
    return too_early ? refused(shape) : Outcomes{{0, shape}};
  };
}

}  // namespace rnicsim::testing
