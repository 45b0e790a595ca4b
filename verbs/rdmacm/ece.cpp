// SPDX-License-Identifier: Apache-2.0
// Enhanced connection establishment (ECE): vendor features of the QPs at both ends. A program with a QP of its own
// passes them by the functions here; for an id's QP the library exchanges them through libibverbs.
#include <infiniband/verbs.h>

#include "verbs/ibverbs/boundary.h"
#include "verbs/rdmacm/id.h"

namespace rnicsim::rdmacm {

namespace {

// ECE of the QP; empty if the device does not support ECE.
int query(ibv_qp& qp, ibv_ece& ece) {
  ece = {};
  const int error = ibv_query_ece(&qp, &ece);
  if (error == EOPNOTSUPP) ece = {};
  return error == EOPNOTSUPP ? 0 : error;
}

int set_local(rdma_cm_id* id, const ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr || ece->vendor_id == 0 || ece->comp_mask != 0) return EINVAL;
  Id::of(id).local_ece = {.vendor_id = ece->vendor_id, .attr_mod = ece->options};
  return 0;
}

int get_remote(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return EINVAL;
  const kernel::rdma_ucm_ece& remote = Id::of(id).remote_ece;
  *ece = {.vendor_id = remote.vendor_id, .options = remote.attr_mod, .comp_mask = 0};
  return 0;
}

}  // namespace

int exchange_ece(Id& id, ibv_qp& qp) {
  ibv_ece ece;
  if (const int error = query(qp, ece)) return error;
  if (ece.vendor_id != 0 && id.remote_ece.vendor_id == ece.vendor_id) {
    ece.options = id.remote_ece.attr_mod;
    if (const int error = ibv_set_ece(&qp, &ece)) return error;
    if (const int error = query(qp, ece)) return error;
  }
  id.local_ece = {.vendor_id = ece.vendor_id, .attr_mod = ece.options};
  return 0;
}

}  // namespace rnicsim::rdmacm

using namespace rnicsim::rdmacm;
using rnicsim::verbs::guarded_minus_one;

extern "C" {

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  return guarded_minus_one([&] { return set_local(id, ece); });
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  return guarded_minus_one([&] { return get_remote(id, ece); });
}

}  // extern "C"
