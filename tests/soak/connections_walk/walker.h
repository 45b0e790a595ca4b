// SPDX-License-Identifier: Apache-2.0
// One thread of the walk: draws a call, makes the call, and compares the result with the results that the id's model
// allows.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/host/software_process.h"
#include "tests/soak/connections_walk/idents.h"
#include "tests/soak/dice.h"

namespace rnicsim::testing {

class ConnectionWalker {
 public:
  // `synchronous`: ids without channels; calls wait.
  ConnectionWalker(ConnectionTown& town, std::uint32_t index, std::uint32_t host, bool synchronous);
  ConnectionWalker(const ConnectionWalker&) = delete;
  ConnectionWalker& operator=(const ConnectionWalker&) = delete;

  void open(host::SoftwareProcess& process);
  void step();
  std::uint64_t steps() const { return step_; }
  bool synchronous() const { return synchronous_; }
  // End of the walk, in this order. All walkers complete a phase before the next phase begins.
  void settle();  // called twice: settling causes further events
  void expect_settled();
  void destroy_all();
  void close();

 private:
  using Known = std::shared_ptr<Ident>;
  // An event that the program has not acknowledged, and the object that counts it.
  struct Held {
    rdma_cm_event* event;
    Ident* owner;
    Joined* group;
  };

  // --- Reports.
  void note(const std::string& move);
  void fail(const std::string& what);
  bool expect(const std::string& call, int answer, const std::set<int>& allowed);
  bool validate(Ident& ident, const std::string& call, int answer, const Rule& rule);
  // Like validate(), for a call in which a synchronous id waits.
  bool validate_waiting(const Known& ident, const std::string& call, int answer, const Rule& rule);
  bool may_wait(Ident& ident, const Rule& rule);
  static int errno_of(int result) { return result == 0 ? 0 : errno; }

  // --- Ids and channels (making.cpp).
  void make_ident();
  void make_endpoint();
  void adopt(const Known& ident, rdma_cm_id* id);
  void destroy(const Known& ident);
  void migrate(const Known& ident);
  void make_channel(rdma_event_channel*& channel);
  void renew_channel();
  void set_option(const Known& ident);

  // --- Calls (calls.cpp).
  void progress(const Known& ident);
  void call_anything(const Known& ident);
  void bind(const Known& ident, const Place& place);
  void listen(const Known& ident);
  void resolve_address(const Known& ident, const std::optional<Place>& source, const Place& destination);
  void resolve_route(const Known& ident, int timeout_ms);
  void connect(const Known& ident);
  void accept(const Known& ident);
  void establish(const Known& ident);
  void reject(const Known& ident);
  void disconnect(const Known& ident);
  void notify(const Known& ident);
  void init_qp_attributes(const Known& ident);
  rdma_conn_param draw_parameters(Ident& ident, std::vector<std::uint8_t>& data, std::size_t most);
  void take_qpn(const Known& ident, std::uint32_t qpn);
  Place draw_local();
  Place draw_remote(const Ident& ident);
  sockaddr* written(const Place& place);

  // --- QPs, groups and messages (queue_pairs.cpp).
  void create_qp(const Known& ident);
  void destroy_qp(const Known& ident);
  // The QP's state is `state`, or ERR after an error of the device.
  void expect_state(const Ident& ident, ibv_qp_state state);
  void create_srq(const Known& ident);
  void join(const Known& ident);
  void leave(const Known& ident, bool ipv6);
  void post(Ident& ident);
  void poll(Ident& ident);
  void complete(Ident& ident, const ibv_wc& wc);

  // --- Events (events.cpp).
  void take_events();
  bool read_event(rdma_event_channel* channel, const std::vector<Known>& whose);
  void take_request(const Known& listener);
  void hear(const Known& ident, rdma_cm_event& event);
  void hear_ready(Ident& ident, rdma_cm_event& event);
  void hear_group(Ident& ident, rdma_cm_event& event);
  void check_answer(const Ident& ident, const rdma_cm_event& event);
  void check_rejection(const Ident& ident, const rdma_cm_event& event);
  void check_failure(const Ident& ident, const rdma_cm_event& event);
  Known hear_request(const Known& listener, const rdma_cm_event& event);
  void acknowledge_some();
  void acknowledge_all_of(const Ident& ident);
  void acknowledge(std::size_t which);

  Known any() { return idents_.empty() ? nullptr : dice_.one_of(idents_); }
  Known dispensable();
  std::vector<Known> on_channel(std::size_t channel) const;
  std::string name(const Ident& ident) const {
    return "id " + std::to_string(index_) + "." + std::to_string(ident.token & 0xffffffff);
  }
  Ports& ports() { return town_.ports[host_]; }
  void pass(std::int64_t nanoseconds);

  static constexpr std::size_t kChannels = 2;
  static constexpr std::size_t kMostIdents = 14;
  static constexpr std::uint32_t kDepth = 8, kCell = 64, kCells = 4096;

  ConnectionTown& town_;
  const std::uint32_t index_;
  const std::uint32_t host_;
  const bool synchronous_;
  Dice dice_;
  host::SoftwareProcess* process_ = nullptr;
  std::uint64_t step_ = 0;
  bool walks_ = true;
  std::uint64_t next_token_;
  std::vector<rdma_event_channel*> channels_;
  std::vector<Known> idents_;
  std::vector<Held> held_;
  sockaddr_storage address_{};
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  std::vector<std::uint8_t> cells_;
  std::uint32_t free_cell_ = 0;
};

}  // namespace rnicsim::testing
