// SPDX-License-Identifier: GPL-2.0
/* The queues of the port, as long as it is up: two completion queues, and a raw queue pair. */
#include "ethernet.h"

/* Called in interrupts. */
static void completed(struct ib_cq *cq, void *context)
{
	struct rnic_ethernet *port = context;

	napi_schedule(&port->napi);
}

static void queue_pair_failed(struct ib_event *event, void *context)
{
	struct rnic_ethernet *port = context;

	netdev_warn(port->nd, "queue pair: %s\n", ib_event_msg(event->event));
	schedule_work(&port->restart);
}

static int create_cq(struct rnic_ethernet *port, struct rnic_cq *cq, u32 entries)
{
	struct ib_cq_init_attr attr = { .cqe = entries };

	memset(cq, 0, sizeof(*cq));
	cq->ib.device = &port->dev->ib;
	cq->ib.comp_handler = completed;
	cq->ib.cq_context = port;
	return rnic_create_cq(&cq->ib, &attr, NULL);
}

static void destroy_cq(struct rnic_ethernet *port, struct rnic_cq *cq)
{
	if (rnic_destroy_cq(&cq->ib, NULL))
		netdev_err(port->nd, "the device did not destroy completion queue %u\n", cq->cqn);
}

static int create_qp(struct rnic_ethernet *port)
{
	const struct rnic_capabilities *caps = &port->dev->caps;
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RAW_PACKET,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		/* Frames to a group of stations come back otherwise. */
		.create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK,
		.send_cq = &port->send_cq.ib,
		.recv_cq = &port->receive_cq.ib,
		.cap = {
			.max_send_wr = RNIC_SEND_ENTRIES,
			.max_recv_wr = RNIC_RECEIVE_ENTRIES,
			.max_send_sge = min_t(u32, RNIC_MOST_PIECES, caps->max_send_sge),
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp = &port->qp.ib;
	int error;

	memset(&port->qp, 0, sizeof(port->qp));
	qp->device = &port->dev->ib;
	qp->pd = &port->pd.ib;
	qp->send_cq = attr.send_cq;
	qp->recv_cq = attr.recv_cq;
	qp->qp_type = attr.qp_type;
	qp->event_handler = queue_pair_failed;
	qp->qp_context = port;
	error = rnic_create_qp(qp, &attr, NULL);
	port->pieces = min_t(u32, RNIC_MOST_PIECES, caps->max_send_sge);
	return error;
}

static int start_qp(struct rnic_ethernet *port)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
	int i, error = 0;

	for (i = 0; !error && i < ARRAY_SIZE(states); i++) {
		struct ib_qp_attr attr = { .qp_state = states[i], .port_num = RNIC_PORT };

		error = rnic_modify_qp(&port->qp.ib, &attr,
				       IB_QP_STATE | (states[i] == IB_QPS_INIT ? IB_QP_PORT : 0), NULL);
	}
	return error;
}

static void destroy_qp(struct rnic_ethernet *port)
{
	if (rnic_destroy_qp(&port->qp.ib, NULL))
		netdev_err(port->nd, "the device did not destroy queue pair %u\n", port->qp.qpn);
}

static int create_queues(struct rnic_ethernet *port)
{
	int error = create_cq(port, &port->send_cq, RNIC_SEND_ENTRIES);

	if (error)
		return error;
	error = create_cq(port, &port->receive_cq, RNIC_RECEIVE_ENTRIES);
	if (error)
		goto destroy_send_cq;
	error = create_qp(port);
	if (error)
		goto destroy_receive_cq;
	return 0;

destroy_receive_cq:
	destroy_cq(port, &port->receive_cq);
destroy_send_cq:
	destroy_cq(port, &port->send_cq);
	return error;
}

static void destroy_queues(struct rnic_ethernet *port)
{
	destroy_qp(port);
	destroy_cq(port, &port->receive_cq);
	destroy_cq(port, &port->send_cq);
}

static int alloc_frames(struct rnic_ethernet *port)
{
	port->sent = kvcalloc(RNIC_SEND_ENTRIES, sizeof(*port->sent), GFP_KERNEL);
	port->receives = kvcalloc(RNIC_RECEIVE_ENTRIES, sizeof(*port->receives), GFP_KERNEL);
	port->send_head = 0;
	port->send_tail = 0;
	port->buffer_bytes = port->nd->mtu + RNIC_FRAME_OVERHEAD;
	return port->sent && port->receives ? 0 : -ENOMEM;
}

/* The device is through with the queue pair. */
static void free_frames(struct rnic_ethernet *port)
{
	if (port->sent)
		rnic_ethernet_drop_sends(port);
	if (port->receives)
		rnic_ethernet_empty(port);
	kvfree(port->sent);
	kvfree(port->receives);
	port->sent = NULL;
	port->receives = NULL;
}

/* Under RTNL. */
int rnic_ethernet_up(struct rnic_ethernet *port)
{
	int error = rnic_dead(port->dev) ? -EIO : create_queues(port);

	if (error)
		return error;
	error = alloc_frames(port);
	if (!error)
		error = start_qp(port);
	if (!error)
		error = rnic_ethernet_fill(port);
	if (error)
		goto destroy;
	napi_enable(&port->napi);
	rnic_req_notify_cq(&port->send_cq.ib, IB_CQ_NEXT_COMP);
	rnic_req_notify_cq(&port->receive_cq.ib, IB_CQ_NEXT_COMP);
	error = rnic_start_rules(port);
	if (error)
		goto disable;
	port->up = true;
	netif_start_queue(port->nd);
	return 0;

disable:
	napi_disable(&port->napi);
destroy:
	destroy_queues(port);
	free_frames(port);
	return error;
}

/* Under RTNL; without effect when the port is down. */
void rnic_ethernet_down(struct rnic_ethernet *port)
{
	if (!port->up)
		return;
	port->up = false;
	napi_disable(&port->napi); /* the poll wakes the queue */
	netif_tx_disable(port->nd);
	rnic_stop_rules(port);
	destroy_queues(port);
	free_frames(port);
}
