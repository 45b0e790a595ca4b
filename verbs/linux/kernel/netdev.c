// SPDX-License-Identifier: GPL-2.0
/* The network device whose addresses are the GIDs: the driver's own, or another that the user names. */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "rnic.h"

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "another network device whose addresses become the GIDs (default: the driver creates one)");

/* Frames other than RoCE go by the named device then: the driver makes none. */
bool rnic_wants_ethernet(const struct rnic_device *dev)
{
	return !netdev && dev->caps.features & RNICSIM_FEATURE_RAW;
}

static bool fits(const struct net_device *nd)
{
	return netdev && !strcmp(nd->name, netdev);
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
	if (dev->ethernet)
		return use(dev, rnic_ethernet_netdev(dev));
	if (!netdev) {
		dev_warn(&dev->pdev->dev, "no raw packets: the driver creates no network device, and GIDs need netdev=NAME\n");
		return 0;
	}
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
		dev_warn(&dev->pdev->dev, "no network device %s: no GIDs until a device of this name exists\n", netdev);
		return 0;
	}
	error = use(dev, found);
	dev_put(found); /* the core has its own reference */
	if (!error)
		dev_info(&dev->pdev->dev, "the GIDs are the addresses of %s\n", found->name);
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

/* The driver's own goes behind the RDMA device, and needs no watching. */
int rnic_follow_netdevs(struct rnic_device *dev)
{
	if (dev->ethernet)
		return 0;
	dev->netdev_notifier.notifier_call = netdev_event;
	return register_netdevice_notifier(&dev->netdev_notifier);
}

void rnic_unfollow_netdevs(struct rnic_device *dev)
{
	unregister_netdevice_notifier(&dev->netdev_notifier);
}
