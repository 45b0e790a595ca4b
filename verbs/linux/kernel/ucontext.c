// SPDX-License-Identifier: GPL-2.0
/* A program's context: its UAR page, and what it may map. */
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

int rnic_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	struct rnic_ucontext *context = to_rnic_ucontext(ib);
	struct rnic_device *dev = to_rnic(ib->device);
	struct rnic_alloc_ucontext_resp answer = {};
	int error, page;

	page = ida_alloc_range(&dev->uars, 1, dev->uar_pages - 1, GFP_KERNEL);
	if (page < 0)
		return page == -ENOSPC ? -ENOMEM : page;
	context->uar_page = page;
	error = rdma_user_mmap_entry_insert(ib, &context->entry, RNICSIM_UAR_PAGE_SIZE);
	if (error)
		goto free_page;
	answer.uar.offset = rdma_user_mmap_get_offset(&context->entry);
	answer.uar.bytes = RNICSIM_UAR_PAGE_SIZE;
	answer.features = dev->caps.features;
	answer.uar_page = page;
	answer.core_clock_khz = dev->caps.core_clock_khz;
	error = rnic_answer(udata, &answer, sizeof(answer));
	if (error)
		goto remove_entry;
	return 0;

remove_entry:
	rdma_user_mmap_entry_remove(&context->entry);
free_page:
	ida_free(&dev->uars, page);
	return error;
}

/* The core has taken all mappings away: the page may be another program's. */
void rnic_dealloc_ucontext(struct ib_ucontext *ib)
{
	struct rnic_ucontext *context = to_rnic_ucontext(ib);

	rdma_user_mmap_entry_remove(&context->entry);
	ida_free(&to_rnic(ib->device)->uars, context->uar_page);
}

static int map_uar(struct rnic_ucontext *context, struct vm_area_struct *vma)
{
	struct rnic_device *dev = to_rnic(context->ib.device);
	u64 at = dev->bar_start + RNICSIM_UAR_BASE + (u64)context->uar_page * RNICSIM_UAR_PAGE_SIZE;

	/* A doorbell is one store of 8 bytes, which must not be merged or delayed. */
	return rdma_user_mmap_io(&context->ib, vma, PHYS_PFN(at), RNICSIM_UAR_PAGE_SIZE,
				 pgprot_noncached(vma->vm_page_prot), &context->entry);
}

static int map_buf(struct vm_area_struct *vma, struct rnic_buf *buf)
{
	unsigned long at;
	int error = 0;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vma->vm_flags |= VM_DONTEXPAND;
	for (at = 0; at < buf->bytes && !error; at += PAGE_SIZE)
		error = vm_insert_page(vma, vma->vm_start + at, virt_to_page(buf->memory + at));
	return error;
}

int rnic_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma)
{
	struct rnic_ucontext *context = to_rnic_ucontext(ib);
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(ib, vma);
	int error;

	if (!entry)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		error = -EPERM;
	else if (entry == &context->entry)
		error = map_uar(context, vma);
	else
		error = map_buf(vma, container_of(entry, struct rnic_buf, entry));
	rdma_user_mmap_entry_put(entry);
	return error;
}

/* The core takes the UAR page away: nothing else of a program reaches the device. */
void rnic_disassociate_ucontext(struct ib_ucontext *ib)
{
}
