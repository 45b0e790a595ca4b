// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: their life, their events, their multicast groups. Attributes are in modify.c. */
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

#define SEGMENT sizeof(struct rnicsim_data_segment)
#define MOST_RING_ENTRIES 32768u /* indices are 16 bits, and a full ring differs from an empty one */
#define LEAST_RING_BYTES 64u
/* The longest piece that the kernel's allocator gives, less the record's page. */
#define MOST_SEND_RING_BYTES (PAGE_SIZE << (MAX_ORDER - 2))

static int transport_of(const struct rnic_capabilities *caps, enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return RNICSIM_TRANSPORT_RC;
	case IB_QPT_UC:
		return caps->features & RNICSIM_FEATURE_UC ? RNICSIM_TRANSPORT_UC : -EOPNOTSUPP;
	case IB_QPT_UD:
	case IB_QPT_GSI:
		return caps->features & RNICSIM_FEATURE_UD ? RNICSIM_TRANSPORT_UD : -EOPNOTSUPP;
	case IB_QPT_RAW_PACKET:
		return caps->features & RNICSIM_FEATURE_RAW ? RNICSIM_TRANSPORT_RAW : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/* Most bytes of headers for TCP segmentation; 0: the device does none. */
u32 rnic_most_headers(const struct rnic_capabilities *caps)
{
	return caps->max_tso ? min_t(u32, caps->max_tso_header, RNIC_MOST_HEADERS) : 0;
}

/* Bytes before the data segments, of the longest opcode that has some. */
static u32 before_segments(int transport)
{
	u32 bytes = sizeof(struct rnicsim_control_segment);

	switch (transport) {
	case RNICSIM_TRANSPORT_RC:
		return bytes + sizeof(struct rnicsim_remote_address_segment) + sizeof(struct rnicsim_atomic_segment);
	case RNICSIM_TRANSPORT_UC:
		return bytes + sizeof(struct rnicsim_remote_address_segment);
	case RNICSIM_TRANSPORT_RAW:
		return bytes + sizeof(struct rnicsim_tso_segment) + RNIC_MOST_HEADERS;
	default:
		return bytes + sizeof(struct rnicsim_datagram_segment);
	}
}

static u32 before_inline(int transport)
{
	u32 bytes = before_segments(transport) + sizeof(struct rnicsim_inline_header);

	/* Atomics are never inline. */
	return transport == RNICSIM_TRANSPORT_RC ? bytes - sizeof(struct rnicsim_atomic_segment) : bytes;
}

static u32 wqe_blocks(int transport, u32 sges, u32 inline_bytes)
{
	u32 bytes = before_segments(transport) + sges * SEGMENT;

	if (inline_bytes)
		bytes = max_t(u32, bytes, round_up(before_inline(transport) + inline_bytes, SEGMENT));
	return DIV_ROUND_UP(bytes, RNICSIM_SEND_BLOCK);
}

static u32 most_send_blocks(const struct rnic_capabilities *caps)
{
	return min3(caps->max_qp_wr, MOST_RING_ENTRIES, (u32)(MOST_SEND_RING_BYTES / RNICSIM_SEND_BLOCK));
}

/* With the longest WQE of any transport. */
u32 rnic_most_work_requests(const struct rnic_capabilities *caps)
{
	u32 longest = max(wqe_blocks(RNICSIM_TRANSPORT_RC, caps->max_send_sge, caps->max_inline),
			  wqe_blocks(RNICSIM_TRANSPORT_UD, caps->max_send_sge, caps->max_inline));

	return most_send_blocks(caps) / longest;
}

static int size_send_ring(const struct rnic_capabilities *caps, struct rnic_qp *qp, struct ib_qp_cap *cap)
{
	u32 blocks;

	if (cap->max_send_wr > caps->max_qp_wr || cap->max_send_sge > caps->max_send_sge ||
	    cap->max_inline_data > caps->max_inline)
		return -EINVAL;
	if (!cap->max_send_wr)
		return 0;
	qp->send_wqe_blocks = wqe_blocks(qp->transport, cap->max_send_sge, cap->max_inline_data);
	if (qp->send_wqe_blocks > RNICSIM_MAX_WQE_BLOCKS)
		return -EINVAL;
	blocks = roundup_pow_of_two(cap->max_send_wr * qp->send_wqe_blocks);
	if (blocks > most_send_blocks(caps))
		return -EINVAL;
	qp->sq.log_blocks = ilog2(blocks);
	cap->max_send_wr = min(blocks / qp->send_wqe_blocks, caps->max_qp_wr);
	cap->max_inline_data = min_t(u32, caps->max_inline, qp->send_wqe_blocks * RNICSIM_SEND_BLOCK -
				     min_t(u32, qp->send_wqe_blocks * RNICSIM_SEND_BLOCK, before_inline(qp->transport)));
	qp->sq.capacity = cap->max_send_wr;
	return 0;
}

static int size_receive_ring(const struct rnic_capabilities *caps, struct rnic_qp *qp, struct ib_qp_cap *cap)
{
	u32 entries;

	if (qp->ib.srq) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
	}
	if (cap->max_recv_wr > caps->max_qp_wr || cap->max_recv_sge > caps->max_recv_sge)
		return -EINVAL;
	if (!cap->max_recv_wr)
		return 0;
	entries = roundup_pow_of_two(cap->max_recv_wr);
	if (entries > MOST_RING_ENTRIES)
		return -EINVAL;
	qp->rq.log_wqes = ilog2(entries);
	qp->rq.log_stride = ilog2(roundup_pow_of_two(max(cap->max_recv_sge, 1u) * SEGMENT));
	cap->max_recv_wr = entries;
	cap->max_recv_sge = min_t(u32, BIT(qp->rq.log_stride) / SEGMENT, caps->max_recv_sge);
	return 0;
}

