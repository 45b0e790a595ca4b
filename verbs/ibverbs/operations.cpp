// SPDX-License-Identifier: Apache-2.0
// Function pointers of a context, which inline functions of <infiniband/verbs.h> call.
#include <infiniband/verbs.h>

#include "verbs/ibverbs/device.h"
#include "verbs/ibverbs/objects.h"

namespace rnicsim::verbs {

void fill_context_operations(ibv_context_ops& operations) {
  operations.alloc_mw = alloc_mw;
  operations.bind_mw = bind_mw;
  operations.dealloc_mw = dealloc_mw;
  operations.poll_cq = poll_cq;
  operations.req_notify_cq = request_notification;
  operations.post_send = post_send;
  operations.post_recv = post_receive;
  operations.post_srq_recv = post_srq_receive;
}

// For pointers that stay NULL the inline functions return EOPNOTSUPP.
void fill_extended_operations(verbs_context& operations) {
  operations.query_port = query_port;
  operations.query_device_ex = query_device_ex;
  operations.advise_mr = advise_mr;
  operations.alloc_null_mr = alloc_null_mr;
  operations.alloc_dm = alloc_dm;
  operations.free_dm = free_dm;
  operations.reg_dm_mr = reg_dm_mr;
  operations.create_cq_ex = create_cq_ex;
  operations.modify_cq = modify_cq;
  operations.create_qp_ex = create_qp_ex;
  operations.modify_qp_rate_limit = modify_qp_rate_limit;
  operations.query_rt_values = query_rt_values;
  operations.alloc_td = alloc_td;
  operations.dealloc_td = dealloc_td;
  operations.alloc_parent_domain = alloc_parent_domain;
  operations.create_srq_ex = create_srq_ex;
  operations.open_xrcd = open_xrcd;
  operations.close_xrcd = close_xrcd;
  operations.open_qp = open_qp;
  operations.get_srq_num = get_srq_number;
  operations.create_wq = create_wq;
  operations.modify_wq = modify_wq;
  operations.destroy_wq = destroy_wq;
  operations.create_rwq_ind_table = create_table;
  operations.destroy_rwq_ind_table = destroy_table;
  operations.ibv_create_flow = create_flow;
  operations.ibv_destroy_flow = destroy_flow;
  operations.create_counters = create_counters;
  operations.attach_counters_point_flow = attach_counters;
  operations.read_counters = read_counters;
  operations.destroy_counters = destroy_counters;
}

}  // namespace rnicsim::verbs
