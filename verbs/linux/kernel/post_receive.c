// SPDX-License-Identifier: GPL-2.0
/* Posting to the receive queues of kernel queue pairs. */
#include <rdma/ib_verbs.h>

#include "rnic.h"

#define SEGMENT sizeof(struct rnicsim_data_segment)

static int post_receive(struct rnic_qp *qp, const struct ib_recv_wr *wr)
{
	struct rnic_receive_queue *rq = &qp->rq;
	u32 index = rq->posted & (BIT(rq->log_wqes) - 1);
	struct rnicsim_data_segment *segments = (void *)(rq->ring + (index << rq->log_stride));
	int i;

	if (wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	if (rq->posted - smp_load_acquire(&rq->retired) >= BIT(rq->log_wqes))
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; i++)
		rnic_put_segment(&segments[i], &wr->sg_list[i]);
	if (i < BIT(rq->log_stride) / SEGMENT) {
		segments[i].byte_count = 0;
		segments[i].lkey = cpu_to_be32(RNICSIM_INVALID_LKEY);
		segments[i].address = 0;
	}
	rq->wr_ids[index] = wr->wr_id;
	rq->posted++;
	return 0;
}

/*
 * A receive queue has no doorbell: a message makes the device look. None
 * comes to a queue pair in ERR, whose receives are to be flushed: a doorbell
 * that announces nothing makes it look.
 */
void rnic_flush_receives(struct rnic_qp *qp)
{
	struct rnic_device *dev = to_rnic(qp->ib.device);
	unsigned long flags;

	if (!qp->rq.wr_ids || READ_ONCE(qp->rq.posted) == READ_ONCE(qp->rq.retired))
		return;
	spin_lock_irqsave(&qp->sq.lock, flags);
	rnic_ring(dev, qp->uar_page, RNICSIM_UAR_SEND_DOORBELL, qp->qpn, qp->sq.producer & 0xffff);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
}

int rnic_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_qp *qp = to_rnic_qp(ib);
	unsigned long flags;
	int error = 0;

	if (!qp->rq.wr_ids || rnic_dead(dev)) {
		*bad = wr;
		return rnic_dead(dev) ? -EIO : -EINVAL;
	}
	spin_lock_irqsave(&qp->rq.lock, flags);
	for (; wr; wr = wr->next) {
		error = post_receive(qp, wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	dma_wmb(); /* entries before the record */
	WRITE_ONCE(qp->record->receive_producer, cpu_to_be32(qp->rq.posted & 0xffff));
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	if (READ_ONCE(qp->failed))
		rnic_flush_receives(qp);
	return error;
}
