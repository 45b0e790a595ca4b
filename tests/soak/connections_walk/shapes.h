// SPDX-License-Identifier: Apache-2.0
// Possible states of an rdma_cm_id in the kernel, as far as the program can know: a set of shapes. Spontaneous
// transitions add shapes. The result of a call, or an event, removes the shapes that would have given another result.
// An empty set is a fault of the simulator or of this model.
#pragma once

#include <rdma/rdma_cma.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace rnicsim::testing {

struct Shape {
  enum class Stage : std::uint8_t {
    idle,
    bound,
    address_query,
    address_resolved,
    route_query,
    route_resolved,
    connect,
    disconnect,
    listen
  };
  // State of the connection or lookup; `over`: ended.
  enum class Link : std::uint8_t {
    none,
    request_sent,
    request_received,
    reply_sent,
    reply_received,
    established,
    disconnect_sent,
    disconnect_received,
    timewait,
    lookup_sent,
    lookup_received,
    over
  };
  Stage stage = Stage::idle;
  Link link = Link::none;
  std::vector<rdma_cm_event_type> unread{};  // events that the program has not read, in the kernel's order

  auto operator<=>(const Shape&) const = default;
  bool has_connection() const { return link != Link::none; }
};

// Conditions for spontaneous transitions.
struct Surroundings {
  bool address_found = true;  // the destination address has a host
  bool unheard = false;       // a request that the program has not accepted: no event reports its end
  bool peer_may_end = true;
  bool may_be_stale = true;  // the id's or the peer's QPN may be in use by another connection
  bool ends_untold = false;  // the library hides the event of the connection's end
};

// Result of a call in one shape, and the shape after the call.
struct Outcome {
  int error;
  Shape after;
};
using Outcomes = std::vector<Outcome>;
using Rule = std::function<Outcomes(const Shape&)>;

class Shapes {
 public:
  explicit Shapes(const Shape& only) : all_{only} {}

  // Adds all shapes that spontaneous transitions can reach.
  void wander(const Surroundings& surroundings);
  std::set<int> errors(const Rule& rule) const;
  // A call returned `error`. False: no shape gives this result.
  bool answered(int error, const Rule& rule);
  // The program read this event of the kernel. `then`, `error`: rule and result of the call that the library made
  // afterwards. False: no shape has this event.
  bool heard(rdma_cm_event_type event);
  bool heard(rdma_cm_event_type event, const Rule& then, int error);
  bool heard_one_of(const std::vector<rdma_cm_event_type>& events);
  // No event was pending.
  bool silent();
  // So much time has passed that all spontaneous transitions are complete.
  bool settled();

  bool can_be(Shape::Stage stage) const;
  bool must_be(Shape::Stage stage) const;
  bool can_be(Shape::Link link) const;
  // An event follows in every shape after a call with this result.
  bool will_hear_after(const Rule& rule, int error) const;
  const std::set<Shape>& all() const { return all_; }
  std::string text() const;

 private:
  bool keep(std::set<Shape> kept);

  std::set<Shape> all_;
};

// --- Rules: results of the kernel's calls.

Outcomes refused(const Shape& shape);  // EINVAL; the shape is unchanged
// The id has a device: it is bound to an address of a host.
bool has_device(const Shape& shape, bool bound_to_device);
Shape rejected(const Shape& shape);  // rejected by this side
Rule listening();                    // if the port allows listening
Rule resolving_route(bool bound_to_device, bool timeout_given);
Rule connecting(bool datagram, bool fits);
Rule accepting(bool datagram, bool fits);
// Answer to the peer's reply, or accept without QP parameters.
Rule getting_ready(bool datagram);
Rule rejecting(bool datagram, bool fits);
Rule disconnecting();
Rule notifying(bool bound_to_device, bool of_establishment);
Rule initializing(bool datagram, bool bound_to_device, std::uint32_t state);

}  // namespace rnicsim::testing