static int alloc_rings(struct rnic_device *dev, struct rnic_qp *qp, struct rnic_ucontext *context)
{
	size_t send = qp->cap.max_send_wr ? (size_t)RNICSIM_SEND_BLOCK << qp->sq.log_blocks : 0;
	size_t receive;

	qp->send_buf = rnic_alloc_buf(dev, context, send + sizeof(struct rnicsim_qp_doorbell_record));
	if (IS_ERR(qp->send_buf))
		return PTR_ERR(qp->send_buf);
	qp->record = qp->send_buf->memory + send;
	qp->record_dma = qp->send_buf->dma + send;
	qp->sq.ring = qp->send_buf->memory;
	if (!qp->cap.max_recv_wr)
		return 0;
	receive = max_t(size_t, BIT(qp->rq.log_wqes + qp->rq.log_stride), LEAST_RING_BYTES);
	qp->receive_buf = rnic_alloc_buf(dev, context, receive);
	if (IS_ERR(qp->receive_buf))
		return PTR_ERR(qp->receive_buf);
	qp->rq.ring = qp->receive_buf->memory;
	return 0;
}

/* A kernel queue keeps the wr_id of each posted work request. */
static int alloc_slots(struct rnic_qp *qp)
{
	if (qp->cap.max_send_wr) {
		qp->sq.slots = kvcalloc(BIT(qp->sq.log_blocks), sizeof(*qp->sq.slots), GFP_KERNEL);
		if (!qp->sq.slots)
			return -ENOMEM;
	}
	if (qp->cap.max_recv_wr) {
		qp->rq.wr_ids = kvcalloc(BIT(qp->rq.log_wqes), sizeof(*qp->rq.wr_ids), GFP_KERNEL);
		if (!qp->rq.wr_ids)
			return -ENOMEM;
	}
	return 0;
}

static void free_memory(struct rnic_qp *qp)
{
	kvfree(qp->sq.slots);
	kvfree(qp->rq.wr_ids);
	rnic_free_buf(qp->send_buf);
	rnic_free_buf(qp->receive_buf);
}

