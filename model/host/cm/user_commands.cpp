// SPDX-License-Identifier: Apache-2.0
#include "model/host/cm/user_commands.h"

#include <rdma/ib_user_sa.h>
#include <rdma/rdma_user_cm.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cerrno>
#include <cstring>

namespace rnicsim::host {
namespace {

// A command and the room for its response.
class Request {
 public:
  Request(RdmaIds& ids, const UserChannel& channel, std::span<const std::byte> input, std::span<std::byte> output)
      : ids_(ids), channel_(channel), input_(input), output_(output) {}

  int create() {
    const auto command = read<rdma_ucm_create_id>();
    rdma_ucm_create_id_resp response{};
    if (!command || !has_room_for(response)) return EINVAL;
    const int error = ids_.create(channel_.process, channel_.number, *command, response.id);
    return error != 0 ? error : answer(response);
  }

  int destroy() {
    return with<rdma_ucm_destroy_id>([&](RdmaId& id, const auto&) {
      rdma_ucm_destroy_id_resp response{};
      if (!has_room_for(response)) return EINVAL;
      response.events_reported = ids_.destroy(id);
      return answer(response);
    });
  }

  int bind_ip() {
    return with<rdma_ucm_bind_ip>([&](RdmaId& id, const auto& command) {
      return with_address(&command.addr, sizeof command.addr,
                          [&](const IpAddress& address) { return ids_.bind(id, address); });
    });
  }

  int bind() {
    return with<rdma_ucm_bind>([&](RdmaId& id, const auto& command) {
      if (command.addr_size > sizeof command.addr) return EINVAL;
      return with_address(&command.addr, command.addr_size,
                          [&](const IpAddress& address) { return ids_.bind(id, address); });
    });
  }

  int resolve_ip() {
    return with<rdma_ucm_resolve_ip>([&](RdmaId& id, const auto& command) {
      const std::size_t source_bytes = command.src_addr.sin6_family != 0 ? sizeof command.src_addr : 0;
      return resolve(id, command, source_bytes, sizeof command.dst_addr);
    });
  }

  int resolve_address() {
    return with<rdma_ucm_resolve_addr>([&](RdmaId& id, const auto& command) {
      if (command.src_size > sizeof command.src_addr || command.dst_size > sizeof command.dst_addr) return EINVAL;
      return resolve(id, command, command.src_size, command.dst_size);
    });
  }

  int resolve_route() {
    return with<rdma_ucm_resolve_route>([&](RdmaId& id, const auto& command) {
      return command.timeout_ms == 0 || !id.device ? EINVAL : ids_.resolve_route(id);
    });
  }

  int query_route() {
    return with<rdma_ucm_query>([&](RdmaId& id, const auto&) {
      rdma_ucm_query_route_resp response{};
      copy_address(id.source, response.src_addr);
      if (id.destination) copy_address(*id.destination, response.dst_addr);
      if (!id.device) return answer(response);
      tell_device(id, response);
      if (id.path) {
        response.num_paths = 1;
        response.ib_route[0] = path_record(*id.path);
      }
      return answer(response);
    });
  }

  int query() {
    return with<rdma_ucm_query>([&](RdmaId& id, const auto& command) {
      switch (command.option) {
        case RDMA_USER_CM_QUERY_ADDR: return query_address(id);
        case RDMA_USER_CM_QUERY_PATH: return query_path(id);
        case RDMA_USER_CM_QUERY_GID: return query_gid(id);
        default: return ENOSYS;
      }
    });
  }

  int listen() {
    return with<rdma_ucm_listen>([&](RdmaId& id, const auto& command) { return ids_.listen(id, command.backlog); });
  }

  int connect() {
    return with_device<rdma_ucm_connect>([&](RdmaId& id, const auto& command) {
      return command.conn_param.valid ? ids_.connect(id, command.conn_param) : EINVAL;
    });
  }

