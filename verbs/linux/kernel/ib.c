// SPDX-License-Identifier: GPL-2.0
/* The ib_device: what it is, its port, its addresses. */
#include <linux/if_vlan.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "rnic.h"

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib);
	const struct rnic_capabilities *caps = &dev->caps;

	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = caps->firmware_version;
	attr->sys_image_guid = ib->node_guid;
	attr->vendor_id = dev->pdev->vendor;
	attr->vendor_part_id = caps->vendor_part_id;
	attr->hw_ver = dev->pdev->revision;
	attr->max_mr_size = caps->max_mr_size;
	attr->page_size_cap = GENMASK(30, 12);
	attr->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR | IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN;
	if (caps->features & RNICSIM_FEATURE_MULTICAST)
		attr->kernel_cap_flags = IBK_BLOCK_MULTICAST_LOOPBACK;
	if (caps->features & RNICSIM_FEATURE_FAST_REGISTER && caps->features & RNICSIM_FEATURE_INVALIDATE) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = rnic_most_fast_pages(dev);
	}
	if (caps->features & RNICSIM_FEATURE_WINDOWS) {
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B;
		attr->max_mw = caps->max_mr - RNIC_FIRST_MR;
	}
	attr->max_qp = caps->max_qp - RNIC_FIRST_QPN;
	attr->max_qp_wr = dev->max_qp_wr;
	attr->max_send_sge = caps->max_send_sge;
	attr->max_recv_sge = caps->max_recv_sge;
	attr->max_sge_rd = caps->max_send_sge;
	attr->max_cq = caps->max_cq - 1;
	attr->max_cqe = caps->max_cqe;
	attr->max_mr = caps->max_mr - RNIC_FIRST_MR;
	attr->max_pd = caps->max_pd;
	attr->max_qp_rd_atom = caps->max_rd_atomic;
	attr->max_qp_init_rd_atom = caps->max_rd_atomic;
	attr->max_res_rd_atom = caps->max_rd_atomic * attr->max_qp;
	attr->atomic_cap = caps->atomic;
	attr->max_mcast_grp = caps->max_multicast_groups;
	attr->max_mcast_qp_attach = caps->max_group_qps;
	attr->max_total_mcast_qp_attach = caps->max_attached_qps;
	attr->max_ah = min_t(u32, caps->max_ah, INT_MAX);
	attr->max_srq = caps->max_srq;
	attr->max_srq_wr = caps->max_srq_wr;
	attr->max_srq_sge = caps->max_srq_sge;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = caps->local_ca_ack_delay;
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = caps->core_clock_khz;
	attr->cq_caps.max_cq_moderation_count = caps->max_cq_moderation_count;
	attr->cq_caps.max_cq_moderation_period = caps->max_cq_moderation_period;
	return 0;
}

int rnic_ask_port(struct rnic_device *dev, struct rnicsim_port_attributes *answer)
{
	struct rnicsim_command_header header = {};

	rnic_fill_header(&header, RNIC_COMMAND(QUERY_PORT), RNIC_PORT);
	return rnic_execute(dev, &header, sizeof(header), answer, sizeof(*answer));
}

/* Peers that resolve addresses by the network device take packets as long as its MTU has room for. */
static u8 active_mtu(struct rnic_device *dev, u8 of_device)
{
	struct net_device *nd = rnic_ethernet_netdev(dev);

	return nd ? clamp_t(u8, iboe_get_mtu(nd->mtu), IB_MTU_256, of_device) : of_device;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct rnicsim_port_attributes answer = {};
	int error = rnic_ask_port(to_rnic(ib), &answer);

	if (error)
		return error;
	attr->state = answer.state;
	attr->phys_state = answer.physical_state;
	attr->max_mtu = answer.max_mtu;
	attr->active_mtu = active_mtu(to_rnic(ib), answer.active_mtu);
	attr->active_speed = answer.active_speed;
	attr->active_width = answer.active_width;
	attr->gid_tbl_len = be16_to_cpu(answer.gid_table_length);
	attr->pkey_tbl_len = be16_to_cpu(answer.pkey_table_length);
	attr->max_msg_sz = be32_to_cpu(answer.max_message);
	attr->bad_pkey_cntr = be16_to_cpu(answer.pkey_violations);
	attr->qkey_viol_cntr = be16_to_cpu(answer.qkey_violations);
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_vl_num = 1;
	attr->ip_gids = true;
	return 0;
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	struct rnicsim_port_attributes answer = {};
	int error = rnic_ask_port(to_rnic(ib), &answer);

	if (error)
		return error;
	immutable->gid_tbl_len = be16_to_cpu(answer.gid_table_length);
	immutable->pkey_tbl_len = be16_to_cpu(answer.pkey_table_length);
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = RNIC_PKEY;
	return 0;
}

void rnic_format_firmware(const struct rnic_device *dev, char *to, size_t bytes)
{
	u64 version = dev->caps.firmware_version;

	snprintf(to, bytes, "%u.%u.%u", (u32)(version >> 32), (u32)(version >> 16 & 0xffff), (u32)(version & 0xffff));
}

