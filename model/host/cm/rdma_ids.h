// SPDX-License-Identifier: Apache-2.0
// The RDMA connection manager of a host's kernel, as in rdma_cm(7): ids with addresses, ports, paths and events, on top
// of the communication manager. Commands return 0 or the positive errno that Linux returns.
//
// The caller supplies time and transport, as for cm::ConnectionManager: call advance() before a command, and send the
// messages afterwards.
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
  // A device with datagrams.
  struct Device {
    abi::NetworkInterface interface;
    std::uint8_t mtu = 5;   // MTU of the port: enum ibv_mtu
    std::uint8_t rate = 0;  // enum ibv_rate
    cm::TimeCode ack_delay = 0;

    std::uint32_t gid_index(const Gid& gid) const;  // number of GIDs: the device does not have this GID
    bool has(const Gid& gid) const;
    bool is_on_link(const IpAddress& address) const;
  };
  struct Host {
    std::vector<Device> devices;                              // at least one, in the order of their numbers
    Neighbours fabric{std::vector<abi::NetworkInterface>{}};  // interfaces that address resolution finds
    Duration resolve_known;      // time to resolve an address, route or group that the host knows
    Duration resolve_neighbour;  // time to resolve an address for which the host asks the network
  };
  // queued: the channel has one more event of the id or group `number`. forgotten: all its events of `number` are void.
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

  // --- Commands. `channel` is the caller's channel.
  // nullptr: no such id on this channel, or an id of a request that the program has not received yet.
  RdmaId* find(std::uint32_t channel, std::uint32_t number);
  int create(Pasid owner, std::uint32_t channel, const rdma_ucm_create_id& wanted, std::uint32_t& number);
  std::uint32_t destroy(RdmaId& id);  // returns the number of the id's events that the program received
  int migrate(Pasid owner, std::uint32_t from, std::uint32_t number, std::uint32_t to, std::uint32_t& events_reported);
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

  // nullptr: no device of the host has the GID.
  const Device* device_with(const Gid& gid) const;
  // `id` must be bound to a device.
  const Device& device_of(const RdmaId& id) const;

 private:
  // An event that the program has not received. The event of a request is queued for its listener.
  struct QueuedEvent {
    std::uint32_t id;     // the id whose event counter it raises
    std::uint32_t group;  // 0: not an event of a group
    rdma_ucm_event_resp event;
  };
  enum class Step : std::uint8_t { address, route, group };
  struct Task {
    std::uint32_t number;
    Step step;
    int error = 0;
    std::uint32_t group = 0;
    const Device* device = nullptr;  // Step::address: the device towards the address
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
    const Device* device = nullptr;  // outgoing device
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
  std::map<std::uint64_t, std::uint32_t> services_;          // number of listening ids by service ID
  std::map<std::uint32_t, std::deque<QueuedEvent>> events_;  // by channel
  std::multimap<Duration, Task> tasks_;
  std::set<Gid> neighbours_;  // addresses that the host has resolved before
  std::uint32_t next_number_ = 1;
};

}  // namespace rnicsim::host