  int accept() {
    return with_device<rdma_ucm_accept>(
        [&](RdmaId& id, const auto& command) { return ids_.accept(id, command.uid, command.conn_param); });
  }

  int reject() {
    return with_device<rdma_ucm_reject>([&](RdmaId& id, const auto& command) {
      return ids_.reject(id, command.reason, {command.private_data, command.private_data_len});
    });
  }

  int disconnect() {
    return with_device<rdma_ucm_disconnect>([&](RdmaId& id, const auto&) { return ids_.disconnect(id); });
  }

  int init_qp_attributes() {
    return with_device<rdma_ucm_init_qp_attr>([&](RdmaId& id, const auto& command) {
      ib_uverbs_qp_attr attributes{};
      const int error = ids_.init_qp_attributes(id, command.qp_state, attributes);
      return error != 0 ? error : answer(attributes);
    });
  }

  int get_event() {
    rdma_ucm_event_resp event{};
    if (!has_room_for(event)) return EINVAL;
    const int error = ids_.next_event(channel_.number, event);
    return error != 0 ? error : answer(event);
  }

  int set_option() {
    return with<rdma_ucm_set_option>([&](RdmaId& id, const auto& command) {
      const auto value = input_.subspan(sizeof command);
      if (value.size() != command.optlen) return EINVAL;
      return ids_.set_option(id, command.level, command.optname, value);
    });
  }

  int notify() {
    return with_device<rdma_ucm_notify>(
        [&](RdmaId& id, const auto& command) { return ids_.notify(id, command.event); });
  }

  int join_ip() {
    return with<rdma_ucm_join_ip_mcast>([&](RdmaId& id, const auto& command) {
      return join(id, command.uid, command.addr, sizeof command.addr, RDMA_MC_JOIN_FLAG_FULLMEMBER);
    });
  }

  int join() {
    return with<rdma_ucm_join_mcast>([&](RdmaId& id, const auto& command) {
      if (command.addr_size > sizeof command.addr) return EINVAL;
      return join(id, command.uid, command.addr, command.addr_size, command.join_flags);
    });
  }

  int leave() {
    const auto command = read<rdma_ucm_destroy_id>();
    rdma_ucm_destroy_id_resp response{};
    if (!command || !has_room_for(response)) return EINVAL;
    const int error = ids_.leave(channel_.number, command->id, response.events_reported);
    return error != 0 ? error : answer(response);
  }

  int migrate() {
    const auto command = read<rdma_ucm_migrate_id>();
    rdma_ucm_migrate_resp response{};
    if (!command || !has_room_for(response)) return EINVAL;
    const int error =
        ids_.migrate(channel_.process, command->fd, command->id, channel_.number, response.events_reported);
    return error != 0 ? error : answer(response);
  }

 private:
  template <class Command>
  std::optional<Command> read() const {
    if (input_.size() < sizeof(Command)) return std::nullopt;
    Command command;
    std::memcpy(static_cast<void*>(&command), input_.data(), sizeof command);
    return command;
  }

  template <class Command, class Action>
  int with(Action action) {
    const auto command = read<Command>();
    if (!command) return EINVAL;
    RdmaId* id = ids_.find(channel_.number, command->id);
    return id != nullptr ? action(*id, *command) : ENOENT;
  }

  template <class Command, class Action>
  int with_device(Action action) {
    return with<Command>([&](RdmaId& id, const Command& command) { return id.device ? action(id, command) : EINVAL; });
  }

  template <class Action>
  static int with_address(const void* sockaddr, std::size_t bytes, Action action) {
    IpAddress address;
    const int error = IpAddress::parse({static_cast<const std::byte*>(sockaddr), bytes}, address);
    return error != 0 ? error : action(address);
  }

  // Checked before a command changes anything.
  template <class Response>
  bool has_room_for(const Response&) const {
    return output_.size() >= sizeof(Response);
  }
  template <class Response>
  int answer(const Response& response) {
    if (!has_room_for(response)) return EINVAL;
    std::memcpy(output_.data(), &response, sizeof response);
    return 0;
  }

