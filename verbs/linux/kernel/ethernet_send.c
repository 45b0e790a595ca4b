// SPDX-License-Identifier: GPL-2.0
/* Frames that leave by the port. */
#include <linux/dma-mapping.h>
#include <linux/ip.h>
#include <linux/tcp.h>

#include "ethernet.h"

static bool is_full(const struct rnic_ethernet *port)
{
	return port->send_head - READ_ONCE(port->send_tail) >= RNIC_SEND_ENTRIES;
}

static void unmap(struct rnic_ethernet *port, struct rnic_send_frame *frame)
{
	struct device *dma = &port->dev->pdev->dev;
	u32 i;

	for (i = 0; i < frame->count; i++) {
		struct ib_sge *piece = &frame->pieces[i];

		if (i == 0 && frame->linear)
			dma_unmap_single(dma, piece->addr, piece->length, DMA_TO_DEVICE);
		else
			dma_unmap_page(dma, piece->addr, piece->length, DMA_TO_DEVICE);
	}
}

static int add_piece(struct rnic_ethernet *port, struct rnic_send_frame *frame, dma_addr_t address, u32 bytes)
{
	if (dma_mapping_error(&port->dev->pdev->dev, address))
		return -ENOMEM;
	frame->pieces[frame->count].addr = address;
	frame->pieces[frame->count].length = bytes;
	frame->pieces[frame->count].lkey = port->memory->lkey;
	frame->count++;
	return 0;
}

/* All of the frame but its first `headers` bytes, which the WQE holds. */
static int map(struct rnic_ethernet *port, struct rnic_send_frame *frame, struct sk_buff *skb, u32 headers)
{
	struct device *dma = &port->dev->pdev->dev;
	u32 linear = skb_headlen(skb) - headers;
	int i, error = 0;

	frame->count = 0;
	frame->linear = linear != 0;
	if (linear)
		error = add_piece(port, frame, dma_map_single(dma, skb->data + headers, linear, DMA_TO_DEVICE), linear);
	for (i = 0; !error && i < skb_shinfo(skb)->nr_frags; i++) {
		skb_frag_t *part = &skb_shinfo(skb)->frags[i];
		u32 bytes = skb_frag_size(part);

		error = add_piece(port, frame, skb_frag_dma_map(dma, part, 0, bytes, DMA_TO_DEVICE), bytes);
	}
	if (error)
		unmap(port, frame);
	return error;
}

static u32 headers_of(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_tcp_all_headers(skb) : 0;
}

static int post(struct rnic_ethernet *port, struct rnic_send_frame *frame, u32 headers)
{
	struct sk_buff *skb = frame->skb;
	struct ib_ud_wr wr = { .wr = { .opcode = IB_WR_SEND, .sg_list = frame->pieces, .num_sge = frame->count } };
	const struct ib_send_wr *bad;

	if (skb->ip_summed == CHECKSUM_PARTIAL)
		wr.wr.send_flags = IB_SEND_IP_CSUM;
	if (headers) {
		wr.wr.opcode = IB_WR_LSO;
		wr.header = skb->data;
		wr.hlen = headers;
		wr.mss = skb_shinfo(skb)->gso_size;
	}
	return rnic_post_send(&port->qp.ib, &wr.wr, &bad);
}

/* One that the queue pair cannot have whole is made of fewer pieces, or segmented by the kernel. */
netdev_features_t rnic_ethernet_check_features(struct sk_buff *skb, struct net_device *nd, netdev_features_t features)
{
	struct rnic_ethernet *port = netdev_priv(nd);

	if (skb_is_gso(skb) && (skb_tcp_all_headers(skb) > rnic_most_headers(&port->dev->caps) ||
				skb_tcp_all_headers(skb) > skb_headlen(skb)))
		features &= ~NETIF_F_GSO_MASK;
	if (skb_shinfo(skb)->nr_frags + 1 > port->pieces)
		features &= ~NETIF_F_SG;
	return vlan_features_check(skb, features);
}

netdev_tx_t rnic_ethernet_xmit(struct sk_buff *skb, struct net_device *nd)
{
	struct rnic_ethernet *port = netdev_priv(nd);
	struct rnic_send_frame *frame = &port->sent[port->send_head % RNIC_SEND_ENTRIES];
	u32 headers = headers_of(skb);
	u32 segments = headers ? skb_shinfo(skb)->gso_segs : 1;
	u32 bytes = skb->len + (segments - 1) * headers; /* on the wire, in all */

	if (is_full(port)) {
		netif_stop_queue(nd);
		return NETDEV_TX_BUSY;
	}
	if (map(port, frame, skb, headers))
		goto drop;
	frame->skb = skb;
	skb_tx_timestamp(skb);
	if (post(port, frame, headers)) {
		unmap(port, frame);
		frame->skb = NULL;
		goto drop;
	}
	/* The frame may be gone already. */
	dev_sw_netstats_tx_add(nd, segments, bytes);
	WRITE_ONCE(port->send_head, port->send_head + 1);
	if (is_full(port)) {
		netif_stop_queue(nd);
		smp_mb(); /* the stop before the look: the poll looks the other way round */
		if (!is_full(port))
			netif_start_queue(nd);
	}
	return NETDEV_TX_OK;

drop:
	nd->stats.tx_dropped++;
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static void finish(struct rnic_ethernet *port, const struct ib_wc *wc)
{
	struct rnic_send_frame *frame = &port->sent[port->send_tail % RNIC_SEND_ENTRIES];

	if (wc->status != IB_WC_SUCCESS) {
		port->nd->stats.tx_errors++;
		if (net_ratelimit())
			netdev_warn(port->nd, "a frame was not sent: %s\n", ib_wc_status_msg(wc->status));
		schedule_work(&port->restart);
	}
	unmap(port, frame);
	napi_consume_skb(frame->skb, 1);
	frame->skb = NULL;
	WRITE_ONCE(port->send_tail, port->send_tail + 1);
}

/* Called by the poll. Every frame has a completion; completions come in the order of the frames. */
void rnic_ethernet_finish_sends(struct rnic_ethernet *port)
{
	int i, count;

	do {
		count = rnic_poll_cq(&port->send_cq.ib, RNIC_POLL_BATCH, port->completions);
		for (i = 0; i < count; i++)
			finish(port, &port->completions[i]);
	} while (count == RNIC_POLL_BATCH);
	smp_mb(); /* the tail before the look: see rnic_ethernet_xmit */
	if (netif_queue_stopped(port->nd) && port->up && !is_full(port))
		netif_wake_queue(port->nd);
}

void rnic_ethernet_drop_sends(struct rnic_ethernet *port)
{
	for (; port->send_tail != port->send_head; port->send_tail++) {
		struct rnic_send_frame *frame = &port->sent[port->send_tail % RNIC_SEND_ENTRIES];

		unmap(port, frame);
		dev_kfree_skb_any(frame->skb);
		port->nd->stats.tx_dropped++;
	}
}
