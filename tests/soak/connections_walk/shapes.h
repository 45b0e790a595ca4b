// What the kernel can have made of an rdma_cm_id, as far as its program can know: a set of shapes. What may happen by
// itself adds shapes, what a call answers and what an event says takes those away that would have done otherwise. With
// none left, somebody is wrong.
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
  // Of its connection or lookup; `over`: it has been, and has ended.
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
  std::vector<rdma_cm_event_type> unread{};  // as the kernel tells them

  auto operator<=>(const Shape&) const = default;
  bool has_connection() const { return link != Link::none; }
};

// What decides on what may happen by itself.
struct Surroundings {
  bool address_found = true;  // whom it asks for is somebody
  bool unheard = false;       // a request that was not accepted: its end is told to nobody
  bool peer_may_end = true;
  bool may_be_stale = true;  // its QPN, or the peer's, is no one's alone
  bool ends_untold = false;  // the library keeps the connection's end to itself
};

// What a call answers of a shape, and leaves.
struct Outcome {
  int error;
  Shape after;
};
using Outcomes = std::vector<Outcome>;
using Rule = std::function<Outcomes(const Shape&)>;

class Shapes {
 public:
  explicit Shapes(const Shape& only) : all_{only} {}

  // Whatever may have happened by now.
  void wander(const Surroundings& surroundings);
  std::set<int> errors(const Rule& rule) const;
  // False: nobody answers so.
  bool answered(int error, const Rule& rule);
  // A program heard that event of the kernel's; with a rule for what the library did then, of which `error` came.
  bool heard(rdma_cm_event_type event);
  bool heard(rdma_cm_event_type event, const Rule& then, int error);
  bool heard_one_of(const std::vector<rdma_cm_event_type>& events);
  // There was nothing to hear.
  bool silent();
  // So much time has passed that nothing goes on any more.
  bool settled();

  bool can_be(Shape::Stage stage) const;
  bool must_be(Shape::Stage stage) const;
  bool can_be(Shape::Link link) const;
  // An event comes, whatever else does, after a call of that outcome.
  bool will_hear_after(const Rule& rule, int error) const;
  const std::set<Shape>& all() const { return all_; }
  std::string text() const;

 private:
  bool keep(std::set<Shape> kept);

  std::set<Shape> all_;
};

// --- What the kernel answers.

Outcomes refused(const Shape& shape);  // as invalid: nothing changes
// Its ability to reach the device, whatever the shape: bound to an address of its own.
bool has_device(const Shape& shape, bool bound_to_device);
Shape rejected(const Shape& shape);  // by its own side
Rule listening();                    // where the port allows it
Rule resolving_route(bool bound_to_device, bool timeout_given);
Rule connecting(bool datagram, bool fits);
Rule accepting(bool datagram, bool fits);
// Of an answer to the peer's reply, or without a QP's parameters.
Rule getting_ready(bool datagram);
Rule rejecting(bool datagram, bool fits);
Rule disconnecting();
Rule notifying(bool bound_to_device, bool of_establishment);
Rule initializing(bool datagram, bool bound_to_device, std::uint32_t state);

}  // namespace rnicsim::testing
