// SPDX-License-Identifier: GPL-2.0
/*
 * The network device whose addresses are the GIDs. The NIC has none of its
 * own yet: frames that are not RoCE go through an ordinary one beside it.
 */
#include <linux/if_arp.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "rnic.h"

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network device whose addresses are the GIDs (default: the first Ethernet device)");

static bool fits(const struct net_device *nd)
{
	if (netdev)
		return !strcmp(nd->name, netdev);
	return nd->type == ARPHRD_ETHER && !(nd->flags & IFF_LOOPBACK) && nd->dev.parent;
}

static int use(struct rnic_device *dev, struct net_device *nd)
{
	int error;

	mutex_lock(&dev->netdev_lock);
	error = ib_device_set_netdev(&dev->ib, nd, RNIC_PORT);
	if (!error)
		dev->netdev = nd;
	mutex_unlock(&dev->netdev_lock);
	return error;
}

/* Before the device is registered. None is no error: one may come later. */
int rnic_find_netdev(struct rnic_device *dev)
{
	struct net_device *nd, *found = NULL;
	int error;

	mutex_init(&dev->netdev_lock);
	rtnl_lock();
	for_each_netdev(&init_net, nd) {
		if (fits(nd)) {
			found = nd;
			break;
		}
	}
	if (found)
		dev_hold(found);
	rtnl_unlock();
	if (!found) {
		dev_warn(&dev->pdev->dev, "no network device%s%s: no GIDs until there is one\n", netdev ? " " : "",
			 netdev ?: "");
		return 0;
	}
	error = use(dev, found);
	dev_put(found); /* the core has its own reference */
	if (!error)
		dev_info(&dev->pdev->dev, "GIDs are the addresses of %s\n", found->name);
	return error;
}

static int netdev_event(struct notifier_block *notifier, unsigned long event, void *info)
{
	struct rnic_device *dev = container_of(notifier, struct rnic_device, netdev_notifier);
	struct net_device *nd = netdev_notifier_info_to_dev(info);

	if (!net_eq(dev_net(nd), &init_net))
		return NOTIFY_DONE;
	if (event == NETDEV_UNREGISTER && nd == dev->netdev)
		use(dev, NULL);
	else if (event == NETDEV_REGISTER && !dev->netdev && fits(nd))
		use(dev, nd);
	return NOTIFY_DONE;
}

int rnic_follow_netdevs(struct rnic_device *dev)
{
	dev->netdev_notifier.notifier_call = netdev_event;
	return register_netdevice_notifier(&dev->netdev_notifier);
}

void rnic_unfollow_netdevs(struct rnic_device *dev)
{
	unregister_netdevice_notifier(&dev->netdev_notifier);
}
