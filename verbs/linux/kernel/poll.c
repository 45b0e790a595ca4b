// SPDX-License-Identifier: GPL-2.0
/* Completions of kernel queues: polled, armed, forgotten with their queue pair. */
#include <linux/if_vlan.h>

#include "rnic.h"

static struct rnicsim_cqe *entry_at(const struct rnic_cq *cq, u32 position)
{
	struct rnicsim_cqe *ring = cq->ring->memory;

	return &ring[position & (BIT(cq->log_entries) - 1)];
}

/* The entry at a position, once it is the driver's: its owner bit is that of the lap. */
static struct rnicsim_cqe *ready_at(const struct rnic_cq *cq, u32 position)
{
	struct rnicsim_cqe *cqe = entry_at(cq, position);
	u8 opcode_owner = READ_ONCE(cqe->opcode_owner);

	if (opcode_owner >> 4 == RNICSIM_CQE_OPCODE_INVALID)
		return NULL;
	if ((opcode_owner & 1) != (position >> cq->log_entries & 1))
		return NULL;
	dma_rmb(); /* `opcode_owner` was written last */
	return cqe;
}

/* Entries before the consumer may be written again: they were read before. */
static void release(struct rnic_cq *cq)
{
	struct rnicsim_cq_doorbell_record *record = cq->record->memory;

	mb(); /* loads of entries before the store of the record */
	WRITE_ONCE(record->consumer, cpu_to_be32(cq->consumer & 0xffffff));
}

static u8 opcode_of(const struct rnicsim_cqe *cqe)
{
	return cqe->opcode_owner >> 4;
}

static bool is_error(const struct rnicsim_cqe *cqe)
{
	return opcode_of(cqe) == RNICSIM_CQE_OPCODE_REQUESTER_ERROR ||
	       opcode_of(cqe) == RNICSIM_CQE_OPCODE_RESPONDER_ERROR;
}

static bool is_requester(const struct rnicsim_cqe *cqe)
{
	return opcode_of(cqe) == RNICSIM_CQE_OPCODE_REQUESTER ||
	       opcode_of(cqe) == RNICSIM_CQE_OPCODE_REQUESTER_ERROR;
}

