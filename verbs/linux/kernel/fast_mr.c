// SPDX-License-Identifier: GPL-2.0
/* Fast registration: memory regions that a work request gives pages, rights and a key. */
#include <linux/log2.h>

#include "rnic.h"

/*
 * The region is made free: it owns its entries of the translation table, and has no pages yet. No access by its key is
 * allowed before IB_WR_REG_MR.
 */
static int create_free_region(struct rnic_device *dev, struct rnic_mr *mr, struct ib_pd *pd)
{
	struct rnicsim_create_mpt create = {};
	u32 key;
	int error;

	create.context.kind = RNICSIM_MPT_KIND_FAST_REGISTER;
	create.context.length = cpu_to_be64((u64)mr->pages << PAGE_SHIFT);
	create.context.log_page = PAGE_SHIFT;
	create.context.first_page = cpu_to_be32(mr->first_page);
	error = rnic_create_mpt(dev, mr->index, pd, &create, &key);
	if (!error)
		mr->ib.lkey = mr->ib.rkey = key;
	return error;
}

u32 rnic_most_fast_pages(const struct rnic_device *dev)
{
	if (!(dev->caps.features & RNICSIM_FEATURE_FAST_REGISTER))
		return 0;
	return min_t(u32, dev->caps.max_mtt, RNIC_MOST_FAST_PAGES);
}

struct ib_mr *rnic_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct rnic_device *dev = to_rnic(pd->device);
	struct rnic_mr *mr;
	int error;

	if (type != IB_MR_TYPE_MEM_REG || !rnic_most_fast_pages(dev))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > rnic_most_fast_pages(dev))
		return ERR_PTR(-EINVAL);
	mr = rnic_new_mr(dev);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	error = rnic_take_mtt(dev, max_num_sg, &mr->first_page);
	if (!error) {
		mr->pages = max_num_sg;
		error = create_free_region(dev, mr, pd);
	}
	if (error) {
		rnic_free_mr(dev, mr);
		return ERR_PTR(error);
	}
	return &mr->ib;
}

static int set_page(struct ib_mr *ib, u64 address)
{
	struct rnic_mr *mr = to_rnic_mr(ib);

	if (mr->used_pages == mr->pages)
		return -ENOMEM;
	rnic_write_mtt(to_rnic(ib->device), mr->first_page + mr->used_pages++, address);
	return 0;
}

/* The region is free, so that its entries are the driver's: the caller has seen its invalidation complete. */
int rnic_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int count, unsigned int *offset)
{
	to_rnic_mr(ib)->used_pages = 0;
	return ib_sg_to_pages(ib, sg, count, offset, set_page);
}

/* Fills the segment. The start may differ from the address of the pages; the offset in the first page is the same. */
int rnic_encode_registration(struct rnic_device *dev, const struct ib_reg_wr *wr, struct rnicsim_register_segment *to)
{
	const struct ib_mr *mr = wr->mr;
	u32 size = mr->page_size;

	if (!is_power_of_2(size) || size < PAGE_SIZE)
		return -EINVAL;
	if (wr->access & (~RNIC_KNOWN_ACCESS | IB_ACCESS_MW_BIND)) /* no window is bound to such a region */
		return -EOPNOTSUPP;
	to->key = cpu_to_be32(wr->key);
	to->access_flags = cpu_to_be32(rnic_device_access(dev, wr->access));
	to->start = cpu_to_be64(mr->iova);
	to->length = cpu_to_be64(mr->length);
	to->first_byte = cpu_to_be32(mr->iova & (size - 1));
	to->log_page = ilog2(size);
	return 0;
}