static int take_number(struct rnic_device *dev, struct rnic_qp *qp, enum ib_qp_type type)
{
	int error;

	if (type == IB_QPT_GSI) {
		qp->qpn = RNIC_GSI_QPN;
		return xa_insert_irq(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	}
	error = xa_alloc_cyclic_irq(&dev->qps, &qp->qpn, qp, XA_LIMIT(RNIC_FIRST_QPN, dev->caps.max_qp - 1),
				    &dev->next_qpn, GFP_KERNEL);
	if (error < 0)
		return error == -EBUSY ? -ENOMEM : error;
	return 0;
}

static u8 context_flags(const struct rnic_qp *qp, u32 create_flags)
{
	return (qp->cap.max_send_wr ? RNICSIM_QPC_HAS_SEND : 0) | (qp->cap.max_recv_wr ? RNICSIM_QPC_HAS_RECEIVE : 0) |
	       (qp->ib.srq ? RNICSIM_QPC_HAS_SRQ : 0) |
	       (create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK ? RNICSIM_QPC_BLOCK_SELF_MULTICAST : 0);
}

static int create_on_device(struct rnic_device *dev, struct rnic_qp *qp, const struct ib_qp_init_attr *attr)
{
	struct rnicsim_create_qp create = {};
	struct rnicsim_qpc *qpc = &create.context;

	rnic_fill_header(&create.header, RNIC_COMMAND(CREATE_QP), qp->qpn);
	qpc->transport = qp->transport;
	qpc->log_send_blocks = qp->sq.log_blocks;
	qpc->log_receive_wqes = qp->rq.log_wqes;
	qpc->log_receive_stride = qp->rq.log_stride;
	qpc->flags = context_flags(qp, attr->create_flags);
	qpc->uar_page = cpu_to_be16(qp->uar_page);
	qpc->pd = cpu_to_be32(to_rnic_pd(qp->ib.pd)->number);
	qpc->send_cqn = cpu_to_be32(to_rnic_cq(attr->send_cq)->cqn);
	qpc->receive_cqn = cpu_to_be32(to_rnic_cq(attr->recv_cq)->cqn);
	if (attr->srq)
		qpc->srqn = cpu_to_be32(to_rnic_srq(attr->srq)->srqn);
	if (qp->cap.max_send_wr)
		qpc->send_ring = cpu_to_be64(qp->send_buf->dma);
	if (qp->receive_buf)
		qpc->receive_ring = cpu_to_be64(qp->receive_buf->dma);
	qpc->doorbell_record = cpu_to_be64(qp->record_dma);
	return rnic_execute(dev, &create, sizeof(create), NULL, 0);
}

static int answer_create(struct rnic_qp *qp, struct ib_udata *udata)
{
	struct rnic_create_qp_resp answer = {};

	answer.send = rnic_mapping_of(qp->send_buf);
	answer.receive = rnic_mapping_of(qp->receive_buf);
	answer.qpn = qp->qpn;
	answer.record_offset = (u8 *)qp->record - (u8 *)qp->send_buf->memory;
	answer.send_wqe_blocks = qp->send_wqe_blocks;
	answer.log_send_blocks = qp->sq.log_blocks;
	answer.log_receive_wqes = qp->rq.log_wqes;
	answer.log_receive_stride = qp->rq.log_stride;
	return rnic_answer(udata, &answer, sizeof(answer));
}

static int check_create_flags(const struct rnic_capabilities *caps, const struct ib_qp_init_attr *attr)
{
	if (!attr->create_flags)
		return 0;
	if (attr->create_flags != IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		return -EOPNOTSUPP;
	if (attr->qp_type == IB_QPT_RAW_PACKET)
		return 0;
	if (!(caps->features & RNICSIM_FEATURE_MULTICAST))
		return -EOPNOTSUPP;
	return attr->qp_type == IB_QPT_UD ? 0 : -EINVAL;
}

static int init_qp(struct rnic_device *dev, struct rnic_qp *qp, struct ib_qp_init_attr *attr, bool of_program)
{
	int transport = transport_of(&dev->caps, attr->qp_type);
	int error;

	if (transport < 0)
		return transport;
	error = check_create_flags(&dev->caps, attr);
	if (error)
		return error;
	if (transport == RNICSIM_TRANSPORT_RAW && of_program)
		return -EOPNOTSUPP;
	if (attr->srq && (transport == RNICSIM_TRANSPORT_UC || transport == RNICSIM_TRANSPORT_RAW))
		return -EINVAL;
	qp->transport = transport;
	qp->state = IB_QPS_RESET;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	refcount_set(&qp->users, 1);
	init_completion(&qp->free);
	error = size_send_ring(&dev->caps, qp, &attr->cap);
	if (error)
		return error;
	error = size_receive_ring(&dev->caps, qp, &attr->cap);
	qp->cap = attr->cap;
	return error;
}

static void retire(struct rnic_device *dev, struct rnic_qp *qp)
{
	xa_erase_irq(&dev->qps, qp->qpn);
	if (refcount_dec_and_test(&qp->users))
		complete(&qp->free);
	wait_for_completion(&qp->free);
}

int rnic_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct rnic_ucontext *context = rdma_udata_to_drv_context(udata, struct rnic_ucontext, ib);
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_qp *qp = to_rnic_qp(ib);
	int error;

	error = init_qp(dev, qp, attr, udata);
	if (error)
		return error;
	qp->uar_page = context ? context->uar_page : 0;
	error = alloc_rings(dev, qp, context);
	if (!error && !udata)
		error = alloc_slots(qp);
	if (!error)
		error = take_number(dev, qp, attr->qp_type);
	if (error)
		goto free;
	error = rnic_lend(dev, RNICSIM_ICM_TABLE_QPC, qp->qpn, 1);
	if (!error)
		error = create_on_device(dev, qp, attr);
	if (error)
		goto forget;
	ib->qp_num = qp->qpn;
	if (udata)
		error = answer_create(qp, udata);
	if (!error)
		return 0;
	rnic_destroy(dev, RNIC_COMMAND(DESTROY_QP), qp->qpn);

forget:
	retire(dev, qp);
free:
	free_memory(qp);
	return error;
}

int rnic_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_qp *qp = to_rnic_qp(ib);
	int error = rnic_destroy(dev, RNIC_COMMAND(DESTROY_QP), qp->qpn);

	if (error)
		return error;
	/* A program's CQ is the provider's. */
	if (!ib->uobject) {
		rnic_forget_completions(to_rnic_cq(ib->send_cq), qp);
		if (ib->recv_cq != ib->send_cq)
			rnic_forget_completions(to_rnic_cq(ib->recv_cq), qp);
	}
	retire(dev, qp);
	free_memory(qp);
	return 0;
}

