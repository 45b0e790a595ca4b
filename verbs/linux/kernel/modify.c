// SPDX-License-Identifier: GPL-2.0
/* Attributes of queue pairs, set and asked. */
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

/* The device's bits are those of enum ib_qp_attr_mask. */
#define KNOWN_ATTRIBUTES (RNICSIM_QP_ATTR_STATE | RNICSIM_QP_ATTR_CURRENT_STATE | RNICSIM_QP_ATTR_SQD_NOTIFY | \
	RNICSIM_QP_ATTR_ACCESS_FLAGS | RNICSIM_QP_ATTR_PKEY_INDEX | RNICSIM_QP_ATTR_PORT | RNICSIM_QP_ATTR_QKEY | \
	RNICSIM_QP_ATTR_PATH | RNICSIM_QP_ATTR_PATH_MTU | RNICSIM_QP_ATTR_TIMEOUT | RNICSIM_QP_ATTR_RETRY_COUNT | \
	RNICSIM_QP_ATTR_RNR_RETRY | RNICSIM_QP_ATTR_RECEIVE_PSN | RNICSIM_QP_ATTR_MAX_RD_ATOMIC | \
	RNICSIM_QP_ATTR_MIN_RNR_TIMER | RNICSIM_QP_ATTR_SEND_PSN | RNICSIM_QP_ATTR_MAX_DEST_RD_ATOMIC | \
	RNICSIM_QP_ATTR_PATH_MIGRATION_STATE | RNICSIM_QP_ATTR_REMOTE_QPN)

static void encode(const struct ib_qp_attr *from, int mask, struct rnicsim_qpc *to)
{
	to->state = from->qp_state;
	to->port = mask & IB_QP_PORT ? from->port_num : 0;
	to->path_mtu = from->path_mtu;
	to->pkey_index = cpu_to_be16(from->pkey_index);
	to->qkey = cpu_to_be32(from->qkey);
	to->access_flags = cpu_to_be32(from->qp_access_flags & (RNICSIM_ACCESS_REMOTE_WRITE | RNICSIM_ACCESS_REMOTE_READ |
								RNICSIM_ACCESS_REMOTE_ATOMIC));
	to->remote_qpn = cpu_to_be32(from->dest_qp_num);
	to->send_psn = cpu_to_be32(from->sq_psn & 0xffffff);
	to->receive_psn = cpu_to_be32(from->rq_psn & 0xffffff);
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->timeout = from->timeout;
	to->retry_count = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->path_migration_state = from->path_mig_state;
	to->sqd_notify = from->en_sqd_async_notify;
	if (mask & IB_QP_AV)
		rnic_encode_path(&from->ah_attr, &to->path);
}

static int check(struct rnic_device *dev, struct rnic_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;

	BUILD_BUG_ON(RNICSIM_QP_ATTR_REMOTE_QPN != IB_QP_DEST_QPN);
	BUILD_BUG_ON((int)RNICSIM_QP_STATE_ERROR != (int)IB_QPS_ERR);
	if (mask & ~KNOWN_ATTRIBUTES)
		return -EOPNOTSUPP;
	if (!ib_modify_qp_is_ok(from, to, qp->ib.qp_type, mask))
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return -EINVAL;
	if ((mask & IB_QP_PORT) && attr->port_num != RNIC_PORT)
		return -EINVAL;
	if (mask & IB_QP_AV) {
		if (attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE)
			return -EINVAL;
		if (!(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH))
			return -EINVAL;
	}
	return 0;
}

