/* SPDX-License-Identifier: GPL-2.0 */
/* The Ethernet port: a network device over one raw queue pair, which the driver's own verbs make and post to. */
#ifndef RNIC_ETHERNET_H
#define RNIC_ETHERNET_H

#include <linux/if_vlan.h>
#include <linux/netdevice.h>

#include "rnic.h"

#define RNIC_SEND_ENTRIES 256u
#define RNIC_RECEIVE_ENTRIES 256u
#define RNIC_MOST_PIECES (MAX_SKB_FRAGS + 1)
#define RNIC_FRAME_OVERHEAD (ETH_HLEN + VLAN_HLEN)
#define RNIC_POLL_BATCH 16

/* A frame that was posted, and its pieces on the bus. */
struct rnic_send_frame {
	struct sk_buff *skb;
	struct ib_sge pieces[RNIC_MOST_PIECES];
	u32 count;
	bool linear; /* the first piece is the linear part's */
};

/* An empty buffer that was posted. */
struct rnic_receive_frame {
	struct sk_buff *skb;
	dma_addr_t dma;
};

/* The flows that lead frames to the queue pair. */
struct rnic_rules {
	struct mutex lock;
	struct list_head list;
	struct ida numbers;
	bool active; /* the queue pair is there */
	struct work_struct work;
};

struct rnic_ethernet {
	struct rnic_device *dev;
	struct net_device *nd;
	struct napi_struct napi;
	struct rnic_pd pd;
	struct ib_mr *memory; /* all of it */
	struct rnic_rules rules;
	struct work_struct restart;
	/* The members below exist while the port is up. */
	bool up;
	struct rnic_cq send_cq;
	struct rnic_cq receive_cq;
	struct rnic_qp qp;
	u32 pieces; /* of a frame, at most */
	struct rnic_send_frame *sent;
	u32 send_head; /* frames ever posted */
	u32 send_tail; /* frames ever completed */
	struct rnic_receive_frame *receives;
	u32 buffer_bytes;
	struct ib_wc completions[RNIC_POLL_BATCH]; /* the poll alone uses them */
};

/* ethernet_queues.c */
int rnic_ethernet_up(struct rnic_ethernet *port);
void rnic_ethernet_down(struct rnic_ethernet *port);

/* ethernet_send.c */
netdev_tx_t rnic_ethernet_xmit(struct sk_buff *skb, struct net_device *nd);
netdev_features_t rnic_ethernet_check_features(struct sk_buff *skb, struct net_device *nd, netdev_features_t features);
void rnic_ethernet_finish_sends(struct rnic_ethernet *port);
void rnic_ethernet_drop_sends(struct rnic_ethernet *port);

/* ethernet_receive.c */
int rnic_ethernet_fill(struct rnic_ethernet *port);
void rnic_ethernet_empty(struct rnic_ethernet *port);
int rnic_ethernet_poll(struct napi_struct *napi, int budget);

/* ethernet_rules.c */
void rnic_init_rules(struct rnic_rules *rules);
int rnic_start_rules(struct rnic_ethernet *port);
void rnic_stop_rules(struct rnic_ethernet *port);

/* ethtool.c */
extern const struct ethtool_ops rnic_ethtool_ops;

#endif /* RNIC_ETHERNET_H */
