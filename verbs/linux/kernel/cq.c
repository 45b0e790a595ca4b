// SPDX-License-Identifier: GPL-2.0
/* Completion queues: their life and their events. */
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

#define LEAST_ENTRIES 4

static u8 log_entries_for(u32 cqe)
{
	return ilog2(max_t(u32, roundup_pow_of_two(cqe), LEAST_ENTRIES));
}

/* Every entry is the device's. */
static struct rnic_buf *alloc_ring(struct rnic_device *dev, struct rnic_ucontext *context, u8 log_entries)
{
	struct rnic_buf *buf = rnic_alloc_buf(dev, context, sizeof(struct rnicsim_cqe) << log_entries);
	struct rnicsim_cqe *cqe;
	u32 i;

	if (IS_ERR(buf))
		return buf;
	for (cqe = buf->memory, i = 0; i < 1u << log_entries; i++)
		cqe[i].opcode_owner = RNICSIM_CQE_INITIAL_OWNER;
	return buf;
}

static int create_on_device(struct rnic_device *dev, struct rnic_cq *cq, const struct ib_cq_init_attr *attr,
			    u32 uar_page)
{
	u32 vector = attr->comp_vector % dev->ib.num_comp_vectors;
	struct rnicsim_create_cq create = {};

	rnic_fill_header(&create.header, RNIC_COMMAND(CREATE_CQ), cq->cqn);
	create.context.log_entries = cq->log_entries;
	if (attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		create.context.flags = RNICSIM_CQC_IGNORE_OVERRUN;
	create.context.uar_page = cpu_to_be16(uar_page);
	create.context.ring = cpu_to_be64(cq->ring->dma);
	create.context.doorbell_record = cpu_to_be64(cq->record->dma);
	create.context.eqn = cpu_to_be32(RNIC_FIRST_COMPLETION_EQ + vector);
	return rnic_execute(dev, &create, sizeof(create), NULL, 0);
}

static int answer_create(struct rnic_cq *cq, struct ib_udata *udata)
{
	struct rnic_create_cq_resp answer = {};

	answer.ring = rnic_mapping_of(cq->ring);
	answer.record = rnic_mapping_of(cq->record);
	answer.cqn = cq->cqn;
	answer.log_entries = cq->log_entries;
	return rnic_answer(udata, &answer, sizeof(answer));
}

static struct rnic_ucontext *context_of(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct rnic_ucontext, ib);
}

static int alloc_memory(struct rnic_device *dev, struct rnic_cq *cq, struct rnic_ucontext *context)
{
	cq->record = rnic_alloc_buf(dev, context, sizeof(struct rnicsim_cq_doorbell_record));
	if (IS_ERR(cq->record))
		return PTR_ERR(cq->record);
	cq->ring = alloc_ring(dev, context, cq->log_entries);
	return PTR_ERR_OR_ZERO(cq->ring);
}

static void free_memory(struct rnic_cq *cq)
{
	rnic_free_buf(cq->ring);
	rnic_free_buf(cq->record);
}

/* No interrupt finds it any more, nor still holds it. */
static void retire(struct rnic_device *dev, struct rnic_cq *cq)
{
	xa_erase_irq(&dev->cqs, cq->cqn);
	if (refcount_dec_and_test(&cq->users))
		complete(&cq->free);
	wait_for_completion(&cq->free);
}

int rnic_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_ucontext *context = context_of(udata);
	struct rnic_cq *cq = to_rnic_cq(ib);
	int error;

	if (!attr->cqe || attr->cqe > dev->caps.max_cqe)
		return -EINVAL;
	if (attr->flags & ~(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN | IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION))
		return -EOPNOTSUPP;
	spin_lock_init(&cq->lock);
	refcount_set(&cq->users, 1);
	init_completion(&cq->free);
	cq->log_entries = log_entries_for(attr->cqe);
	error = alloc_memory(dev, cq, context);
	if (error)
		goto free;
	error = xa_alloc_cyclic_irq(&dev->cqs, &cq->cqn, cq, XA_LIMIT(1, dev->caps.max_cq - 1), &dev->next_cqn,
				    GFP_KERNEL);
	if (error < 0) {
		error = error == -EBUSY ? -ENOMEM : error;
		goto free;
	}
	error = rnic_lend(dev, RNICSIM_ICM_TABLE_CQC, cq->cqn, 1);
	if (!error)
		error = create_on_device(dev, cq, attr, context ? context->uar_page : 0);
	if (error)
		goto forget;
	ib->cqe = 1 << cq->log_entries;
	if (udata)
		error = answer_create(cq, udata);
	if (!error)
		return 0;
	rnic_destroy(dev, RNIC_COMMAND(DESTROY_CQ), cq->cqn);

