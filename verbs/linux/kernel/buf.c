// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings and doorbell records: one range of bus addresses each,
 * which the device cannot have of a program's own memory. The provider maps
 * its pages, which live as long as a mapping does: when the device is taken
 * away under a program, the program's rings stay as they were.
 */
#include <linux/dma-mapping.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

static int map_for_device(struct rnic_buf *buf)
{
	struct device *dma = &buf->dev->pdev->dev;

	buf->dma = dma_map_single(dma, buf->memory, buf->bytes, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(dma, buf->dma))
		return -ENOMEM;
	if (!dma_need_sync(dma, buf->dma))
		return 0;
	/* Bounced, it would be a copy: neither side would see what the other writes. */
	dev_err_ratelimited(dma, "rings cannot be in bounce buffers (swiotlb)\n");
	dma_unmap_single(dma, buf->dma, buf->bytes, DMA_BIDIRECTIONAL);
	return -EOPNOTSUPP;
}

static void free_memory(struct rnic_buf *buf)
{
	dma_unmap_single(&buf->dev->pdev->dev, buf->dma, buf->bytes, DMA_BIDIRECTIONAL);
	free_pages_exact(buf->memory, buf->bytes);
	kfree(buf);
}

struct rnic_buf *rnic_alloc_buf(struct rnic_device *dev, struct rnic_ucontext *context, size_t bytes)
{
	struct rnic_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	int error = -ENOMEM;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->dev = dev;
	buf->bytes = PAGE_ALIGN(bytes);
	buf->memory = alloc_pages_exact(buf->bytes, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!buf->memory)
		goto free_buf;
	error = map_for_device(buf);
	if (error)
		goto free_pages;
	if (!context)
		return buf;
	error = rdma_user_mmap_entry_insert(&context->ib, &buf->entry, buf->bytes);
	if (error) {
		free_memory(buf);
		return ERR_PTR(error);
	}
	buf->mapped = true;
	return buf;

free_pages:
	free_pages_exact(buf->memory, buf->bytes);
free_buf:
	kfree(buf);
	return ERR_PTR(error);
}

/* The device uses it no more; a program that has mapped it may keep its pages for a while. */
void rnic_free_buf(struct rnic_buf *buf)
{
	if (IS_ERR_OR_NULL(buf))
		return;
	if (buf->mapped)
		rdma_user_mmap_entry_remove(&buf->entry);
	else
		free_memory(buf);
}

struct rnic_mapping rnic_mapping_of(const struct rnic_buf *buf)
{
	struct rnic_mapping mapping = {};

	if (buf && buf->mapped) {
		mapping.offset = rdma_user_mmap_get_offset(&buf->entry);
		mapping.bytes = buf->bytes;
	}
	return mapping;
}

/* Called at the entry's last reference: no mmap finds the entry any more. */
void rnic_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct rnic_ucontext *context = to_rnic_ucontext(entry->ucontext);

	if (entry == &context->entry)
		return; /* a UAR page has no memory; rnic_dealloc_ucontext gives back its number */
	free_memory(container_of(entry, struct rnic_buf, entry));
}

/* The provider knows all of the answer: another one would misread it. */
int rnic_answer(struct ib_udata *udata, void *answer, size_t bytes)
{
	if (udata->outlen < bytes)
		return -EINVAL;
	return ib_copy_to_udata(udata, answer, bytes);
}
