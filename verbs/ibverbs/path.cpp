// SPDX-License-Identifier: Apache-2.0
#include "verbs/ibverbs/path.h"

#include <cerrno>
#include <cstring>

namespace rnicsim::verbs {

namespace {

constexpr std::uint32_t kFlowLabelMask = 0xfffff;
constexpr std::uint8_t kLocalHopLimit = 64;

}  // namespace

int check_path(Context& context, const ibv_ah_attr& path, std::uint8_t port) {
  if (path.port_num != port || !context.has_port(path.port_num)) return EINVAL;
  abi::GidEntry entry;
  // The port reports IBV_QPF_GRH_REQUIRED. A LID has a route only with host.lid_paths.
  if (!path.is_global) return context.port.lid_route(path.dlid, entry) == 0 ? 0 : EINVAL;
  return query_gid_entry(context, path.port_num, path.grh.sgid_index, entry) == 0 ? 0 : EINVAL;
}

abi::AddressVector encode_path(Context& context, const ibv_ah_attr& path) {
  abi::AddressVector vector;
  abi::GidEntry route;
  if (!path.is_global && context.port.lid_route(path.dlid, route) == 0) {
    std::memcpy(vector.remote_gid, route.gid, sizeof vector.remote_gid);
    vector.sgid_index = std::uint16_t(route.index);
    vector.hop_limit = kLocalHopLimit;
    vector.service_level = path.sl;
    return vector;
  }
  std::memcpy(vector.remote_gid, path.grh.dgid.raw, sizeof vector.remote_gid);
  vector.sgid_index = path.grh.sgid_index;
  vector.flow_label = path.grh.flow_label & kFlowLabelMask;
  vector.traffic_class = path.grh.traffic_class;
  vector.hop_limit = path.grh.hop_limit;
  vector.service_level = path.sl;
  vector.static_rate = path.static_rate;
  return vector;
}

void decode_path(const abi::AddressVector& vector, std::uint8_t port, ibv_ah_attr& path) {
  path = {};
  if (port == 0) return;  // the path was never set
  std::memcpy(path.grh.dgid.raw, vector.remote_gid, sizeof vector.remote_gid);
  path.grh.sgid_index = std::uint8_t(vector.sgid_index);
  path.grh.flow_label = vector.flow_label;
  path.grh.traffic_class = vector.traffic_class;
  path.grh.hop_limit = vector.hop_limit;
  path.sl = vector.service_level;
  path.static_rate = vector.static_rate;
  path.is_global = 1;
  path.port_num = port;
}

}  // namespace rnicsim::verbs
