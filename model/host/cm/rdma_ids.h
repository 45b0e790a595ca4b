// The RDMA connection manager of a host's kernel, as rdma_cm(7) has it: ids with addresses, ports, paths and events, on
// top of the communication manager. What its commands answer is 0 or a positive errno, and what Linux answers.
//
// Time and the way to the peer are its caller's, as cm::ConnectionManager's are: advance() before, messages after.
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "model/abi/host_files.h"
#include "model/cm/connection_manager.h"
#include "model/host/cm/event_types.h"
#include "model/host/cm/port_table.h"
#include "model/host/cm/rdma_id.h"
#include "model/host/gids.h"

namespace rnicsim::host {

class RdmaIds {
 public:
  // One that connections can use.
  struct Device {
    abi::NetworkInterface interface;
    std::uint8_t mtu = 5;                  // of its port: enum ibv_mtu
    std::uint8_t rate = 0;                 // enum ibv_rate
    cm::TimeCode ack_delay = 0;

    std::uint32_t gid_index(const Gid& gid) const;  // behind the last: it has no such GID
    bool has(const Gid& gid) const;
    bool is_on_link(const IpAddress& address) const;
  };
  struct Host {
    std::vector<Device> devices;           // at least one, in the order of their numbers
    Neighbours fabric{std::vector<abi::NetworkInterface>{}};  // whom address resolution finds
    Duration resolve_known;                // an address, a route or a group, of what the host knows
    Duration resolve_neighbour;            // an address that it has to ask the network for
  };
  // The channel has one more event of the id or group `number`; what it had of it is gone.
  struct EventSink {
    std::function<void(std::uint32_t channel, std::uint32_t number)> queued;
    std::function<void(std::uint32_t channel, std::uint32_t number)> forgotten;
  };

  RdmaIds(const Host& host, EventSink sink);

  void advance(Duration now);
  std::optional<Duration> next_deadline() const;
  std::optional<cm::Outgoing> next_message() { return manager_.next_message(); }
  std::optional<cm::Transition> next_transition() { return manager_.next_transition(); }
  void receive(const cm::Route& route, const cm::Envelope& envelope);
  const cm::ConnectionManager& manager() const { return manager_; }
  std::size_t size() const { return ids_.size(); }

  // --- Commands. `channel` is the caller's.
  // nullptr: none, of another channel, or of a request that the program has not heard of.
  RdmaId* find(std::uint32_t channel, std::uint32_t number);
  int create(Pasid owner, std::uint32_t channel, const rdma_ucm_create_id& wanted, std::uint32_t& number);
  std::uint32_t destroy(RdmaId& id);       // events that the program has got of it
  int migrate(Pasid owner, std::uint32_t from, std::uint32_t number, std::uint32_t to,
              std::uint32_t& events_reported);
  void close_channel(std::uint32_t channel);
  void close_process(Pasid process);

  int bind(RdmaId& id, const IpAddress& address);
  int resolve_address(RdmaId& id, const std::optional<IpAddress>& source, const IpAddress& destination,
                      Duration timeout);
  int resolve_route(RdmaId& id);
  int listen(RdmaId& id, std::uint32_t backlog);
  int connect(RdmaId& id, const rdma_ucm_conn_param& params);
  int accept(RdmaId& id, std::uint64_t uid, const rdma_ucm_conn_param& params);
  int reject(RdmaId& id, std::uint8_t reason, std::span<const std::uint8_t> private_data);
  int disconnect(RdmaId& id);
  int notify(RdmaId& id, std::uint32_t event);
  int set_option(RdmaId& id, std::uint32_t level, std::uint32_t name, std::span<const std::byte> value);
  int init_qp_attributes(RdmaId& id, std::uint32_t state, ib_uverbs_qp_attr& attributes);
  int join(RdmaId& id, std::uint64_t uid, const IpAddress& address, std::uint16_t flags, std::uint32_t& number);
  int leave(std::uint32_t channel, std::uint32_t number, std::uint32_t& events_reported);
  int next_event(std::uint32_t channel, rdma_ucm_event_resp& event);

  // nullptr: none of the host's.
  const Device* device_with(const Gid& gid) const;
  // Of an id that is bound to one.
  const Device& device_of(const RdmaId& id) const;

 private:
  // One that a program has not got yet. The id of a request is told of through its listener.
  struct QueuedEvent {
    std::uint32_t id;                      // that it counts for
    std::uint32_t group;                   // or 0
    rdma_ucm_event_resp event;
  };
  enum class Step : std::uint8_t { address, route, group };
  struct Task {
    std::uint32_t number;
    Step step;
    int error = 0;
    std::uint32_t group = 0;
    const Device* device = nullptr;        // of an address
  };

  RdmaId& add(Pasid owner, std::uint32_t channel, std::uint64_t uid);
  void destroy_where(const std::function<bool(const RdmaId&)>& doomed);
  RdmaId* by_connection(cm::ConnectionId connection);
  PortTable& ports_of(const RdmaId& id) { return ports_[id.port_space]; }
  static std::uint64_t service_id(const RdmaId& id);
  bool is_own(const IpAddress& address) const { return device_with(address.bytes) != nullptr; }
  int check_bindable(const IpAddress& address) const;
  static PortTable::Binding binding_of(const RdmaId& id, const IpAddress& address);
  int take_port(RdmaId& id, const IpAddress& address);
  int bind_wildcard(RdmaId& id, bool ipv6);
  struct Resolution {
    int error;
    Duration delay;
    const Device* device = nullptr;        // by which the way leads
  };
  Resolution resolution_of(const RdmaId& id, const IpAddress& destination, Duration timeout);
  const Device* device_towards(const RdmaId& id, const IpAddress& destination) const;
  void make_path(RdmaId& id);
  void drop_connection(RdmaId& id);
  std::uint32_t random24() { return random_() & 0xffffff; }

  void later(Duration delay, const Task& task);
  void do_task(const Task& task);
  void finish_address(RdmaId& id, const Task& task);
  void finish_route(RdmaId& id);
  void finish_group(RdmaId& id, std::uint32_t group);
  void drop_tasks(std::uint32_t number);

  void take_events();
  void on(const cm::Event& event);
  void on_request(const cm::Event& event);
  RdmaId* listener_of(std::uint64_t service_id, const IpAddress& local);
  void tell(RdmaId& id, CmEventType event, int status);
  void queue(RdmaId& id, std::uint32_t group, const rdma_ucm_event_resp& event);
  void drop_events(RdmaId& id);
  static void set_address_handle(const Device& device, const cm::Route& route, ib_uverbs_ah_attr& handle);

  const Host host_;
  const EventSink sink_;
  Duration now_;
  cm::ConnectionManager manager_;
  std::mt19937 random_;
  std::map<std::uint32_t, RdmaId> ids_;
  std::map<cm::ConnectionId, std::uint32_t> by_connection_;
  std::map<rdma_ucm_port_space, PortTable> ports_;
  std::map<std::uint64_t, std::uint32_t> services_;  // ids that listen to each
  std::map<std::uint32_t, std::deque<QueuedEvent>> events_;  // by channel
  std::multimap<Duration, Task> tasks_;
  std::set<Gid> neighbours_;               // whose addresses the host knows
  std::uint32_t next_number_ = 1;
};

}  // namespace rnicsim::host
