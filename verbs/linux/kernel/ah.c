// SPDX-License-Identifier: GPL-2.0
/* Paths, of queue pairs and of address handles: no object of the device. */
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

void rnic_encode_path(const struct rdma_ah_attr *from, struct rnicsim_address_vector *to)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(from);

	memset(to, 0, sizeof(*to));
	memcpy(to->remote_gid, grh->dgid.raw, sizeof(to->remote_gid));
	memcpy(to->remote_mac, from->roce.dmac, sizeof(to->remote_mac));
	to->sgid_index = cpu_to_be16(grh->sgid_index);
	to->flow_label = cpu_to_be32(grh->flow_label & 0xfffff);
	to->traffic_class = grh->traffic_class;
	to->hop_limit = grh->hop_limit;
	to->service_level = rdma_ah_get_sl(from);
	to->static_rate = rdma_ah_get_static_rate(from);
}

void rnic_decode_path(struct rnic_device *dev, const struct rnicsim_address_vector *from, struct rdma_ah_attr *to)
{
	union ib_gid gid;

	memset(to, 0, sizeof(*to));
	memcpy(gid.raw, from->remote_gid, sizeof(gid.raw));
	to->type = rdma_ah_find_type(&dev->ib, RNIC_PORT);
	rdma_ah_set_port_num(to, RNIC_PORT);
	rdma_ah_set_sl(to, from->service_level);
	rdma_ah_set_static_rate(to, from->static_rate);
	rdma_ah_set_grh(to, &gid, be32_to_cpu(from->flow_label), be16_to_cpu(from->sgid_index), from->hop_limit,
			from->traffic_class);
	memcpy(to->roce.dmac, from->remote_mac, sizeof(to->roce.dmac));
}

int rnic_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	struct rnic_ah *ah = to_rnic_ah(ib);
	struct rnic_create_ah_resp answer = {};

	if (attr->ah_attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return -EINVAL;
	if (!(rdma_ah_get_ah_flags(attr->ah_attr) & IB_AH_GRH))
		return -EINVAL;
	rnic_encode_path(attr->ah_attr, &ah->path);
	if (!udata)
		return 0;
	memcpy(answer.dmac, ah->path.remote_mac, sizeof(answer.dmac));
	return rnic_answer(udata, &answer, sizeof(answer));
}

int rnic_query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr)
{
	rnic_decode_path(to_rnic(ib->device), &to_rnic_ah(ib)->path, attr);
	return 0;
}

int rnic_destroy_ah(struct ib_ah *ib, u32 flags)
{
	return 0;
}
