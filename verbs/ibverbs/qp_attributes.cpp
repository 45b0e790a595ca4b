// SPDX-License-Identifier: Apache-2.0
#include "verbs/ibverbs/qp_attributes.h"

#include <cerrno>

#include "verbs/ibverbs/path.h"

namespace rnicsim::verbs {

namespace {

constexpr int kKnownMask = ((1 << 21) - 1) | IBV_QP_RATE_LIMIT;

// States that a program may give as current state: it may not know the device's latest one.
bool may_be_current(ibv_qp_state state) {
  return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD || state == IBV_QPS_SQE;
}

}  // namespace

int check_attributes(Context& context, const Qp& qp, const ibv_qp_attr& attributes, int mask) {
  if (mask & ~kKnownMask) return EOPNOTSUPP;
  if ((mask & IBV_QP_STATE) && unsigned(attributes.qp_state) > IBV_QPS_ERR) return EINVAL;
  if ((mask & IBV_QP_CUR_STATE) && !may_be_current(attributes.cur_qp_state)) return EINVAL;
  if (mask & IBV_QP_CAP) return EINVAL;  // IBV_DEVICE_RESIZE_MAX_WR is not claimed
  if ((mask & IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) return EINVAL;  // the table has one entry
  if ((mask & IBV_QP_PORT) && !context.has_port(attributes.port_num)) return EINVAL;
  const std::uint8_t port = mask & IBV_QP_PORT ? attributes.port_num : qp.port_number;
  if (mask & IBV_QP_AV) {
    if (const int error = check_path(context, attributes.ah_attr, port)) return error;
  }
  return mask & IBV_QP_ALT_PATH ? check_path(context, attributes.alt_ah_attr, attributes.alt_port_num) : 0;
}

abi::Qpc encode_attributes(Context& context, const ibv_qp_attr& from, int mask) {
  abi::Qpc to;
  if (mask & IBV_QP_STATE) to.state = abi::QpState(from.qp_state);
  if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) to.sqd_notify = from.en_sqd_async_notify;
  if (mask & IBV_QP_ACCESS_FLAGS) to.access_flags = from.qp_access_flags;
  if (mask & IBV_QP_PKEY_INDEX) to.pkey_index = from.pkey_index;
  if (mask & IBV_QP_PORT) to.port = from.port_num;
  if (mask & IBV_QP_QKEY) to.qkey = from.qkey;
  if (mask & IBV_QP_AV) to.path = encode_path(context, from.ah_attr);
  if (mask & IBV_QP_PATH_MTU) to.path_mtu = std::uint8_t(from.path_mtu);
  if (mask & IBV_QP_TIMEOUT) to.timeout = from.timeout;
  if (mask & IBV_QP_RETRY_CNT) to.retry_count = from.retry_cnt;
  if (mask & IBV_QP_RNR_RETRY) to.rnr_retry = from.rnr_retry;
  if (mask & IBV_QP_RQ_PSN) to.receive_psn = from.rq_psn;
  if (mask & IBV_QP_MAX_QP_RD_ATOMIC) to.max_rd_atomic = from.max_rd_atomic;
  if (mask & IBV_QP_MIN_RNR_TIMER) to.min_rnr_timer = from.min_rnr_timer;
  if (mask & IBV_QP_SQ_PSN) to.send_psn = from.sq_psn;
  if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (mask & IBV_QP_PATH_MIG_STATE) to.path_migration_state = std::uint8_t(from.path_mig_state);
  if (mask & IBV_QP_DEST_QPN) to.remote_qpn = from.dest_qp_num;
  if (mask & IBV_QP_RATE_LIMIT) to.rate_limit = from.rate_limit;
  if (mask & IBV_QP_ALT_PATH) {
    to.alternate_path = encode_path(context, from.alt_ah_attr);
    to.alternate_pkey_index = from.alt_pkey_index;
    to.alternate_port = from.alt_port_num;
    to.alternate_timeout = from.alt_timeout;
  }
  return to;
}

void decode_attributes(const abi::Qpc& from, ibv_qp_attr& to) {
  to.qp_state = to.cur_qp_state = ibv_qp_state(from.state);
  to.path_mtu = ibv_mtu(from.path_mtu);
  to.path_mig_state = ibv_mig_state(from.path_migration_state);
  to.qkey = from.qkey;
  // The PSNs expected and sent next, not the initial ones, which the program has set.
  to.rq_psn = from.expected_psn;
  to.sq_psn = from.next_send_psn;
  to.dest_qp_num = from.remote_qpn;
  to.qp_access_flags = from.access_flags;
  decode_path(from.path, from.port, to.ah_attr);
  decode_path(from.alternate_path, from.alternate_port, to.alt_ah_attr);
  to.pkey_index = from.pkey_index;
  to.alt_pkey_index = from.alternate_pkey_index;
  to.en_sqd_async_notify = from.sqd_notify;
  to.sq_draining = from.draining;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.min_rnr_timer = from.min_rnr_timer;
  to.port_num = from.port;
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_count;
  to.rnr_retry = from.rnr_retry;
  to.alt_port_num = from.alternate_port;
  to.alt_timeout = from.alternate_timeout;
  to.rate_limit = from.rate_limit;
}

}  // namespace rnicsim::verbs