forget:
	retire(dev, cq);
free:
	free_memory(cq);
	return error;
}

int rnic_modify_cq(struct ib_cq *ib, u16 count, u16 period)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnicsim_modify_cq modify = {};

	if (count > dev->caps.max_cq_moderation_count || period > dev->caps.max_cq_moderation_period)
		return -EINVAL;
	rnic_fill_header(&modify.header, RNIC_COMMAND(MODIFY_CQ), to_rnic_cq(ib)->cqn);
	modify.moderation_count = cpu_to_be16(count);
	modify.moderation_period = cpu_to_be16(period);
	return rnic_execute(dev, &modify, sizeof(modify), NULL, 0);
}

/*
 * The provider holds its consumer still, and carries the entries over that it
 * has not consumed. Kernel users do not resize.
 */
int rnic_resize_cq(struct ib_cq *ib, int cqe, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_ucontext *context = context_of(udata);
	struct rnicsim_resized_cq resized = {};
	struct rnicsim_resize_cq resize = {};
	struct rnic_resize_cq_resp answer = {};
	struct rnic_cq *cq = to_rnic_cq(ib);
	struct rnic_buf *ring;
	u8 log_entries;
	int error;

	if (!udata)
		return -EOPNOTSUPP;
	if (cqe <= 0 || cqe > dev->caps.max_cqe)
		return -EINVAL;
	log_entries = log_entries_for(cqe);
	ring = alloc_ring(dev, context, log_entries);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	rnic_fill_header(&resize.header, RNIC_COMMAND(RESIZE_CQ), cq->cqn);
	resize.ring = cpu_to_be64(ring->dma);
	resize.log_entries = log_entries;
	error = rnic_execute(dev, &resize, sizeof(resize), &resized, sizeof(resized));
	if (error) {
		rnic_free_buf(ring);
		return error;
	}
	swap(cq->ring, ring);
	rnic_free_buf(ring); /* the provider has the old one mapped until it has read it */
	cq->log_entries = log_entries;
	ib->cqe = 1 << log_entries;
	answer.ring = rnic_mapping_of(cq->ring);
	answer.log_entries = log_entries;
	answer.producer = be32_to_cpu(resized.producer);
	return rnic_answer(udata, &answer, sizeof(answer));
}

int rnic_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_cq *cq = to_rnic_cq(ib);
	int error = rnic_destroy(dev, RNIC_COMMAND(DESTROY_CQ), cq->cqn);

	if (error)
		return error;
	retire(dev, cq);
	free_memory(cq);
	return 0;
}

static struct rnic_cq *get(struct rnic_device *dev, u32 cqn)
{
	struct rnic_cq *cq;
	unsigned long flags;

	xa_lock_irqsave(&dev->cqs, flags);
	cq = xa_load(&dev->cqs, cqn);
	if (cq)
		refcount_inc(&cq->users);
	xa_unlock_irqrestore(&dev->cqs, flags);
	return cq;
}

static void put(struct rnic_cq *cq)
{
	if (refcount_dec_and_test(&cq->users))
		complete(&cq->free);
}

/* Called in the interrupt. An event may come after its CQ was destroyed. */
void rnic_complete(struct rnic_device *dev, u32 cqn)
{
	struct rnic_cq *cq = get(dev, cqn);

	if (!cq)
		return;
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
	put(cq);
}

void rnic_cq_event(struct rnic_device *dev, u32 cqn)
{
	struct ib_event event = { .device = &dev->ib, .event = IB_EVENT_CQ_ERR };
	struct rnic_cq *cq = get(dev, cqn);

	if (!cq)
		return;
	event.element.cq = &cq->ib;
	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
	put(cq);
}
