// SPDX-License-Identifier: GPL-2.0
/*
 * Which frames the port gets: a flow of the device for each of its addresses,
 * for broadcast, and for each multicast group that the kernel listens to.
 */
#include <linux/etherdevice.h>
#include <linux/slab.h>

#include "ethernet.h"

/* More addresses of a kind than that, and the port gets all frames of this kind. */
#define MOST_ADDRESSES 128

struct rule {
	struct list_head entry;
	u32 number;
	u8 kind;
	u8 address[ETH_ALEN]; /* of a normal flow */
	bool wanted;
};

static int create_flow(struct rnic_ethernet *port, const struct rule *rule)
{
	struct rnicsim_create_flow *create = kzalloc(sizeof(*create), GFP_KERNEL);
	int error;

	if (!create)
		return -ENOMEM;
	rnic_fill_header(&create->header, RNIC_COMMAND(CREATE_FLOW), rule->number);
	create->qpn = cpu_to_be32(port->qp.qpn);
	create->kind = rule->kind;
	if (rule->kind == RNICSIM_FLOW_KIND_NORMAL) {
		create->conditions_count = 1;
		create->conditions[0].header = RNICSIM_FLOW_HEADER_ETHERNET;
		/* The destination is the header's first field. */
		ether_addr_copy(create->conditions[0].value, rule->address);
		eth_broadcast_addr(create->conditions[0].mask);
	}
	error = rnic_execute(port->dev, create, sizeof(*create), NULL, 0);
	kfree(create);
	return error;
}

static int add_rule(struct rnic_ethernet *port, u8 kind, const u8 *address)
{
	struct rnic_rules *rules = &port->rules;
	struct rule *rule = kzalloc(sizeof(*rule), GFP_KERNEL);
	int number, error;

	if (!rule)
		return -ENOMEM;
	number = ida_alloc_max(&rules->numbers, port->dev->caps.max_flows - 1, GFP_KERNEL);
	if (number < 0) {
		kfree(rule);
		return number;
	}
	rule->number = number;
	rule->kind = kind;
	rule->wanted = true;
	if (address)
		ether_addr_copy(rule->address, address);
	error = create_flow(port, rule);
	if (error) {
		ida_free(&rules->numbers, number);
		kfree(rule);
		return error;
	}
	list_add_tail(&rule->entry, &rules->list);
	return 0;
}

static int want(struct rnic_ethernet *port, u8 kind, const u8 *address)
{
	struct rule *rule;

	list_for_each_entry(rule, &port->rules.list, entry) {
		if (rule->kind == kind && (!address || ether_addr_equal(rule->address, address))) {
			rule->wanted = true;
			return 0;
		}
	}
	return add_rule(port, kind, address);
}

static void want_nothing(struct rnic_ethernet *port)
{
	struct rule *rule;

	list_for_each_entry(rule, &port->rules.list, entry)
		rule->wanted = false;
}

static void drop_unwanted(struct rnic_ethernet *port)
{
	struct rnic_rules *rules = &port->rules;
	struct rule *rule, *next;

	list_for_each_entry_safe(rule, next, &rules->list, entry) {
		if (rule->wanted)
			continue;
		if (rnic_destroy(port->dev, RNIC_COMMAND(DESTROY_FLOW), rule->number))
			netdev_err(port->nd, "the device did not destroy flow %u\n", rule->number);
		ida_free(&rules->numbers, rule->number);
		list_del(&rule->entry);
		kfree(rule);
	}
}

/* A copy of a list of the network device's, whose lock spins. The number of addresses. */
static int copy_addresses(struct net_device *nd, struct netdev_hw_addr_list *list, u8 (*to)[ETH_ALEN])
{
	struct netdev_hw_addr *address;
	int count = 0;

	netif_addr_lock_bh(nd);
	netdev_hw_addr_list_for_each(address, list) {
		if (count < MOST_ADDRESSES)
			ether_addr_copy(to[count], address->addr);
		count++;
	}
	netif_addr_unlock_bh(nd);
	return count;
}

static int want_list(struct rnic_ethernet *port, struct netdev_hw_addr_list *list, bool all, u8 kind_of_all)
{
	u8 (*addresses)[ETH_ALEN] = kcalloc(MOST_ADDRESSES, ETH_ALEN, GFP_KERNEL);
	int i, count, error = 0;

	if (!addresses)
		return -ENOMEM;
	count = copy_addresses(port->nd, list, addresses);
	if (all || count > MOST_ADDRESSES)
		error = want(port, kind_of_all, NULL);
	else
		for (i = 0; !error && i < count; i++)
			error = want(port, RNICSIM_FLOW_KIND_NORMAL, addresses[i]);
	kfree(addresses);
	return error;
}

/* Under the rules' lock. What is wanted comes before what is not goes: no frame falls between. */
static int update(struct rnic_ethernet *port)
{
	struct net_device *nd = port->nd;
	u8 broadcast[ETH_ALEN], own[ETH_ALEN];
	int error;

	want_nothing(port);
	eth_broadcast_addr(broadcast);
	netif_addr_lock_bh(nd);
	ether_addr_copy(own, nd->dev_addr);
	netif_addr_unlock_bh(nd);
	error = want(port, RNICSIM_FLOW_KIND_NORMAL, own);
	if (!error)
		error = want(port, RNICSIM_FLOW_KIND_NORMAL, broadcast);
	if (!error)
		error = want_list(port, &nd->uc, nd->flags & IFF_PROMISC, RNICSIM_FLOW_KIND_ALL_DEFAULT);
	if (!error)
		error = want_list(port, &nd->mc, nd->flags & IFF_ALLMULTI, RNICSIM_FLOW_KIND_MULTICAST_DEFAULT);
	/* After an error the port keeps the flows that it had. */
	if (error)
		netdev_err(nd, "failed to create flows for the addresses: error %d\n", error);
	else
		drop_unwanted(port);
	return error;
}

static void update_later(struct work_struct *work)
{
	struct rnic_ethernet *port = container_of(work, struct rnic_ethernet, rules.work);

	mutex_lock(&port->rules.lock);
	if (port->rules.active && !rnic_dead(port->dev))
		update(port);
	mutex_unlock(&port->rules.lock);
}

void rnic_init_rules(struct rnic_rules *rules)
{
	mutex_init(&rules->lock);
	INIT_LIST_HEAD(&rules->list);
	ida_init(&rules->numbers);
	INIT_WORK(&rules->work, update_later);
}

int rnic_start_rules(struct rnic_ethernet *port)
{
	int error;

	mutex_lock(&port->rules.lock);
	error = update(port);
	port->rules.active = !error;
	if (error) {
		want_nothing(port);
		drop_unwanted(port);
	}
	mutex_unlock(&port->rules.lock);
	return error;
}

void rnic_stop_rules(struct rnic_ethernet *port)
{
	mutex_lock(&port->rules.lock);
	port->rules.active = false;
	want_nothing(port);
	drop_unwanted(port);
	mutex_unlock(&port->rules.lock);
}
