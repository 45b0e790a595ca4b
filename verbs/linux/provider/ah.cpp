// SPDX-License-Identifier: Apache-2.0
// Address handles. The kernel resolves the destination MAC address of a path.
#include <cstring>

#include "verbs/linux/provider/objects.h"

namespace rnicsim::linux_provider {

namespace {

constexpr std::uint32_t kFlowLabelMask = 0xfffff;

void encode(const ibv_ah_attr& from, const rnic_create_ah_resp& answer, abi::AddressVector& to) {
  std::memcpy(to.remote_gid, from.grh.dgid.raw, sizeof to.remote_gid);
  std::memcpy(to.remote_mac, answer.dmac, sizeof to.remote_mac);
  to.sgid_index = from.grh.sgid_index;
  to.flow_label = from.grh.flow_label & kFlowLabelMask;
  to.traffic_class = from.grh.traffic_class;
  to.hop_limit = from.grh.hop_limit;
  to.service_level = from.sl;
  to.static_rate = from.static_rate;
}

}  // namespace

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  if (!attributes->is_global) return errno = EINVAL, nullptr;
  auto* ah = new (std::nothrow) Ah();
  Answer<ib_uverbs_create_ah_resp, rnic_create_ah_resp> answer;
  if (ah == nullptr) return errno = ENOMEM, nullptr;
  if (const int error = ibv_cmd_create_ah(pd, ah, attributes, answer.core(), sizeof answer.bytes)) {
    delete ah;
    return errno = error, nullptr;
  }
  encode(*attributes, answer.driver(), ah->path);
  return ah;
}

int destroy_ah(ibv_ah* handle) {
  const int error = ibv_cmd_destroy_ah(handle);
  if (error == 0) delete &Ah::of(handle);
  return error;
}

}  // namespace rnicsim::linux_provider
