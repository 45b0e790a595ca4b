// SPDX-License-Identifier: Apache-2.0
// Attaches QPs to multicast groups, and detaches them.
#include <infiniband/verbs.h>

#include <span>

#include "model/abi/device.h"
#include "verbs/ibverbs/boundary.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

namespace {

using Gid = std::array<std::uint8_t, 16>;

int check(const Qp& qp) {
  if (!qp.owner().has_feature(abi::feature::kMulticast)) return EOPNOTSUPP;
  if (!resolves(qp)) return ENOENT;
  return qp.qp_base.qp_type == IBV_QPT_UD ? 0 : EINVAL;
}

int attach(Qp& qp, const Gid& group) {
  if (const int error = check(qp)) return error;
  if (const int error = qp.owner().execute(provider::attach_multicast(qp.qp_base.handle, group))) return error;
  const std::lock_guard guard(qp.groups_mutex);
  qp.groups.insert(group);
  return 0;
}

int detach(Qp& qp, const Gid& group) {
  if (const int error = check(qp)) return error;
  if (const int error = qp.owner().execute(provider::detach_multicast(qp.qp_base.handle, group))) return error;
  const std::lock_guard guard(qp.groups_mutex);
  qp.groups.erase(group);
  return 0;
}

}  // namespace

void leave_groups(Qp& qp) {
  for (const Gid& group : qp.groups) qp.owner().execute(provider::detach_multicast(qp.qp_base.handle, group));
  qp.groups.clear();
}

}  // namespace rnicsim::verbs

using namespace rnicsim::verbs;

extern "C" {

// The LID of a group has a meaning on InfiniBand only.
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  return guarded([&] { return attach(Qp::of(qp), std::to_array(gid->raw)); });
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, std::uint16_t) {
  return guarded([&] { return detach(Qp::of(qp), std::to_array(gid->raw)); });
}

}  // extern "C"
