// SPDX-License-Identifier: GPL-2.0
/* Posting to the send queues of kernel queue pairs. */
#include <linux/if_ether.h>
#include <rdma/ib_verbs.h>

#include "rnic.h"

#define SEGMENT sizeof(struct rnicsim_data_segment)
#define MOST_SEGMENT_BYTES 0x7fffffffu /* the top bit says inline */

/* A WQE in the making: it may wrap round the ring's end, between segments of 16 bytes. */
struct wqe {
	struct rnic_send_queue *sq;
	u32 at; /* bytes from the ring's begin, not yet wrapped */
	u32 bytes;
};

static void append(struct wqe *wqe, const void *from, u32 bytes)
{
	u32 size = RNICSIM_SEND_BLOCK << wqe->sq->log_blocks;
	u32 at = (wqe->at + wqe->bytes) & (size - 1);
	u32 before_end = min(bytes, size - at);

	memcpy(wqe->sq->ring + at, from, before_end);
	memcpy(wqe->sq->ring, from + before_end, bytes - before_end);
	wqe->bytes += bytes;
}

static void append_remote(struct wqe *wqe, u64 address, u32 rkey)
{
	struct rnicsim_remote_address_segment segment = {
		.address = cpu_to_be64(address),
		.rkey = cpu_to_be32(rkey),
	};

	append(wqe, &segment, sizeof(segment));
}

static void append_atomic(struct wqe *wqe, const struct ib_send_wr *wr)
{
	const struct ib_atomic_wr *atomic = atomic_wr(wr);
	struct rnicsim_atomic_segment segment = {};

	append_remote(wqe, atomic->remote_addr, atomic->rkey);
	if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP) {
		segment.swap_add = cpu_to_be64(atomic->swap);
		segment.compare = cpu_to_be64(atomic->compare_add);
	} else {
		segment.swap_add = cpu_to_be64(atomic->compare_add);
	}
	append(wqe, &segment, sizeof(segment));
}

/* A frame's headers, and how much of the data follows them in each segment. */
static int append_headers(struct wqe *wqe, const struct rnic_device *dev, const struct ib_ud_wr *wr)
{
	static const u8 zeros[SEGMENT];
	struct rnicsim_tso_segment segment = {
		.mss = cpu_to_be16(wr->mss),
		.header_bytes = cpu_to_be16(wr->hlen),
	};

	if (wr->mss <= 0 || wr->mss > U16_MAX || wr->hlen < ETH_HLEN || wr->hlen > rnic_most_headers(&dev->caps))
		return -EINVAL;
	append(wqe, &segment, sizeof(segment));
	append(wqe, wr->header, wr->hlen);
	append(wqe, zeros, round_up(wqe->bytes, SEGMENT) - wqe->bytes);
	return 0;
}

static void append_datagram(struct wqe *wqe, const struct ib_ud_wr *ud)
{
	struct rnicsim_datagram_segment segment = {
		.path = to_rnic_ah(ud->ah)->path,
		.remote_qpn = cpu_to_be32(ud->remote_qpn & 0xffffff),
		.qkey = cpu_to_be32(ud->remote_qkey),
	};

	append(wqe, &segment, sizeof(segment));
}

void rnic_put_segment(struct rnicsim_data_segment *to, const struct ib_sge *sge)
{
	to->byte_count = cpu_to_be32(sge->length);
	to->lkey = cpu_to_be32(sge->lkey);
	to->address = cpu_to_be64(sge->addr);
}

static int append_segments(struct wqe *wqe, const struct ib_send_wr *wr)
{
	struct rnicsim_data_segment segment;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > MOST_SEGMENT_BYTES)
			return -EINVAL;
		rnic_put_segment(&segment, &wr->sg_list[i]);
		append(wqe, &segment, sizeof(segment));
	}
	return 0;
}

static int append_inline(struct wqe *wqe, const struct rnic_qp *qp, const struct ib_send_wr *wr)
{
	static const u8 zeros[SEGMENT];
	struct rnicsim_inline_header header;
	u32 total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (wr->sg_list[i].length > qp->cap.max_inline_data - total)
			return -EINVAL;
		total += wr->sg_list[i].length;
	}
	if (!total)
		return 0;
	header.byte_count = cpu_to_be32(RNICSIM_INLINE_HEADER_INLINE | total);
	append(wqe, &header, sizeof(header));
	for (i = 0; i < wr->num_sge; i++)
		append(wqe, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	append(wqe, zeros, round_up(wqe->bytes, SEGMENT) - wqe->bytes);
	return 0;
}

/* The device's opcode, or -1 for what it does not have. */
static int device_opcode(const struct rnic_device *dev, enum ib_wr_opcode opcode)
{
	bool invalidates = dev->caps.features & RNICSIM_FEATURE_INVALIDATE;

	switch (opcode) {
	case IB_WR_SEND:
		return RNICSIM_SEND_OPCODE_SEND;
	case IB_WR_SEND_WITH_IMM:
		return RNICSIM_SEND_OPCODE_SEND_WITH_IMM;
	case IB_WR_SEND_WITH_INV:
		return invalidates ? RNICSIM_SEND_OPCODE_SEND_WITH_INV : -1;
	case IB_WR_RDMA_WRITE:
		return RNICSIM_SEND_OPCODE_WRITE;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return RNICSIM_SEND_OPCODE_WRITE_WITH_IMM;
	case IB_WR_RDMA_READ:
		return RNICSIM_SEND_OPCODE_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return RNICSIM_SEND_OPCODE_COMPARE_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return RNICSIM_SEND_OPCODE_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return invalidates ? RNICSIM_SEND_OPCODE_LOCAL_INV : -1;
	case IB_WR_LSO:
		return RNICSIM_SEND_OPCODE_TSO;
	case IB_WR_REG_MR:
		return dev->caps.features & RNICSIM_FEATURE_FAST_REGISTER ? RNICSIM_SEND_OPCODE_FAST_REGISTER : -1;
	default:
		return -1;
	}
}

