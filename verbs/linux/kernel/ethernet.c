// SPDX-License-Identifier: GPL-2.0
/* The network device of the port: its life, its link, its addresses. */
#include <linux/etherdevice.h>
#include <linux/interrupt.h>
#include <linux/rtnetlink.h>

#include "ethernet.h"

static int open_port(struct net_device *nd)
{
	return rnic_ethernet_up(netdev_priv(nd));
}

static int stop_port(struct net_device *nd)
{
	rnic_ethernet_down(netdev_priv(nd));
	return 0;
}

static int up_or_close(struct rnic_ethernet *port)
{
	int error = rnic_ethernet_up(port);

	if (error) {
		netdev_err(port->nd, "failed to create the queues again: error %d; the network device goes down\n", error);
		dev_close(port->nd);
	}
	return error;
}

/* The queue pair failed: another one takes its place. Addresses and routes stay. */
static void restart(struct work_struct *work)
{
	struct rnic_ethernet *port = container_of(work, struct rnic_ethernet, restart);

	rtnl_lock();
	if (port->up && !rnic_dead(port->dev)) {
		rnic_ethernet_down(port);
		up_or_close(port);
	}
	rtnl_unlock();
}

static void tx_timeout(struct net_device *nd, unsigned int queue)
{
	struct rnic_ethernet *port = netdev_priv(nd);

	netdev_warn(nd, "%u frames not sent in time: the driver creates the queues again\n",
		    port->send_head - port->send_tail);
	schedule_work(&port->restart);
}

static void set_rx_mode(struct net_device *nd)
{
	struct rnic_ethernet *port = netdev_priv(nd);

	schedule_work(&port->rules.work);
}

static int set_mac_address(struct net_device *nd, void *address)
{
	int error = eth_mac_addr(nd, address);

	if (!error)
		set_rx_mode(nd);
	return error;
}

/* Buffers are as long as frames are: with a new length there are new ones. */
static int change_mtu(struct net_device *nd, int mtu)
{
	struct rnic_ethernet *port = netdev_priv(nd);
	bool up = port->up;

	if (up)
		rnic_ethernet_down(port);
	nd->mtu = mtu;
	return up ? up_or_close(port) : 0;
}

static const struct net_device_ops ops = {
	.ndo_open = open_port,
	.ndo_stop = stop_port,
	.ndo_start_xmit = rnic_ethernet_xmit,
	.ndo_features_check = rnic_ethernet_check_features,
	.ndo_get_stats64 = dev_get_tstats64,
	.ndo_set_rx_mode = set_rx_mode,
	.ndo_set_mac_address = set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = change_mtu,
	.ndo_tx_timeout = tx_timeout,
};

/* Events of the port, and of its device's death. */
void rnic_ethernet_set_carrier(struct rnic_device *dev, bool on)
{
	struct rnic_ethernet *port = READ_ONCE(dev->ethernet);

	if (!port)
		return;
	if (on)
		netif_carrier_on(port->nd);
	else
		netif_carrier_off(port->nd);
}

struct net_device *rnic_ethernet_netdev(struct rnic_device *dev)
{
	struct rnic_ethernet *port = READ_ONCE(dev->ethernet);

	return port ? port->nd : NULL;
}

static int init_memory(struct rnic_ethernet *port)
{
	int error;

	port->pd.ib.device = &port->dev->ib;
	error = rnic_alloc_pd(&port->pd.ib, NULL);
	if (error)
		return error;
	port->memory = rnic_get_dma_mr(&port->pd.ib, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(port->memory)) {
		rnic_dealloc_pd(&port->pd.ib, NULL);
		return PTR_ERR(port->memory);
	}
	port->memory->device = &port->dev->ib;
	return 0;
}

static void free_memory(struct rnic_ethernet *port)
{
	if (rnic_dereg_mr(port->memory, NULL))
		netdev_err(port->nd, "the device did not destroy the memory region\n");
	rnic_dealloc_pd(&port->pd.ib, NULL);
}

static void describe(struct rnic_ethernet *port)
{
	const struct rnic_capabilities *caps = &port->dev->caps;
	struct net_device *nd = port->nd;

	nd->netdev_ops = &ops;
	nd->ethtool_ops = &rnic_ethtool_ops;
	nd->watchdog_timeo = 10 * HZ; /* a guest may be slow, and the device with it */
	nd->min_mtu = ETH_MIN_MTU;
	nd->max_mtu = caps->max_frame - RNIC_FRAME_OVERHEAD;
	nd->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
	nd->hw_features = NETIF_F_SG | NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | NETIF_F_RXCSUM;
	if (caps->max_tso && caps->max_tso_header) {
		nd->hw_features |= NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN;
		netif_set_tso_max_size(nd, caps->max_tso);
	}
	nd->features = nd->hw_features;
	nd->vlan_features = nd->hw_features & ~NETIF_F_RXCSUM;
	netif_napi_add(nd, &port->napi, rnic_ethernet_poll);
}

static int register_port(struct rnic_ethernet *port)
{
	struct rnicsim_port_attributes attributes = {};
	int error = rnic_ask_port(port->dev, &attributes);

	if (error)
		return error;
	eth_hw_addr_set(port->nd, attributes.mac);
	port->nd->tstats = netdev_alloc_pcpu_stats(struct pcpu_sw_netstats);
	if (!port->nd->tstats)
		return -ENOMEM;
	describe(port);
	netif_carrier_off(port->nd);
	error = register_netdev(port->nd);
	if (error) {
		netif_napi_del(&port->napi);
		free_percpu(port->nd->tstats);
	}
	return error;
}

/* Behind the event queues; before the RDMA device, which has its GIDs from the network device. */
int rnic_create_ethernet(struct rnic_device *dev)
{
	struct rnicsim_port_attributes attributes = {};
	struct rnic_ethernet *port;
	struct net_device *nd;
	int error;

	nd = alloc_etherdev(sizeof(*port));
	if (!nd)
		return -ENOMEM;
	SET_NETDEV_DEV(nd, &dev->pdev->dev);
	port = netdev_priv(nd);
	port->dev = dev;
	port->nd = nd;
	rnic_init_rules(&port->rules);
	INIT_WORK(&port->restart, restart);
	error = init_memory(port);
	if (error)
		goto free_netdev;
	error = register_port(port);
	if (error)
		goto free_memory;
	dev->ethernet = port;
	/* An event before this line had no Ethernet port to inform. */
	error = rnic_ask_port(dev, &attributes);
	if (!error)
		rnic_ethernet_set_carrier(dev, attributes.state == IB_PORT_ACTIVE);
	return 0;

free_memory:
	free_memory(port);
free_netdev:
	free_netdev(nd);
	return error;
}

/* Before the event queues go. */
void rnic_destroy_ethernet(struct rnic_device *dev)
{
	struct rnic_ethernet *port = dev->ethernet;

	if (!port)
		return;
	WRITE_ONCE(dev->ethernet, NULL);
	synchronize_irq(dev->eqs[0].irq); /* whose thread may set the carrier */
	unregister_netdev(port->nd);
	cancel_work_sync(&port->rules.work);
	cancel_work_sync(&port->restart);
	netif_napi_del(&port->napi);
	free_memory(port);
	free_percpu(port->nd->tstats);
	free_netdev(port->nd);
}