/* The device forgot every WQE of a kernel queue pair; so do its rings and its CQs. */
static void forget_work(struct rnic_qp *qp)
{
	rnic_forget_completions(to_rnic_cq(qp->ib.send_cq), qp);
	if (qp->ib.recv_cq != qp->ib.send_cq)
		rnic_forget_completions(to_rnic_cq(qp->ib.recv_cq), qp);
	spin_lock_irq(&qp->sq.lock);
	qp->sq.producer = 0;
	qp->sq.posted = 0;
	qp->sq.retired = 0;
	WRITE_ONCE(qp->record->send_producer, 0);
	spin_unlock_irq(&qp->sq.lock);
	spin_lock_irq(&qp->rq.lock);
	qp->rq.posted = 0;
	qp->rq.retired = 0;
	WRITE_ONCE(qp->record->receive_producer, 0);
	spin_unlock_irq(&qp->rq.lock);
	WRITE_ONCE(qp->failed, false);
}

static int modify(struct rnic_device *dev, struct rnic_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct rnicsim_modify_qp modify = {};
	int error;

	/* The GSI's port is known to everyone but the device. */
	if (qp->ib.qp_type == IB_QPT_GSI && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_INIT)
		mask |= IB_QP_PORT;
	rnic_fill_header(&modify.header, RNIC_COMMAND(MODIFY_QP), qp->qpn);
	modify.attributes = cpu_to_be32(mask);
	modify.current_state = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : 0;
	encode(attr, mask, &modify.context);
	if (mask & IB_QP_PORT)
		modify.context.port = RNIC_PORT;
	error = rnic_execute(dev, &modify, sizeof(modify), NULL, 0);
	if (error || !(mask & IB_QP_STATE))
		return error;
	qp->state = attr->qp_state;
	if (qp->ib.uobject)
		return 0; /* the provider's rings */
	if (qp->state == IB_QPS_RESET)
		forget_work(qp);
	if (qp->state == IB_QPS_ERR) {
		WRITE_ONCE(qp->failed, true);
		rnic_flush_receives(qp);
	}
	return 0;
}

int rnic_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_qp *qp = to_rnic_qp(ib);
	int error;

	mutex_lock(&qp->mutex);
	error = check(dev, qp, attr, mask);
	if (!error)
		error = modify(dev, qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return error;
}

static void decode(struct rnic_device *dev, const struct rnicsim_qpc *from, struct ib_qp_attr *to)
{
	to->qp_state = (enum ib_qp_state)from->state;
	to->cur_qp_state = to->qp_state;
	to->path_mtu = (enum ib_mtu)from->path_mtu;
	to->path_mig_state = (enum ib_mig_state)from->path_migration_state;
	to->qkey = be32_to_cpu(from->qkey);
	to->rq_psn = be32_to_cpu(from->expected_psn);
	to->sq_psn = be32_to_cpu(from->next_send_psn);
	to->dest_qp_num = be32_to_cpu(from->remote_qpn);
	to->qp_access_flags = be32_to_cpu(from->access_flags);
	to->pkey_index = be16_to_cpu(from->pkey_index);
	to->en_sqd_async_notify = from->sqd_notify;
	to->sq_draining = from->draining;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->min_rnr_timer = from->min_rnr_timer;
	to->port_num = from->port;
	to->timeout = from->timeout;
	to->retry_cnt = from->retry_count;
	to->rnr_retry = from->rnr_retry;
	if (from->port) /* before INIT there is no path */
		rnic_decode_path(dev, &from->path, &to->ah_attr);
}

int rnic_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnicsim_command_header header = {};
	struct rnic_qp *qp = to_rnic_qp(ib);
	struct rnicsim_query_qp *answer;
	int error;

	answer = kzalloc(sizeof(*answer), GFP_KERNEL);
	if (!answer)
		return -ENOMEM;
	rnic_fill_header(&header, RNIC_COMMAND(QUERY_QP), qp->qpn);
	mutex_lock(&qp->mutex);
	error = rnic_execute(dev, &header, sizeof(header), answer, sizeof(*answer));
	if (!error) {
		decode(dev, &answer->context, attr);
		qp->state = attr->qp_state;
	}
	mutex_unlock(&qp->mutex);
	kfree(answer);
	if (error)
		return error;
	attr->cap = qp->cap;
	init->qp_context = ib->qp_context;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ib->qp_type;
	return 0;
}
