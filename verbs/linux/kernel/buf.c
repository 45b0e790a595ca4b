// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of rings and doorbell records: one range of bus addresses each,
 * which the device cannot have of a program's own memory. The provider maps
 * it; it is freed when neither object nor mapping needs it.
 */
#include <linux/dma-mapping.h>
#include <rdma/uverbs_ioctl.h>

#include "rnic.h"

struct rnic_buf *rnic_alloc_buf(struct rnic_device *dev, struct rnic_ucontext *context, size_t bytes)
{
	struct rnic_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);

	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->dev = dev;
	buf->bytes = PAGE_ALIGN(bytes);
	buf->memory = dma_alloc_attrs(&dev->pdev->dev, buf->bytes, &buf->dma, GFP_KERNEL | __GFP_NOWARN,
				      DMA_ATTR_FORCE_CONTIGUOUS);
	if (!buf->memory) {
		kfree(buf);
		return ERR_PTR(-ENOMEM);
	}
	if (context) {
		int error = rdma_user_mmap_entry_insert(&context->ib, &buf->entry, buf->bytes);

		if (error) {
			rnic_free_buf(buf);
			return ERR_PTR(error);
		}
		buf->mapped = true;
	}
	return buf;
}

static void free_memory(struct rnic_buf *buf)
{
	dma_free_attrs(&buf->dev->pdev->dev, buf->bytes, buf->memory, buf->dma, DMA_ATTR_FORCE_CONTIGUOUS);
	kfree(buf);
}

/* The device uses it no more; a program that has mapped it may keep it for a while. */
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

/* Nobody has it mapped any more, and no object uses it. */
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
