// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions. A region of a program is pages of one size in the
 * translation table, or one range of bus addresses where it happens to be one.
 */
#include <linux/log2.h>
#include <rdma/ib_umem.h>
#include <rdma/iter.h>

#include "rnic.h"

#define LEAST_LOG_PAGE 12
#define MOST_LOG_PAGE 30

/* The values of the device's rights are those of enum ib_access_flags. */
u32 rnic_device_access(struct rnic_device *dev, int access)
{
	u32 known = RNICSIM_ACCESS_LOCAL_WRITE | RNICSIM_ACCESS_REMOTE_WRITE | RNICSIM_ACCESS_REMOTE_READ |
		    RNICSIM_ACCESS_REMOTE_ATOMIC | RNICSIM_ACCESS_WINDOW_BIND;

	BUILD_BUG_ON(RNICSIM_ACCESS_REMOTE_ATOMIC != IB_ACCESS_REMOTE_ATOMIC);
	BUILD_BUG_ON(RNICSIM_ACCESS_RELAXED_ORDERING != IB_ACCESS_RELAXED_ORDERING);
	if (dev->caps.features & RNICSIM_FEATURE_RELAXED_ORDERING)
		known |= RNICSIM_ACCESS_RELAXED_ORDERING;
	return access & known;
}

/* Regions and windows share the memory protection table. */
int rnic_take_mr_index(struct rnic_device *dev)
{
	int index = ida_alloc_range(&dev->mrs, RNIC_FIRST_MR, dev->caps.max_mr - 1, GFP_KERNEL);

	return index == -ENOSPC ? -ENOMEM : index;
}

struct rnic_mr *rnic_new_mr(struct rnic_device *dev)
{
	struct rnic_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int index;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	index = rnic_take_mr_index(dev);
	if (index < 0) {
		kfree(mr);
		return ERR_PTR(index);
	}
	mr->index = index;
	return mr;
}

/* Frees the parts that exist. The device does not know the region any more. */
void rnic_free_mr(struct rnic_device *dev, struct rnic_mr *mr)
{
	if (mr->pages)
		rnic_give_back_mtt(dev, mr->first_page, mr->pages);
	ib_umem_release(mr->umem);
	ida_free(&dev->mrs, mr->index);
	kfree(mr);
}

/* The rest of the entry is the caller's. */
int rnic_create_mpt(struct rnic_device *dev, u32 index, struct ib_pd *pd, struct rnicsim_create_mpt *create, u32 *key)
{
	int error = rnic_lend(dev, RNICSIM_ICM_TABLE_MPT, index, 1);

	if (error)
		return error;
	/* Another tag than the index had before: an old key names nothing. */
	*key = index << 8 | (u8)atomic_inc_return(&dev->mr_tag);
	rnic_fill_header(&create->header, RNIC_COMMAND(CREATE_MPT), index);
	create->context.key = cpu_to_be32(*key);
	create->context.pd = cpu_to_be32(to_rnic_pd(pd)->number);
	return rnic_execute(dev, create, sizeof(*create), NULL, 0);
}

static int create_region(struct rnic_device *dev, struct rnic_mr *mr, struct ib_pd *pd, int access,
			 struct rnicsim_create_mpt *create)
{
	u32 key;
	int error;

	create->context.kind = RNICSIM_MPT_KIND_REGION;
	create->context.access_flags = cpu_to_be32(rnic_device_access(dev, access));
	create->context.valid = cpu_to_be32(1);
	error = rnic_create_mpt(dev, mr->index, pd, create, &key);
	if (!error)
		mr->ib.lkey = mr->ib.rkey = key;
	return error;
}

/* All bus addresses: the DMA mask keeps them below what a region may be long. */
struct ib_mr *rnic_get_dma_mr(struct ib_pd *pd, int access)
{
	struct rnic_device *dev = to_rnic(pd->device);
	struct rnic_mr *mr = rnic_new_mr(dev);
	struct rnicsim_create_mpt create = {};
	int error;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	create.context.length = cpu_to_be64(dev->caps.max_mr_size);
	error = create_region(dev, mr, pd, access, &create);
	if (error) {
		rnic_free_mr(dev, mr);
		return ERR_PTR(error);
	}
	return &mr->ib;
}

static int write_pages(struct rnic_device *dev, struct rnic_mr *mr, unsigned long size)
{
	size_t count = ib_umem_num_dma_blocks(mr->umem, size);
	struct ib_block_iter block;
	u32 index;
	int error;

	if (count > dev->caps.max_mtt)
		return -ENOMEM;
	error = rnic_take_mtt(dev, count, &mr->first_page);
	if (error)
		return error;
	mr->pages = count;
	index = mr->first_page;
	rdma_umem_for_each_dma_block(mr->umem, &block, size)
		rnic_write_mtt(dev, index++, rdma_block_iter_dma_address(&block));
	dma_wmb(); /* the entries before the region that names them */
	return 0;
}

