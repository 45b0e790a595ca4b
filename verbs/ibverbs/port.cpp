// SPDX-License-Identifier: Apache-2.0
// Ports, their GIDs and P_Keys.
#include <infiniband/verbs.h>
#undef ibv_query_port

#include <algorithm>
#include <cstring>

#include "model/abi/host_files.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/device.h"

// struct ibv_port_attr before port_cap_flags2 was added, as the header's inline ibv_query_port passes it.
struct _compat_ibv_port_attr {
  char bytes[offsetof(ibv_port_attr, port_cap_flags2)];
};

namespace rnicsim::verbs {

namespace {

constexpr std::uint16_t kDefaultPkey = 0xffff;
static_assert(abi::kPortCapabilities == (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS));

int port_attributes(Context& context, std::uint32_t port, ibv_port_attr& to) {
  if (!context.has_port(port)) return EINVAL;
  abi::PortAttributes from;
  if (const int error = context.execute(provider::header(abi::CommandOpcode::query_port, port), from)) return error;
  to = {};
  to.state = ibv_port_state(from.state);
  to.max_mtu = ibv_mtu(from.max_mtu);
  to.active_mtu = ibv_mtu(from.active_mtu);
  to.gid_tbl_len = from.gid_table_length;
  to.port_cap_flags = abi::kPortCapabilities;
  to.max_msg_sz = from.max_message;
  to.bad_pkey_cntr = from.pkey_violations;
  to.qkey_viol_cntr = from.qkey_violations;
  to.pkey_tbl_len = from.pkey_table_length;
  to.max_vl_num = 1;
  to.active_width = from.active_width;
  to.active_speed = from.active_speed;
  to.phys_state = from.physical_state;
  abi::NetworkInterface host;
  if (context.port.port_info(host) == 0) to.lid = host.lid;
  to.link_layer = IBV_LINK_LAYER_ETHERNET;
  to.flags = IBV_QPF_GRH_REQUIRED;
  return 0;
}

void fill(const abi::GidEntry& from, std::uint32_t port, std::uint32_t index, ibv_gid_entry& to) {
  to = {};
  std::memcpy(to.gid.raw, from.gid, sizeof to.gid.raw);
  to.gid_index = index;
  to.port_num = port;
  to.gid_type = from.type;
}

int gid_ex(Context& context, std::uint32_t port, std::uint32_t index, ibv_gid_entry& entry) {
  abi::GidEntry found;
  const int error = query_gid_entry(context, port, index, found);
  if (error == 0) fill(found, port, index, entry);
  return error;
}

// Calls `visit` for the valid entries of all ports until `visit` returns false.
template <class Visit>
int for_each_gid(Context& context, Visit&& visit) {
  for (std::uint32_t port = 1; context.has_port(port); ++port) {
    ibv_port_attr attributes;
    if (const int error = port_attributes(context, port, attributes)) return error;
    for (std::uint32_t index = 0; index < std::uint32_t(attributes.gid_tbl_len); ++index) {
      ibv_gid_entry entry;
      const int error = gid_ex(context, port, index, entry);
      if (error == ENODATA) continue;
      if (error != 0) return error;
      if (!visit(entry)) return 0;
    }
  }
  return 0;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t size) {
  return guarded([&] {
    ibv_port_attr all;
    if (const int error = port_attributes(Context::of(context), port, all)) return error;
    std::memset(attributes, 0, size);
    std::memcpy(static_cast<void*>(attributes), &all, std::min(size, sizeof all));
    return 0;
  });
}

int query_gid_entry(Context& context, std::uint32_t port, std::uint32_t index, abi::GidEntry& entry) {
  if (!context.has_port(port)) return EINVAL;
  return context.port.gid_entry(port, index, entry);
}

}  // namespace rnicsim::verbs

using namespace rnicsim;
using namespace rnicsim::verbs;

extern "C" {

int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes), sizeof *attributes);
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  return guarded_minus_one([&] {
    if (index < 0) return EINVAL;
    abi::GidEntry entry;
    const int error = query_gid_entry(Context::of(context), port, std::uint32_t(index), entry);
    if (error != 0 && error != ENODATA) return error;
    if (error == ENODATA) entry = {};
    std::memcpy(gid->raw, entry.gid, sizeof gid->raw);
    return 0;
  });
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* entry,
                      std::uint32_t flags, std::size_t size) {
  return guarded([&] {
    if (flags != 0) return EOPNOTSUPP;
    ibv_gid_entry found;
    if (const int error = gid_ex(Context::of(context), port, index, found)) return error;
    std::memset(entry, 0, size);
    std::memcpy(static_cast<void*>(entry), &found, std::min(size, sizeof found));
    return 0;
  });
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t capacity, std::uint32_t flags,
                             std::size_t size) {
  std::size_t count = 0;
  const int error = guarded([&] {
    if (flags != 0) return EOPNOTSUPP;
    auto* out = reinterpret_cast<std::byte*>(entries);
    bool fits = true;
    const int queried = for_each_gid(Context::of(context), [&](const ibv_gid_entry& entry) {
      fits = count < capacity;
      if (!fits) return false;
      std::memset(out + count * size, 0, size);
      std::memcpy(out + count * size, &entry, std::min(size, sizeof entry));
      ++count;
      return true;
    });
    return fits ? queried : EINVAL;
  });
  return error == 0 ? ssize_t(count) : -error;
}

// Private to rdma-core's tools. Type 0: IB or RoCE v1, also for an empty entry; 1: RoCE v2.
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, std::uint32_t* type) {
  return guarded_minus_one([&] {
    abi::GidEntry entry;
    const int error = query_gid_entry(Context::of(context), port, index, entry);
    if (error != 0 && error != ENODATA) return error;
    *type = error == 0 && entry.type == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
    return 0;
  });
}

int ibv_query_pkey(ibv_context* context, std::uint8_t port, int index, __be16* pkey) {
  return guarded_minus_one([&] {
    if (!Context::of(context).has_port(port) || index != 0) return EINVAL;
    *pkey = kDefaultPkey;  // the same in both byte orders
    return 0;
  });
}

int ibv_get_pkey_index(ibv_context* context, std::uint8_t port, __be16 pkey) {
  if (Context::of(context).has_port(port) && pkey == kDefaultPkey) return 0;
  errno = EINVAL;
  return -1;
}

}  // extern "C"