/* Called in the thread of event queue 0. An event may come after its queue pair was destroyed. */
void rnic_qp_event(struct rnic_device *dev, u32 qpn, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ib, .event = type };
	struct rnic_qp *qp;

	xa_lock_irq(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		refcount_inc(&qp->users);
	xa_unlock_irq(&dev->qps);
	if (!qp)
		return;
	if (type == IB_EVENT_QP_FATAL || type == IB_EVENT_QP_REQ_ERR || type == IB_EVENT_QP_ACCESS_ERR) {
		WRITE_ONCE(qp->failed, true);
		if (qp->rq.wr_ids)
			rnic_flush_receives(qp);
	}
	event.element.qp = &qp->ib;
	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
	if (refcount_dec_and_test(&qp->users))
		complete(&qp->free);
}

static int change_membership(struct ib_qp *ib, u16 opcode, const union ib_gid *gid)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnicsim_multicast_group group = {};

	if (!(dev->caps.features & RNICSIM_FEATURE_MULTICAST))
		return -EOPNOTSUPP;
	rnic_fill_header(&group.header, opcode, to_rnic_qp(ib)->qpn);
	memcpy(group.gid, gid->raw, sizeof(group.gid));
	return rnic_execute(dev, &group, sizeof(group), NULL, 0);
}

int rnic_attach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid)
{
	return change_membership(ib, RNIC_COMMAND(ATTACH_MULTICAST), gid);
}

int rnic_detach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid)
{
	int error = change_membership(ib, RNIC_COMMAND(DETACH_MULTICAST), gid);

	return rnic_dead(to_rnic(ib->device)) ? 0 : error;
}