/*
 * The region's place on the bus. The first page may begin before `start`, by `bus_address` bytes, which are not the
 * region's: its bounds are exact, and the largest pages will do whose borders its pieces have.
 */
static int place(struct rnic_device *dev, struct rnic_mr *mr, struct rnicsim_mpt *mpt)
{
	struct sg_table *table = &mr->umem->sgt_append.sgt;
	unsigned long size;
	int error;

	if (table->nents == 1) {
		mpt->bus_address = cpu_to_be64(sg_dma_address(table->sgl) + ib_umem_offset(mr->umem));
		return 0;
	}
	size = ib_umem_find_best_pgoff(mr->umem, GENMASK(MOST_LOG_PAGE, LEAST_LOG_PAGE), U64_MAX);
	if (!size)
		return -EINVAL;
	error = write_pages(dev, mr, size);
	if (error)
		return error;
	mpt->bus_address = cpu_to_be64(ib_umem_dma_offset(mr->umem, size));
	mpt->log_page = ilog2(size);
	mpt->first_page = cpu_to_be32(mr->first_page);
	return 0;
}

struct ib_mr *rnic_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address, int access,
			       struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(pd->device);
	struct rnicsim_create_mpt create = {};
	struct rnic_mr *mr;
	int error;

	if (access & ~RNIC_KNOWN_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (length > dev->caps.max_mr_size)
		return ERR_PTR(-EINVAL);
	mr = rnic_new_mr(dev);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		error = PTR_ERR(mr->umem);
		mr->umem = NULL;
		goto failed;
	}
	create.context.start = cpu_to_be64(address);
	create.context.length = cpu_to_be64(length);
	error = place(dev, mr, &create.context);
	if (!error)
		error = create_region(dev, mr, pd, access, &create);
	if (error)
		goto failed;
	mr->access = access;
	return &mr->ib;

failed:
	rnic_free_mr(dev, mr);
	return ERR_PTR(error);
}

/* The region keeps its pages and its key. Fails while windows are bound to it. */
static int change_region(struct rnic_device *dev, struct rnic_mr *mr, struct ib_pd *pd, int access)
{
	struct rnicsim_command_header query = {};
	struct rnicsim_query_mpt present = {};
	struct rnicsim_create_mpt change = {};
	int error;

	rnic_fill_header(&query, RNIC_COMMAND(QUERY_MPT), mr->index);
	error = rnic_execute(dev, &query, sizeof(query), &present, sizeof(present));
	if (error)
		return error;
	rnic_fill_header(&change.header, RNIC_COMMAND(MODIFY_MPT), mr->index);
	change.context = present.context;
	change.context.pd = cpu_to_be32(to_rnic_pd(pd)->number);
	change.context.access_flags = cpu_to_be32(rnic_device_access(dev, access));
	error = rnic_execute(dev, &change, sizeof(change), NULL, 0);
	if (!error)
		mr->access = access;
	return error;
}

/* Another region takes the place of `old`, which the core frees. Nothing changes while windows are bound to `old`. */
static struct ib_mr *replace_region(struct rnic_mr *old, struct ib_pd *pd, u64 start, u64 length, u64 address,
				    int access)
{
	struct rnic_device *dev = to_rnic(pd->device);
	struct ib_mr *fresh = rnic_reg_user_mr(pd, start, length, address, access, NULL);
	int error;

	if (IS_ERR(fresh))
		return fresh;
	fresh->device = pd->device;
	fresh->iova = address;
	fresh->length = length;
	error = rnic_destroy(dev, RNIC_COMMAND(DESTROY_MPT), old->index);
	if (error) {
		rnic_dereg_mr(fresh, NULL);
		return ERR_PTR(error);
	}
	old->replaced = true;
	return fresh;
}

/* NULL: the same region, changed. `flags` names the values that change. */
struct ib_mr *rnic_rereg_user_mr(struct ib_mr *ib, int flags, u64 start, u64 length, u64 address, int access,
				 struct ib_pd *pd, struct ib_udata *udata)
{
	struct rnic_mr *mr = to_rnic_mr(ib);

	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_PD))
		pd = ib->pd;
	if (flags & ~IB_MR_REREG_SUPPORTED || access & ~RNIC_KNOWN_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (flags & IB_MR_REREG_TRANS)
		return replace_region(mr, pd, start, length, address, access);
	/* Pages that were pinned for reading are not to be written. */
	if (ib_access_writable(access) && !mr->umem->writable)
		return replace_region(mr, pd, mr->umem->address, mr->umem->length, ib->iova, access);
	return ERR_PTR(change_region(to_rnic(ib->device), mr, pd, access));
}

int rnic_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_mr *mr = to_rnic_mr(ib);
	int error = mr->replaced ? 0 : rnic_destroy(dev, RNIC_COMMAND(DESTROY_MPT), mr->index);

	if (error)
		return error;
	rnic_free_mr(dev, mr);
	return 0;
}