static __be32 immediate_of(const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return wr->ex.imm_data;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		return cpu_to_be32(wr->ex.invalidate_rkey);
	default:
		return 0;
	}
}

static u32 control_flags(const struct rnic_qp *qp, int flags)
{
	return (qp->signal_all || (flags & IB_SEND_SIGNALED) ? RNICSIM_CONTROL_SEGMENT_SIGNALED : 0) |
	       (flags & IB_SEND_SOLICITED ? RNICSIM_CONTROL_SEGMENT_SOLICITED : 0) |
	       (flags & IB_SEND_FENCE ? RNICSIM_CONTROL_SEGMENT_FENCE : 0) |
	       (flags & IB_SEND_IP_CSUM ? RNICSIM_CONTROL_SEGMENT_CHECKSUMS : 0);
}

static int append_registration(struct wqe *wqe, struct rnic_device *dev, const struct ib_reg_wr *wr)
{
	struct rnicsim_register_segment segment = {};
	int error = rnic_encode_registration(dev, wr, &segment);

	if (!error)
		append(wqe, &segment, sizeof(segment));
	return error;
}

/* Appends the segments behind the control segment. */
static int append_body(struct wqe *wqe, struct rnic_qp *qp, const struct ib_send_wr *wr)
{
	int error;

	if (wr->opcode == IB_WR_LOCAL_INV)
		return 0;
	if (wr->opcode == IB_WR_REG_MR)
		return append_registration(wqe, to_rnic(qp->ib.device), reg_wr(wr));
	if (qp->transport == RNICSIM_TRANSPORT_UD)
		append_datagram(wqe, ud_wr(wr));
	switch (wr->opcode) {
	case IB_WR_LSO:
		error = append_headers(wqe, to_rnic(qp->ib.device), ud_wr(wr));
		if (error)
			return error;
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		append_remote(wqe, rdma_wr(wr)->remote_addr, rdma_wr(wr)->rkey);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		append_atomic(wqe, wr);
		break;
	default:
		break;
	}
	if (wr->send_flags & IB_SEND_INLINE)
		return append_inline(wqe, qp, wr);
	return append_segments(wqe, wr);
}

static bool is_legal(const struct rnic_qp *qp, enum ib_wr_opcode opcode)
{
	switch (qp->transport) {
	case RNICSIM_TRANSPORT_UD:
		return opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM;
	case RNICSIM_TRANSPORT_UC:
		return opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM || opcode == IB_WR_RDMA_WRITE ||
		       opcode == IB_WR_RDMA_WRITE_WITH_IMM || opcode == IB_WR_LOCAL_INV ||
		       opcode == IB_WR_REG_MR;
	case RNICSIM_TRANSPORT_RAW:
		return opcode == IB_WR_SEND || opcode == IB_WR_LSO;
	default:
		return opcode != IB_WR_LSO;
	}
}

static bool is_full(const struct rnic_send_queue *sq)
{
	return sq->posted - smp_load_acquire(&sq->retired) >= sq->capacity;
}

static int post_one(struct rnic_device *dev, struct rnic_qp *qp, const struct ib_send_wr *wr)
{
	struct rnic_send_queue *sq = &qp->sq;
	u32 index = sq->producer & (BIT(sq->log_blocks) - 1);
	struct wqe wqe = { .sq = sq, .at = index * RNICSIM_SEND_BLOCK };
	struct rnicsim_control_segment control = {};
	int opcode = device_opcode(dev, wr->opcode);
	int error;

	if (opcode < 0 || !is_legal(qp, wr->opcode))
		return -EOPNOTSUPP;
	if (wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if (is_full(sq))
		return -ENOMEM;
	control.opcode = opcode;
	control.wqe_index = cpu_to_be16(sq->producer);
	control.qpn_flags = cpu_to_be32(qp->qpn << 8 | control_flags(qp, wr->send_flags));
	control.immediate = immediate_of(wr);
	append(&wqe, &control, sizeof(control));
	error = append_body(&wqe, qp, wr);
	if (error)
		return error;
	((struct rnicsim_control_segment *)(sq->ring + wqe.at))->segments = wqe.bytes / SEGMENT;
	sq->posted++;
	sq->slots[index].wr_id = wr->wr_id;
	sq->slots[index].retired_after = sq->posted;
	sq->producer += DIV_ROUND_UP(wqe.bytes, RNICSIM_SEND_BLOCK);
	return 0;
}

/* Under the send queue's lock. */
static void ring_send(struct rnic_device *dev, struct rnic_qp *qp)
{
	u32 producer = qp->sq.producer & 0xffff;

	dma_wmb(); /* WQEs before the record; writeq orders the record before the doorbell */
	WRITE_ONCE(qp->record->send_producer, cpu_to_be32(producer));
	rnic_ring(dev, qp->uar_page, RNICSIM_UAR_SEND_DOORBELL, qp->qpn, producer);
}

int rnic_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_qp *qp = to_rnic_qp(ib);
	u32 rung = 0;
	unsigned long flags;
	int error = 0;

	if (!qp->sq.slots || rnic_dead(dev)) {
		*bad = wr;
		return rnic_dead(dev) ? -EIO : -EINVAL;
	}
	spin_lock_irqsave(&qp->sq.lock, flags);
	rung = qp->sq.producer;
	for (; wr; wr = wr->next) {
		error = post_one(dev, qp, wr);
		if (error) {
			*bad = wr;
			break;
		}
	}
	if (qp->sq.producer != rung)
		ring_send(dev, qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	return error;
}