static enum ib_wc_opcode wc_opcode(const struct rnicsim_cqe *cqe)
{
	if (opcode_of(cqe) == RNICSIM_CQE_OPCODE_RECEIVE_WRITE_WITH_IMM)
		return IB_WC_RECV_RDMA_WITH_IMM;
	if (!is_requester(cqe))
		return IB_WC_RECV;
	switch (cqe->send_opcode) {
	case RNICSIM_SEND_OPCODE_WRITE:
	case RNICSIM_SEND_OPCODE_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case RNICSIM_SEND_OPCODE_READ:
		return IB_WC_RDMA_READ;
	case RNICSIM_SEND_OPCODE_COMPARE_SWAP:
		return IB_WC_COMP_SWAP;
	case RNICSIM_SEND_OPCODE_FETCH_ADD:
		return IB_WC_FETCH_ADD;
	case RNICSIM_SEND_OPCODE_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case RNICSIM_SEND_OPCODE_FAST_REGISTER:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

static u64 retire_send(struct rnic_send_queue *sq, u16 wqe_index)
{
	struct rnic_send_slot *slot = &sq->slots[wqe_index & (BIT(sq->log_blocks) - 1)];

	/* Posting reads it without this CQ's lock. */
	smp_store_release(&sq->retired, slot->retired_after);
	return slot->wr_id;
}

static u64 retire_receive(struct rnic_receive_queue *rq, u16 index)
{
	u32 retired = rq->retired + (u16)(index - (u16)rq->retired);
	u64 wr_id = rq->wr_ids[retired & (BIT(rq->log_wqes) - 1)];

	smp_store_release(&rq->retired, retired + 1);
	return wr_id;
}

static u64 retire(struct rnic_qp *qp, const struct rnicsim_cqe *cqe)
{
	u16 counter = be16_to_cpu(cqe->wqe_counter);

	if (is_requester(cqe))
		return retire_send(&qp->sq, counter);
	if (qp->ib.srq)
		return rnic_retire_shared(to_rnic_srq(qp->ib.srq), counter);
	return retire_receive(&qp->rq, counter);
}

/* The header before a datagram: an IPv6 one, or an IPv4 one in its last 20 bytes. */
static void fill_datagram(const struct rnicsim_cqe *cqe, struct ib_wc *wc)
{
	wc->src_qp = cqe->source_qpn[0] << 16 | cqe->source_qpn[1] << 8 | cqe->source_qpn[2];
	if (!(cqe->flags & RNICSIM_CQE_GRH))
		return;
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE;
	wc->network_hdr_type = cqe->flags & RNICSIM_CQE_IPV4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	if (cqe->flags & RNICSIM_CQE_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = be16_to_cpu(cqe->vlan) & VLAN_VID_MASK;
		wc->sl = be16_to_cpu(cqe->vlan) >> VLAN_PRIO_SHIFT;
	}
}

static void fill_success(const struct rnicsim_cqe *cqe, struct ib_wc *wc)
{
	wc->opcode = wc_opcode(cqe);
	wc->byte_len = be32_to_cpu(cqe->byte_count);
	wc->port_num = RNIC_PORT;
	switch (opcode_of(cqe)) {
	case RNICSIM_CQE_OPCODE_RECEIVE_WRITE_WITH_IMM:
	case RNICSIM_CQE_OPCODE_RECEIVE_SEND_WITH_IMM:
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = cqe->immediate;
		break;
	case RNICSIM_CQE_OPCODE_RECEIVE_SEND_WITH_INV:
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = be32_to_cpu(cqe->immediate);
		break;
	}
	if (cqe->flags & RNICSIM_CQE_CHECKSUMS_RIGHT)
		wc->wc_flags |= IB_WC_IP_CSUM_OK;
	if (!is_requester(cqe))
		fill_datagram(cqe, wc);
}

/* An error of a receive, or of a reliable send, takes the queue pair to ERR. */
static void note_error(struct rnic_qp *qp, const struct rnicsim_cqe *cqe)
{
	if (is_requester(cqe) && qp->transport != RNICSIM_TRANSPORT_RC)
		return;
	WRITE_ONCE(qp->failed, true);
	rnic_flush_receives(qp);
}

static void fill(struct rnic_device *dev, const struct rnicsim_cqe *cqe, struct ib_wc *wc)
{
	/* A queue pair takes its completions with it: one that is found here lives. */
	struct rnic_qp *qp = xa_load(&dev->qps, be32_to_cpu(cqe->qpn));

	memset(wc, 0, sizeof(*wc));
	wc->status = (enum ib_wc_status)cqe->syndrome;
	wc->vendor_err = cqe->vendor_error;
	if (WARN_ON_ONCE(!qp)) {
		wc->status = IB_WC_GENERAL_ERR;
		return;
	}
	wc->qp = &qp->ib;
	wc->wr_id = retire(qp, cqe);
	if (is_error(cqe))
		note_error(qp, cqe);
	else
		fill_success(cqe, wc);
}

int rnic_poll_cq(struct ib_cq *ib, int count, struct ib_wc *wc)
{
	struct rnic_cq *cq = to_rnic_cq(ib);
	struct rnicsim_cqe *cqe;
	unsigned long flags;
	int polled;

	spin_lock_irqsave(&cq->lock, flags);
	for (polled = 0; polled < count; polled++) {
		cqe = ready_at(cq, cq->consumer);
		if (!cqe)
			break;
		fill(to_rnic(ib->device), cqe, &wc[polled]);
		cq->consumer++;
	}
	if (polled)
		release(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	return polled;
}

/* An entry that lies in the CQ already raises the event at once: none is missed. */
int rnic_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	struct rnic_cq *cq = to_rnic_cq(ib);
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	rnic_ring(to_rnic(ib->device), 0, RNICSIM_UAR_CQ_ARM,
		  cq->cqn << 8 | (solicited ? RNICSIM_CQ_ARM_SOLICITED_ONLY : 0), cq->consumer & 0xffffff);
	spin_unlock_irqrestore(&cq->lock, irq);
	return 0;
}

static u32 visible_end(const struct rnic_cq *cq)
{
	u32 end = cq->consumer;

	while (end - cq->consumer < BIT(cq->log_entries) && ready_at(cq, end))
		end++;
	return end;
}

/*
 * The device is through with the queue pair: its entries go. From the newest
 * back, kept ones move up over dropped ones; an owner bit stays at its place.
 */
void rnic_forget_completions(struct rnic_cq *cq, const struct rnic_qp *qp)
{
	unsigned long flags;
	u32 position, dropped = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (position = visible_end(cq); position-- != cq->consumer;) {
		struct rnicsim_cqe *cqe = entry_at(cq, position);
		struct rnicsim_cqe *target = entry_at(cq, position + dropped);
		u8 owner = target->opcode_owner & 1;

		if (be32_to_cpu(cqe->qpn) == qp->qpn) {
			if (qp->ib.srq && !is_requester(cqe))
				rnic_retire_shared(to_rnic_srq(qp->ib.srq), be16_to_cpu(cqe->wqe_counter));
			dropped++;
		} else if (dropped) {
			*target = *cqe;
			target->opcode_owner = (cqe->opcode_owner & ~1) | owner;
		}
	}
	cq->consumer += dropped;
	release(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
}