static void get_dev_fw_str(struct ib_device *ib, char *to)
{
	rnic_format_firmware(to_rnic(ib), to, IB_FW_VERSION_NAME_MAX);
}

static int set_gid(const struct ib_gid_attr *attr, bool valid)
{
	struct rnicsim_set_gid set = {};

	rnic_fill_header(&set.header, RNIC_COMMAND(SET_GID), attr->port_num);
	set.index = cpu_to_be16(attr->index);
	set.valid = valid;
	if (valid) {
		u16 vlan;
		int error = rdma_read_gid_l2_fields(attr, &vlan, set.mac);

		if (error)
			return error;
		if (vlan < VLAN_N_VID) {
			/* 0: no tag. A device of minor version 0 has no VLANs. */
			if (!vlan || to_rnic(attr->device)->abi_minor < RNIC_MINOR_WITH_VLANS)
				return -EOPNOTSUPP;
			set.vlan = cpu_to_be16(vlan);
		}
		set.roce_version = 2;
		memcpy(set.gid, attr->gid.raw, sizeof(set.gid));
	}
	return rnic_execute(to_rnic(attr->device), &set, sizeof(set), NULL, 0);
}

static int add_gid(const struct ib_gid_attr *attr, void **context)
{
	return set_gid(attr, true);
}

static int del_gid(const struct ib_gid_attr *attr, void **context)
{
	return set_gid(attr, false);
}

void rnic_port_event(struct rnic_device *dev, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ib, .event = type, .element.port_num = RNIC_PORT };

	rnic_ethernet_set_carrier(dev, type == IB_EVENT_PORT_ACTIVE);
	if (test_bit(RNIC_REGISTERED, &dev->state))
		ib_dispatch_event(&event);
}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = RNIC_ABI_VERSION,

	.add_gid = add_gid,
	.alloc_hw_port_stats = rnic_alloc_port_stats,
	.alloc_mr = rnic_alloc_mr,
	.alloc_mw = rnic_alloc_mw,
	.alloc_pd = rnic_alloc_pd,
	.alloc_ucontext = rnic_alloc_ucontext,
	.attach_mcast = rnic_attach_mcast,
	.create_ah = rnic_create_ah,
	.create_user_ah = rnic_create_ah,
	.create_cq = rnic_create_cq,
	.create_qp = rnic_create_qp,
	.create_srq = rnic_create_srq,
	.dealloc_mw = rnic_dealloc_mw,
	.dealloc_pd = rnic_dealloc_pd,
	.dealloc_ucontext = rnic_dealloc_ucontext,
	.del_gid = del_gid,
	.dereg_mr = rnic_dereg_mr,
	.destroy_ah = rnic_destroy_ah,
	.destroy_cq = rnic_destroy_cq,
	.destroy_qp = rnic_destroy_qp,
	.destroy_srq = rnic_destroy_srq,
	.detach_mcast = rnic_detach_mcast,
	.disassociate_ucontext = rnic_disassociate_ucontext,
	.get_dev_fw_str = get_dev_fw_str,
	.get_dma_mr = rnic_get_dma_mr,
	.get_hw_stats = rnic_get_port_stats,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.map_mr_sg = rnic_map_mr_sg,
	.mmap = rnic_mmap,
	.mmap_free = rnic_mmap_free,
	.modify_cq = rnic_modify_cq,
	.modify_qp = rnic_modify_qp,
	.modify_srq = rnic_modify_srq,
	.poll_cq = rnic_poll_cq,
	.post_recv = rnic_post_recv,
	.post_send = rnic_post_send,
	.post_srq_recv = rnic_post_srq_recv,
	.query_ah = rnic_query_ah,
	.query_device = query_device,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = rnic_query_qp,
	.query_srq = rnic_query_srq,
	.reg_user_mr = rnic_reg_user_mr,
	.rereg_user_mr = rnic_rereg_user_mr,
	.req_notify_cq = rnic_req_notify_cq,
	.resize_cq = rnic_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, rnic_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, rnic_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_mw, rnic_mw, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, rnic_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, rnic_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, rnic_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, rnic_ucontext, ib),
};

int rnic_register(struct rnic_device *dev)
{
	struct rnicsim_port_attributes port = {};
	int error = rnic_ask_port(dev, &port);

	if (error)
		return error;
	memcpy(dev->port_mac, port.mac, sizeof(dev->port_mac));
	dev->ib.node_type = RDMA_NODE_IB_CA;
	dev->ib.phys_port_cnt = 1;
	dev->ib.dev.parent = &dev->pdev->dev;
	ib_set_device_ops(&dev->ib, &ops);
	error = rnic_find_netdev(dev);
	if (error)
		return error;
	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, dev->netdev ? dev->netdev->dev_addr : dev->port_mac);
	error = ib_register_device(&dev->ib, "rnic%d", &dev->pdev->dev);
	if (error)
		return error;
	set_bit(RNIC_REGISTERED, &dev->state);
	return 0;
}
