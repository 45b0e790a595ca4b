// SPDX-License-Identifier: GPL-2.0
/* The operations of ethtool on the port. */
#include <linux/ethtool.h>

#include "ethernet.h"

static void get_drvinfo(struct net_device *nd, struct ethtool_drvinfo *info)
{
	struct rnic_ethernet *port = netdev_priv(nd);

	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(port->dev->pdev), sizeof(info->bus_info));
	rnic_format_firmware(port->dev, info->fw_version, sizeof(info->fw_version));
}

static int lanes_of(u8 active_width)
{
	switch (active_width) {
	case IB_WIDTH_1X:
		return 1;
	case IB_WIDTH_2X:
		return 2;
	case IB_WIDTH_4X:
		return 4;
	case IB_WIDTH_8X:
		return 8;
	case IB_WIDTH_12X:
		return 12;
	default:
		return 0;
	}
}

static u32 megabits_of_a_lane(u8 active_speed)
{
	switch (active_speed) {
	case IB_SPEED_SDR:
		return 2500;
	case IB_SPEED_DDR:
		return 5000;
	case IB_SPEED_QDR:
	case IB_SPEED_FDR10:
		return 10000;
	case IB_SPEED_FDR:
		return 14000;
	case IB_SPEED_EDR:
		return 25000;
	case IB_SPEED_HDR:
		return 50000;
	case IB_SPEED_NDR:
		return 100000;
	default:
		return 0;
	}
}

static int get_link_ksettings(struct net_device *nd, struct ethtool_link_ksettings *settings)
{
	struct rnic_ethernet *port = netdev_priv(nd);
	struct rnicsim_port_attributes attributes = {};
	u32 speed;
	int error = rnic_ask_port(port->dev, &attributes);

	if (error)
		return error;
	ethtool_link_ksettings_zero_link_mode(settings, supported);
	ethtool_link_ksettings_zero_link_mode(settings, advertising);
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	speed = lanes_of(attributes.active_width) * megabits_of_a_lane(attributes.active_speed);
	if (!netif_carrier_ok(nd) || !speed) {
		settings->base.speed = SPEED_UNKNOWN;
		settings->base.duplex = DUPLEX_UNKNOWN;
		return 0;
	}
	settings->base.speed = speed;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static int get_sset_count(struct net_device *nd, int set)
{
	return set == ETH_SS_STATS ? rnic_count_port_counters() : -EOPNOTSUPP;
}

static void get_strings(struct net_device *nd, u32 set, u8 *to)
{
	int i;

	for (i = 0; set == ETH_SS_STATS && i < rnic_count_port_counters(); i++)
		ethtool_sprintf(&to, "%s", rnic_port_counter_name(i));
}

/* The RDMA side's: those of the Ethernet frames are the network device's. */
static void get_ethtool_stats(struct net_device *nd, struct ethtool_stats *stats, u64 *to)
{
	struct rnic_ethernet *port = netdev_priv(nd);

	if (rnic_read_port_counters(port->dev, to))
		memset(to, 0, rnic_count_port_counters() * sizeof(*to));
}

static void get_ringparam(struct net_device *nd, struct ethtool_ringparam *rings,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *extack)
{
	rings->rx_max_pending = RNIC_RECEIVE_ENTRIES;
	rings->rx_pending = RNIC_RECEIVE_ENTRIES;
	rings->tx_max_pending = RNIC_SEND_ENTRIES;
	rings->tx_pending = RNIC_SEND_ENTRIES;
}

const struct ethtool_ops rnic_ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_ethtool_stats = get_ethtool_stats,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_ringparam = get_ringparam,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
};
