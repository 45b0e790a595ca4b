// SPDX-License-Identifier: GPL-2.0
/* Protection domains: numbers, which the device compares. */
#include "rnic.h"

int rnic_alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	struct rnic_device *dev = to_rnic(ib->device);
	int number = ida_alloc_range(&dev->pds, 1, dev->caps.max_pd, GFP_KERNEL);

	if (number < 0)
		return number == -ENOSPC ? -ENOMEM : number;
	to_rnic_pd(ib)->number = number;
	return 0;
}

int rnic_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	ida_free(&to_rnic(ib->device)->pds, to_rnic_pd(ib)->number);
	return 0;
}
