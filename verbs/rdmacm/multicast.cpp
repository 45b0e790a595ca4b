// SPDX-License-Identifier: Apache-2.0
// Multicast groups. The QP is attached to a group when the program reads the MULTICAST_JOIN event.
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

std::unique_ptr<Group> take_group(Id& id, const auto& matches) {
  const std::lock_guard guard(id.groups_mutex);
  const auto found = std::ranges::find_if(id.groups, [&](const auto& group) { return matches(*group); });
  if (found == id.groups.end()) return nullptr;
  std::unique_ptr<Group> group = std::move(*found);
  id.groups.erase(found);
  return group;
}

Group& add_group(Id& id, const sockaddr* address, socklen_t size, std::uint16_t join_flags, void* context) {
  auto group = std::make_unique<Group>();
  group->id = &id;
  group->context = context;
  group->join_flags = join_flags;
  std::memcpy(&group->address, address, size);
  const std::lock_guard guard(id.groups_mutex);
  return *id.groups.emplace_front(std::move(group));
}

int ask_to_join(Id& id, Group& group, socklen_t size) {
  kernel::rdma_ucm_join_mcast command{};
  command.uid = reinterpret_cast<std::uintptr_t>(&group);
  command.id = id.handle;
  command.addr_size = std::uint16_t(size);
  command.join_flags = group.join_flags;
  std::memcpy(&command.addr, &group.address, size);
  kernel::rdma_ucm_create_id_resp response{};
  if (const int error = id.events().ask(kernel::RDMA_USER_CM_CMD_JOIN_MCAST, command, response)) return error;
  group.handle = response.id;
  return 0;
}

int join(Id& id, const sockaddr* address, std::uint16_t join_flags, void* context) {
  const socklen_t size = address_size(address);
  if (size == 0) return EINVAL;
  Group& group = add_group(id, address, size, join_flags, context);
  if (const int error = ask_to_join(id, group, size)) {
    take_group(id, [&](const Group& other) { return &other == &group; });
    return error;
  }
  return complete(id);
}

int join(Id& id, const rdma_cm_join_mc_attr_ex& attributes, void* context) {
  if (attributes.comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED) return ENOTSUP;
  constexpr std::uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if ((attributes.comp_mask & kNeeded) != kNeeded || attributes.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return EINVAL;
  return join(id, attributes.addr, std::uint16_t(attributes.join_flags), context);
}

int leave(Id& id, const sockaddr* address) {
  const socklen_t size = address_size(address);
  if (size == 0) return EINVAL;
  const auto group =
      take_group(id, [&](const Group& joined) { return std::memcmp(&joined.address, address, size) == 0; });
  if (group == nullptr) return EADDRNOTAVAIL;
  if (id.qp != nullptr && group->attached) ibv_detach_mcast(id.qp, &group->gid, 0);
  const kernel::rdma_ucm_destroy_id command{.response = 0, .id = group->handle, .reserved = 0};
  kernel::rdma_ucm_destroy_id_resp response{};
  if (const int error = id.events().ask(kernel::RDMA_USER_CM_CMD_LEAVE_MCAST, command, response)) return error;
  id.events().forget(group->handle);
  wait_acknowledged(id.port, group->events_completed, response.events_reported, "rdma_leave_multicast");
  return 0;
}

}  // namespace

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context) {
  return guarded_minus_one([&] { return join(Id::of(id), addr, RDMA_MC_JOIN_FLAG_FULLMEMBER, context); });
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* mc_join_attr, void* context) {
  return guarded_minus_one([&] { return join(Id::of(id), *mc_join_attr, context); });
}

int rdma_leave_multicast(rdma_cm_id* id, sockaddr* addr) {
  return guarded_minus_one([&] { return leave(Id::of(id), addr); });
}

}  // extern "C"
