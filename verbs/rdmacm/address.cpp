// SPDX-License-Identifier: Apache-2.0
// Addresses and routes: binding, resolution, and queries to the kernel.
#include <infiniband/ib.h>
#include <infiniband/sa.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

constexpr std::size_t kMostPaths = 6;  // three for each direction: primary, alternate, and the path of the MADs

// struct rdma_ucm_query_path_resp with an array of fixed size.
struct PathAnswer {
  std::uint32_t num_paths;
  std::uint32_t reserved;
  std::array<ibv_path_data, kMostPaths> paths;
};
static_assert(sizeof(ibv_path_data) == sizeof(ib_path_rec_data));
static_assert(offsetof(PathAnswer, paths) == sizeof(kernel::rdma_ucm_query_path_resp));

template <class Answer>
int query(Id& id, std::uint32_t what, Answer& answer) {
  const kernel::rdma_ucm_query command{.response = 0, .id = id.handle, .option = what};
  return id.events().ask(kernel::RDMA_USER_CM_CMD_QUERY, command, answer);
}

void take_address(sockaddr_storage& to, const __kernel_sockaddr_storage& from, std::size_t bytes) {
  std::memcpy(&to, &from, std::min({bytes, sizeof to, sizeof from}));
}

int bind_device(Id& id, __be64 guid) {
  if (const int error = hold_device(id.port, guid, id.device)) return error;
  id.verbs = id.device->context;
  id.pd = id.device->pd;
  return 0;
}

ibv_gid gid_of(const __kernel_sockaddr_storage& address) {
  sockaddr_ib of_gid;
  std::memcpy(&of_gid, &address, sizeof of_gid);
  ibv_gid gid;
  std::memcpy(gid.raw, of_gid.sib_addr.sib_raw, sizeof gid.raw);
  return gid;
}

// Unpacks a path record in the format of MADs. The selectors mean "exactly".
ibv_sa_path_rec unpack(const ibv_path_data& data) {
  constexpr std::uint8_t kExactly = 2;
  const ibv_path_record& from = data.path;
  const std::uint32_t flow_and_hops = __builtin_bswap32(from.flowlabel_hoplimit);
  return {.dgid = from.dgid,
          .sgid = from.sgid,
          .dlid = from.dlid,
          .slid = from.slid,
          .raw_traffic = 0,
          .flow_label = __builtin_bswap32(flow_and_hops >> 8),
          .hop_limit = std::uint8_t(flow_and_hops),
          .traffic_class = from.tclass,
          .reversible = from.reversible_numpath >> 7,
          .numb_path = 1,
          .pkey = from.pkey,
          .sl = std::uint8_t(__builtin_bswap16(from.qosclass_sl) & 0xf),
          .mtu_selector = kExactly,
          .mtu = std::uint8_t(from.mtu & 0x1f),
          .rate_selector = kExactly,
          .rate = std::uint8_t(from.rate & 0x1f),
          .packet_life_time_selector = kExactly,
          .packet_life_time = std::uint8_t(from.packetlifetime & 0x1f),
          .preference = std::uint8_t(data.flags)};
}

__be16 port_of(const sockaddr_storage& address) {
  switch (address.ss_family) {
    case AF_INET: return reinterpret_cast<const sockaddr_in&>(address).sin_port;
    case AF_INET6: return reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
    default: return 0;
  }
}

}  // namespace

// Size of a supported address; 0 for others, such as AF_IB.
socklen_t address_size(const sockaddr* address) {
  if (address == nullptr) return 0;
  switch (address->sa_family) {
    case AF_INET: return sizeof(sockaddr_in);
    case AF_INET6: return sizeof(sockaddr_in6);
    default: return 0;
  }
}

int query_address(Id& id) {
  kernel::rdma_ucm_query_addr_resp answer{};
  if (const int error = query(id, kernel::RDMA_USER_CM_QUERY_ADDR, answer)) return error;
  take_address(id.route.addr.src_storage, answer.src_addr, answer.src_size);
  take_address(id.route.addr.dst_storage, answer.dst_addr, answer.dst_size);
  if (id.device != nullptr || answer.node_guid == 0) return 0;
  if (const int error = bind_device(id, answer.node_guid)) return error;
  id.port_num = answer.port_num;
  id.route.addr.addr.ibaddr.pkey = answer.pkey;
  return 0;
}

int query_gids(Id& id) {
  kernel::rdma_ucm_query_addr_resp answer{};
  if (const int error = query(id, kernel::RDMA_USER_CM_QUERY_GID, answer)) return error;
  id.route.addr.addr.ibaddr.sgid = gid_of(answer.src_addr);
  id.route.addr.addr.ibaddr.dgid = gid_of(answer.dst_addr);
  return 0;
}

int query_paths(Id& id) {
  PathAnswer answer{};
  if (const int error = query(id, kernel::RDMA_USER_CM_QUERY_PATH, answer)) return error;
  const std::size_t count = std::min<std::size_t>(answer.num_paths, kMostPaths);
  id.paths.resize(count);
  std::transform(answer.paths.begin(), answer.paths.begin() + std::ptrdiff_t(count), id.paths.begin(), unpack);
  id.route.path_rec = count != 0 ? id.paths.data() : nullptr;
  id.route.num_paths = int(count);
  return 0;
}

int bind_address(Id& id, const sockaddr* address) {
  const socklen_t size = address_size(address);
  if (size == 0) return EINVAL;
  kernel::rdma_ucm_bind command{};
  command.id = id.handle;
  command.addr_size = std::uint16_t(size);
  std::memcpy(&command.addr, address, size);
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_BIND, command)) return error;
  if (const int error = query_address(id)) return error;
  return query_gids(id);
}

int resolve_address(Id& id, const sockaddr* source, const sockaddr* destination, int timeout_ms) {
  const socklen_t source_size = address_size(source);
  const socklen_t size = address_size(destination);
  if (size == 0 || (source != nullptr && source_size == 0)) return EINVAL;
  kernel::rdma_ucm_resolve_addr command{};
  command.id = id.handle;
  command.timeout_ms = std::uint32_t(timeout_ms);
  command.src_size = std::uint16_t(source_size);
  command.dst_size = std::uint16_t(size);
  if (source != nullptr) std::memcpy(&command.src_addr, source, source_size);
  std::memcpy(&command.dst_addr, destination, size);
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_RESOLVE_ADDR, command)) return error;
  std::memcpy(&id.route.addr.dst_storage, destination, size);
  return complete(id);
}

int resolve_route(Id& id, int timeout_ms) {
  const kernel::rdma_ucm_resolve_route command{.id = id.handle, .timeout_ms = std::uint32_t(timeout_ms)};
  if (const int error = id.events().tell(kernel::RDMA_USER_CM_CMD_RESOLVE_ROUTE, command)) return error;
  return complete(id);
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_bind_addr(rdma_cm_id* id, sockaddr* addr) {
  return guarded_minus_one([&] { return bind_address(Id::of(id), addr); });
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* src_addr, sockaddr* dst_addr, int timeout_ms) {
  return guarded_minus_one([&] { return resolve_address(Id::of(id), src_addr, dst_addr, timeout_ms); });
}

int rdma_resolve_route(rdma_cm_id* id, int timeout_ms) {
  return guarded_minus_one([&] { return resolve_route(Id::of(id), timeout_ms); });
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return port_of(id->route.addr.src_storage); }

__be16 rdma_get_dst_port(rdma_cm_id* id) { return port_of(id->route.addr.dst_storage); }

}  // extern "C"