  template <class Command>
  int resolve(RdmaId& id, const Command& command, std::size_t source_bytes, std::size_t destination_bytes) {
    const Duration timeout{std::int64_t{command.timeout_ms} * 1'000'000'000};
    return with_address(&command.dst_addr, destination_bytes, [&](const IpAddress& destination) {
      if (source_bytes == 0) return ids_.resolve_address(id, std::nullopt, destination, timeout);
      return with_address(&command.src_addr, source_bytes, [&](const IpAddress& source) {
        return ids_.resolve_address(id, source, destination, timeout);
      });
    });
  }

  int join(RdmaId& id, std::uint64_t uid, const auto& sockaddr, std::size_t bytes, std::uint16_t flags) {
    return with_address(&sockaddr, bytes, [&](const IpAddress& address) {
      rdma_ucm_create_id_resp response{};
      if (!has_room_for(response)) return EINVAL;
      const int error = ids_.join(id, uid, address, flags, response.id);
      return error != 0 ? error : answer(response);
    });
  }

  // <rdma/rdma_user_cm.h> carries GUIDs in network byte order.
  void tell_device(const RdmaId& id, auto& response) const {
    response.node_guid = boost::endian::native_to_big(abi::node_guid_of(ids_.device_of(id).interface));
    response.ibdev_index = *id.device;
    response.port_num = 1;
  }

  static void copy_address(const IpAddress& address, auto& field) {
    const auto storage = address.to_sockaddr();
    std::memcpy(&field, &storage, std::min(sizeof field, sizeof storage));
  }

  static ib_user_path_rec path_record(const IdPath& path) {
    constexpr std::uint8_t kExactly = 2;  // IB_SA_EQ
    ib_user_path_rec record{};
    std::ranges::copy(path.route.remote, record.dgid);
    std::ranges::copy(path.route.local, record.sgid);
    record.flow_label = boost::endian::native_to_big(path.route.flow_label);
    record.reversible = boost::endian::native_to_big(1u);
    record.mtu = path.mtu;
    record.pkey = 0xffff;
    record.hop_limit = path.route.hop_limit;
    record.traffic_class = path.route.traffic_class;
    record.numb_path = 1;
    record.sl = path.route.service_level;
    record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly;
    record.rate = path.rate;
    record.packet_life_time = path.packet_life_time;
    return record;
  }

  rdma_ucm_query_addr_resp addresses_of(const RdmaId& id) const {
    rdma_ucm_query_addr_resp response{};
    if (!id.device) return response;
    tell_device(id, response);
    response.pkey = 0xffff;
    return response;
  }

  int query_address(const RdmaId& id) {
    auto response = addresses_of(id);
    response.src_size = std::uint16_t(id.source.sockaddr_bytes());
    copy_address(id.source, response.src_addr);
    if (id.destination) {
      response.dst_size = std::uint16_t(id.destination->sockaddr_bytes());
      copy_address(*id.destination, response.dst_addr);
    }
    return answer(response);
  }

  int query_gid(const RdmaId& id) {
    auto response = addresses_of(id);
    const auto put = [&](const Gid& gid, std::uint16_t port, auto& size, auto& field) {
      // struct sockaddr_ib of <rdma/ib.h>.
      struct {
        std::uint16_t family;
        std::uint16_t pkey;
        std::uint32_t flow_information;
        Gid address;
        std::uint64_t service_id;
        std::uint64_t service_mask;
        std::uint64_t scope;
      } ib{27, 0xffff, 0, gid, boost::endian::native_to_big(std::uint64_t(id.port_space) << 16 | port), ~0ull, 0};
      static_assert(sizeof ib == 48);
      size = sizeof ib;
      std::memcpy(&field, &ib, sizeof ib);
    };
    put(id.path ? id.path->route.local : id.source.bytes, id.source.port, response.src_size, response.src_addr);
    if (id.destination) put(id.destination->bytes, id.destination->port, response.dst_size, response.dst_addr);
    return answer(response);
  }

  // The path record in the SA's form (IBTA vol 1, 15.2.5.16), after the response's head.
  int query_path(const RdmaId& id) {
    constexpr std::uint32_t kFlags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
    rdma_ucm_query_path_resp head{};
    if (!id.path) return answer(head);
    std::array<std::byte, sizeof head + sizeof(ib_path_rec_data)> response{};
    head.num_paths = 1;
    ib_path_rec_data data{};
    data.flags = kFlags;
    const IdPath& path = *id.path;
    std::array<std::uint8_t, sizeof data.path_rec> record{};
    std::ranges::copy(path.route.remote, record.data() + 8);
    std::ranges::copy(path.route.local, record.data() + 24);
    const std::uint32_t flow = path.route.flow_label << 8 | path.route.hop_limit;
    for (std::size_t i = 0; i < 4; ++i) record[44 + i] = std::uint8_t(flow >> (24 - 8 * i));
    record[48] = path.route.traffic_class;
    record[49] = 0x80 | 1;           // reversible, one path
    record[50] = record[51] = 0xff;  // P_Key
    record[53] = path.route.service_level;
    record[54] = std::uint8_t(0x80 | path.mtu);
    record[55] = std::uint8_t(0x80 | path.rate);
    record[56] = std::uint8_t(0x80 | path.packet_life_time);
    std::memcpy(data.path_rec, record.data(), record.size());
    std::memcpy(response.data(), &head, sizeof head);
    std::memcpy(response.data() + sizeof head, &data, sizeof data);
    return answer(response);
  }

  RdmaIds& ids_;
  const UserChannel channel_;
  std::span<const std::byte> input_;
  std::span<std::byte> output_;
};

}  // namespace

int execute_user_command(RdmaIds& ids, const UserChannel& channel, std::uint32_t command,
                         std::span<const std::byte> input, std::span<std::byte> output) {
  Request request(ids, channel, input, output);
  switch (command) {
    case RDMA_USER_CM_CMD_CREATE_ID: return request.create();
    case RDMA_USER_CM_CMD_DESTROY_ID: return request.destroy();
    case RDMA_USER_CM_CMD_BIND_IP: return request.bind_ip();
    case RDMA_USER_CM_CMD_RESOLVE_IP: return request.resolve_ip();
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE: return request.resolve_route();
    case RDMA_USER_CM_CMD_QUERY_ROUTE: return request.query_route();
    case RDMA_USER_CM_CMD_CONNECT: return request.connect();
    case RDMA_USER_CM_CMD_LISTEN: return request.listen();
    case RDMA_USER_CM_CMD_ACCEPT: return request.accept();
    case RDMA_USER_CM_CMD_REJECT: return request.reject();
    case RDMA_USER_CM_CMD_DISCONNECT: return request.disconnect();
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: return request.init_qp_attributes();
    case RDMA_USER_CM_CMD_GET_EVENT: return request.get_event();
    case RDMA_USER_CM_CMD_SET_OPTION: return request.set_option();
    case RDMA_USER_CM_CMD_NOTIFY: return request.notify();
    case RDMA_USER_CM_CMD_JOIN_IP_MCAST: return request.join_ip();
    case RDMA_USER_CM_CMD_LEAVE_MCAST: return request.leave();
    case RDMA_USER_CM_CMD_MIGRATE_ID: return request.migrate();
    case RDMA_USER_CM_CMD_QUERY: return request.query();
    case RDMA_USER_CM_CMD_BIND: return request.bind();
    case RDMA_USER_CM_CMD_RESOLVE_ADDR: return request.resolve_address();
    case RDMA_USER_CM_CMD_JOIN_MCAST: return request.join();
    default: return ENOSYS;
  }
}

}  // namespace rnicsim::host
