// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues. Entries come free in any order, so that each names
 * the one that is posted behind it; the last free one is never posted.
 */
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

#define LEAST_LOG_STRIDE 5

static struct rnicsim_srq_next_segment *entry_at(const struct rnic_srq *srq, u16 index)
{
	return srq->buf->memory + ((u32)index << srq->log_stride);
}

static u32 segments_of(const struct rnic_srq *srq)
{
	return (BIT(srq->log_stride) - sizeof(struct rnicsim_srq_next_segment)) / sizeof(struct rnicsim_data_segment);
}

static int size_queue(const struct rnic_capabilities *caps, struct rnic_srq *srq, struct ib_srq_attr *attr)
{
	u32 bytes = sizeof(struct rnicsim_srq_next_segment) + attr->max_sge * sizeof(struct rnicsim_data_segment);

	if (!attr->max_wr || attr->max_wr > caps->max_srq_wr || attr->max_sge > caps->max_srq_sge)
		return -EINVAL;
	srq->log_entries = ilog2(roundup_pow_of_two(attr->max_wr + 1));
	srq->log_stride = max_t(u32, LEAST_LOG_STRIDE, ilog2(roundup_pow_of_two(bytes)));
	srq->max_wr = min_t(u32, BIT(srq->log_entries) - 1, caps->max_srq_wr);
	srq->max_sge = min(segments_of(srq), caps->max_srq_sge);
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	return 0;
}

static int alloc_memory(struct rnic_device *dev, struct rnic_srq *srq, struct rnic_ucontext *context)
{
	size_t bytes = BIT(srq->log_entries + srq->log_stride);
	u16 index;

	srq->buf = rnic_alloc_buf(dev, context, bytes + sizeof(*srq->record));
	if (IS_ERR(srq->buf))
		return PTR_ERR(srq->buf);
	srq->record = srq->buf->memory + bytes;
	srq->tail = BIT(srq->log_entries) - 1;
	for (index = 0; index < srq->tail; index++)
		entry_at(srq, index)->next = cpu_to_be16(index + 1);
	if (context)
		return 0;
	srq->wr_ids = kvcalloc(BIT(srq->log_entries), sizeof(*srq->wr_ids), GFP_KERNEL);
	return srq->wr_ids ? 0 : -ENOMEM;
}

static void free_memory(struct rnic_srq *srq)
{
	kvfree(srq->wr_ids);
	rnic_free_buf(srq->buf);
}

static int create_on_device(struct rnic_device *dev, struct rnic_srq *srq)
{
	struct rnicsim_create_srq create = {};

	rnic_fill_header(&create.header, RNIC_COMMAND(CREATE_SRQ), srq->srqn);
	create.context.log_entries = srq->log_entries;
	create.context.log_stride = srq->log_stride;
	create.context.pd = cpu_to_be32(to_rnic_pd(srq->ib.pd)->number);
	create.context.ring = cpu_to_be64(srq->buf->dma);
	create.context.doorbell_record =
		cpu_to_be64(srq->buf->dma + ((u8 *)srq->record - (u8 *)srq->buf->memory));
	return rnic_execute(dev, &create, sizeof(create), NULL, 0);
}

static int answer_create(struct rnic_srq *srq, struct ib_udata *udata)
{
	struct rnic_create_srq_resp answer = {};

	answer.ring = rnic_mapping_of(srq->buf);
	answer.srqn = srq->srqn;
	answer.record_offset = (u8 *)srq->record - (u8 *)srq->buf->memory;
	answer.log_entries = srq->log_entries;
	answer.log_stride = srq->log_stride;
	return rnic_answer(udata, &answer, sizeof(answer));
}

static void retire(struct rnic_device *dev, struct rnic_srq *srq)
{
	xa_erase_irq(&dev->srqs, srq->srqn);
	if (refcount_dec_and_test(&srq->users))
		complete(&srq->free);
	wait_for_completion(&srq->free);
}

int rnic_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct rnic_ucontext *context = rdma_udata_to_drv_context(udata, struct rnic_ucontext, ib);
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_srq *srq = to_rnic_srq(ib);
	int error;

	if (!(dev->caps.features & RNICSIM_FEATURE_SRQ) || attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	spin_lock_init(&srq->lock);
	refcount_set(&srq->users, 1);
	init_completion(&srq->free);
	error = size_queue(&dev->caps, srq, &attr->attr);
	if (error)
		return error;
	error = alloc_memory(dev, srq, context);
	if (error)
		goto free;
	error = xa_alloc_cyclic_irq(&dev->srqs, &srq->srqn, srq, XA_LIMIT(0, dev->caps.max_srq - 1),
				    &dev->next_srqn, GFP_KERNEL);
	if (error < 0) {
		error = error == -EBUSY ? -ENOMEM : error;
		goto free;
	}
	error = rnic_lend(dev, RNICSIM_ICM_TABLE_SRQC, srq->srqn, 1);
	if (!error)
		error = create_on_device(dev, srq);
	if (error)
		goto forget;
	if (udata)
		error = answer_create(srq, udata);
	if (!error)
		return 0;
	rnic_destroy(dev, RNIC_COMMAND(DESTROY_SRQ), srq->srqn);

forget:
	retire(dev, srq);
free:
	free_memory(srq);
	return error;
}

