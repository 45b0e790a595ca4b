// SPDX-License-Identifier: GPL-2.0
/* Memory windows: made here, bound by the provider's work requests. */
#include "rnic.h"

int rnic_alloc_mw(struct ib_mw *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_mw *mw = to_rnic_mw(ib);
	struct rnicsim_create_mpt create = {};
	int index, error;

	if (!(dev->caps.features & RNICSIM_FEATURE_WINDOWS))
		return -EOPNOTSUPP;
	index = rnic_take_mr_index(dev);
	if (index < 0)
		return index;
	create.context.kind = ib->type == IB_MW_TYPE_1 ? RNICSIM_MPT_KIND_WINDOW1 : RNICSIM_MPT_KIND_WINDOW2;
	error = rnic_create_mpt(dev, index, ib->pd, &create, &ib->rkey);
	if (error) {
		ida_free(&dev->mrs, index);
		return error;
	}
	mw->index = index;
	return 0;
}

int rnic_dealloc_mw(struct ib_mw *ib)
{
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_mw *mw = to_rnic_mw(ib);
	int error = rnic_destroy(dev, RNIC_COMMAND(DESTROY_MPT), mw->index);

	if (!error)
		ida_free(&dev->mrs, mw->index);
	return error;
}
