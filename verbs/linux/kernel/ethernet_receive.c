// SPDX-License-Identifier: GPL-2.0
/* Frames that come by the port. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>

#include "ethernet.h"

static int map(struct rnic_ethernet *port, struct rnic_receive_frame *frame, struct sk_buff *skb)
{
	struct device *dma = &port->dev->pdev->dev;
	dma_addr_t address = dma_map_single(dma, skb->data, port->buffer_bytes, DMA_FROM_DEVICE);

	if (dma_mapping_error(dma, address))
		return -ENOMEM;
	frame->skb = skb;
	frame->dma = address;
	return 0;
}

static void unmap(struct rnic_ethernet *port, struct rnic_receive_frame *frame)
{
	dma_unmap_single(&port->dev->pdev->dev, frame->dma, port->buffer_bytes, DMA_FROM_DEVICE);
}

static int post(struct rnic_ethernet *port, u32 index)
{
	struct ib_sge buffer = {
		.addr = port->receives[index].dma,
		.length = port->buffer_bytes,
		.lkey = port->memory->lkey,
	};
	struct ib_recv_wr wr = { .wr_id = index, .sg_list = &buffer, .num_sge = 1 };
	const struct ib_recv_wr *bad;

	return rnic_post_recv(&port->qp.ib, &wr, &bad);
}

int rnic_ethernet_fill(struct rnic_ethernet *port)
{
	int error;
	u32 i;

	for (i = 0; i < RNIC_RECEIVE_ENTRIES; i++) {
		struct sk_buff *skb = __netdev_alloc_skb_ip_align(port->nd, port->buffer_bytes, GFP_KERNEL);

		if (!skb)
			return -ENOMEM;
		error = map(port, &port->receives[i], skb);
		if (error) {
			dev_kfree_skb_any(skb);
			return error;
		}
		error = post(port, i);
		if (error)
			return error;
	}
	return 0;
}

void rnic_ethernet_empty(struct rnic_ethernet *port)
{
	u32 i;

	for (i = 0; i < RNIC_RECEIVE_ENTRIES; i++) {
		struct rnic_receive_frame *frame = &port->receives[i];

		if (!frame->skb)
			continue;
		unmap(port, frame);
		dev_kfree_skb_any(frame->skb);
		frame->skb = NULL;
	}
}

static void deliver(struct rnic_ethernet *port, struct sk_buff *skb, const struct ib_wc *wc)
{
	struct net_device *nd = port->nd;

	skb_put(skb, wc->byte_len);
	skb->protocol = eth_type_trans(skb, nd);
	if (nd->features & NETIF_F_RXCSUM && wc->wc_flags & IB_WC_IP_CSUM_OK)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	dev_sw_netstats_rx_add(nd, wc->byte_len);
	napi_gro_receive(&port->napi, skb);
}

/* A frame is delivered when another buffer takes its place; otherwise the frame is lost, and its buffer stays. */
static void take(struct rnic_ethernet *port, const struct ib_wc *wc)
{
	struct rnic_receive_frame *frame = &port->receives[wc->wr_id];
	struct rnic_receive_frame fresh;
	struct sk_buff *skb = napi_alloc_skb(&port->napi, port->buffer_bytes);

	if (skb && !map(port, &fresh, skb)) {
		unmap(port, frame);
		deliver(port, frame->skb, wc);
		*frame = fresh;
	} else {
		port->nd->stats.rx_dropped++;
		if (skb)
			napi_consume_skb(skb, 1);
	}
	post(port, wc->wr_id); /* fails on a dead device alone */
}

static int receive(struct rnic_ethernet *port, int budget)
{
	int done = 0, i, count;

	while (done < budget) {
		count = rnic_poll_cq(&port->receive_cq.ib, min(budget - done, RNIC_POLL_BATCH), port->completions);
		for (i = 0; i < count; i++) {
			const struct ib_wc *wc = &port->completions[i];

			if (wc->status == IB_WC_SUCCESS) {
				take(port, wc);
				continue;
			}
			port->nd->stats.rx_errors++;
			schedule_work(&port->restart);
		}
		done += count;
		if (!count)
			break;
	}
	return done;
}

int rnic_ethernet_poll(struct napi_struct *napi, int budget)
{
	struct rnic_ethernet *port = container_of(napi, struct rnic_ethernet, napi);
	int done;

	rnic_ethernet_finish_sends(port);
	done = receive(port, budget);
	if (done < budget && napi_complete_done(napi, done)) {
		/* A completion that came meanwhile raises its event at once. */
		rnic_req_notify_cq(&port->send_cq.ib, IB_CQ_NEXT_COMP);
		rnic_req_notify_cq(&port->receive_cq.ib, IB_CQ_NEXT_COMP);
	}
	return done;
}