/* IB_DEVICE_SRQ_RESIZE is not claimed. */
int rnic_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata)
{
	struct rnicsim_modify_srq modify = {};
	struct rnic_srq *srq = to_rnic_srq(ib);

	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->max_wr)
		return -EINVAL;
	rnic_fill_header(&modify.header, RNIC_COMMAND(MODIFY_SRQ), srq->srqn);
	modify.attributes = cpu_to_be32(RNICSIM_MODIFY_SRQ_LIMIT);
	modify.limit = cpu_to_be32(attr->srq_limit);
	return rnic_execute(to_rnic(ib->device), &modify, sizeof(modify), NULL, 0);
}

int rnic_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct rnicsim_command_header header = {};
	struct rnic_srq *srq = to_rnic_srq(ib);
	struct rnicsim_query_srq answer = {};
	int error;

	rnic_fill_header(&header, RNIC_COMMAND(QUERY_SRQ), srq->srqn);
	error = rnic_execute(to_rnic(ib->device), &header, sizeof(header), &answer, sizeof(answer));
	if (error)
		return error;
	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = be32_to_cpu(answer.context.limit);
	return 0;
}

int rnic_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_srq *srq = to_rnic_srq(ib);
	int error = rnic_destroy(dev, RNIC_COMMAND(DESTROY_SRQ), srq->srqn);

	if (error)
		return error;
	retire(dev, srq);
	free_memory(srq);
	return 0;
}

static int post_one(struct rnic_srq *srq, const struct ib_recv_wr *wr)
{
	struct rnicsim_srq_next_segment *entry = entry_at(srq, srq->head);
	struct rnicsim_data_segment *segments = (struct rnicsim_data_segment *)(entry + 1);
	int i;

	if (wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (srq->outstanding >= srq->max_wr)
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; i++)
		rnic_put_segment(&segments[i], &wr->sg_list[i]);
	if (i < segments_of(srq)) {
		segments[i].byte_count = 0;
		segments[i].lkey = cpu_to_be32(RNICSIM_INVALID_LKEY);
		segments[i].address = 0;
	}
	srq->wr_ids[srq->head] = wr->wr_id;
	srq->head = be16_to_cpu(entry->next);
	srq->posted++;
	srq->outstanding++;
	return 0;
}

int rnic_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct rnic_srq *srq = to_rnic_srq(ib);
	unsigned long flags;
	int error = 0;

	if (!srq->wr_ids || rnic_dead(to_rnic(ib->device))) {
		*bad = wr;
		return srq->wr_ids ? -EIO : -EINVAL;
	}
	spin_lock_irqsave(&srq->lock, flags);
	for (; wr; wr = wr->next) {
		error = post_one(srq, wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	dma_wmb(); /* entries before the record */
	WRITE_ONCE(srq->record->receive_producer, cpu_to_be32(srq->posted));
	spin_unlock_irqrestore(&srq->lock, flags);
	return error;
}

/* A completion frees its entry, which is hung behind the last. */
u64 rnic_retire_shared(struct rnic_srq *srq, u16 index)
{
	unsigned long flags;
	u64 wr_id;

	if (WARN_ON_ONCE(index >= BIT(srq->log_entries)))
		return 0;
	spin_lock_irqsave(&srq->lock, flags);
	wr_id = srq->wr_ids[index];
	entry_at(srq, srq->tail)->next = cpu_to_be16(index);
	srq->tail = index;
	srq->outstanding--;
	spin_unlock_irqrestore(&srq->lock, flags);
	return wr_id;
}

/* Called in the thread of event queue 0. */
void rnic_srq_event(struct rnic_device *dev, u32 srqn, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ib, .event = type };
	struct rnic_srq *srq;

	xa_lock_irq(&dev->srqs);
	srq = xa_load(&dev->srqs, srqn);
	if (srq)
		refcount_inc(&srq->users);
	xa_unlock_irq(&dev->srqs);
	if (!srq)
		return;
	event.element.srq = &srq->ib;
	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
	if (refcount_dec_and_test(&srq->users))
		complete(&srq->free);
}
