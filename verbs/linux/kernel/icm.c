// SPDX-License-Identifier: GPL-2.0
/*
 * The context memory of the device: it is lent in chunks as objects need it,
 * and comes back when the device is torn down. Of all tables the driver
 * writes the translation table alone.
 */
#include <linux/dma-mapping.h>
#include <linux/genalloc.h>
#include <linux/sizes.h>

#include "rnic.h"

#define CHUNK_BYTES SZ_64K
/* A gen_pool has no address 0. A unit is what one line of memory holds. */
#define MTT_BASE 0x100000000ull
#define MTT_UNIT_ORDER 3

static u32 entries_of(const struct rnic_capabilities *caps, enum rnicsim_icm_table table)
{
	switch (table) {
	case RNICSIM_ICM_TABLE_QPC:
		return caps->max_qp;
	case RNICSIM_ICM_TABLE_CQC:
		return caps->max_cq;
	case RNICSIM_ICM_TABLE_EQC:
		return caps->max_eq;
	case RNICSIM_ICM_TABLE_MPT:
		return caps->max_mr;
	case RNICSIM_ICM_TABLE_MTT:
		return caps->max_mtt;
	case RNICSIM_ICM_TABLE_SRQC:
		return caps->max_srq;
	}
	return 0;
}

static int init_table(struct rnic_device *dev, enum rnicsim_icm_table which)
{
	static const u32 entry_bytes[RNIC_ICM_TABLES] = RNICSIM_ICM_ENTRY_BYTES;
	struct rnic_icm_table *table = &dev->icm.tables[which];

	table->entries = entries_of(&dev->caps, which);
	table->entry_bytes = entry_bytes[which];
	table->chunk_entries = CHUNK_BYTES / table->entry_bytes;
	table->chunks = kvcalloc(DIV_ROUND_UP(table->entries, table->chunk_entries), sizeof(*table->chunks),
				 GFP_KERNEL);
	return table->chunks || !table->entries ? 0 : -ENOMEM;
}

int rnic_init_icm(struct rnic_device *dev)
{
	struct rnic_icm *icm = &dev->icm;
	int table, error;

	mutex_init(&icm->lock);
	for (table = 0; table < RNIC_ICM_TABLES; table++) {
		error = init_table(dev, table);
		if (error)
			goto failed;
	}
	error = -ENOMEM;
	icm->mtt = gen_pool_create(MTT_UNIT_ORDER, -1);
	if (!icm->mtt)
		goto failed;
	error = gen_pool_add(icm->mtt, MTT_BASE, round_down(dev->caps.max_mtt, 1u << MTT_UNIT_ORDER), -1);
	if (error)
		goto failed;
	return 0;

failed:
	rnic_free_icm(dev);
	return error;
}

static size_t chunk_bytes(const struct rnic_icm_table *table, u32 chunk)
{
	u32 first = chunk * table->chunk_entries;

	return (size_t)min(table->chunk_entries, table->entries - first) * table->entry_bytes;
}

/* The device is torn down or has no DMA. */
void rnic_free_icm(struct rnic_device *dev)
{
	struct rnic_icm *icm = &dev->icm;
	int which;
	u32 chunk;

	for (which = 0; which < RNIC_ICM_TABLES; which++) {
		struct rnic_icm_table *table = &icm->tables[which];

		for (chunk = 0; table->chunks && chunk * table->chunk_entries < table->entries; chunk++)
			if (table->chunks[chunk].memory)
				dma_free_coherent(&dev->pdev->dev, chunk_bytes(table, chunk),
						  table->chunks[chunk].memory, table->chunks[chunk].dma);
		kvfree(table->chunks);
		table->chunks = NULL;
	}
	if (icm->mtt)
		gen_pool_destroy(icm->mtt);
	icm->mtt = NULL;
}

static int lend_chunk(struct rnic_device *dev, enum rnicsim_icm_table which, u32 chunk)
{
	struct rnic_icm_table *table = &dev->icm.tables[which];
	struct rnic_icm_chunk *c = &table->chunks[chunk];
	size_t bytes = chunk_bytes(table, chunk);
	struct rnicsim_map_icm map = {};
	dma_addr_t dma;
	void *memory;
	int error;

	if (c->memory)
		return 0;
	memory = dma_alloc_coherent(&dev->pdev->dev, bytes, &dma, GFP_KERNEL);
	if (!memory)
		return -ENOMEM;
	rnic_fill_header(&map.header, RNIC_COMMAND(MAP_ICM), 0);
	map.table = cpu_to_be32(which);
	map.first_index = cpu_to_be32(chunk * table->chunk_entries);
	map.count = cpu_to_be32(bytes / table->entry_bytes);
	map.memory = cpu_to_be64(dma);
	error = rnic_execute(dev, &map, sizeof(map), NULL, 0);
	if (error) {
		dma_free_coherent(&dev->pdev->dev, bytes, memory, dma);
		return error;
	}
	c->dma = dma;
	c->memory = memory;
	return 0;
}

/* Lends what is not lent yet of a range of indices, which the table has. */
int rnic_lend(struct rnic_device *dev, enum rnicsim_icm_table which, u32 first, u32 count)
{
	u32 size = dev->icm.tables[which].chunk_entries;
	int error = 0;
	u32 chunk;

	mutex_lock(&dev->icm.lock);
	for (chunk = first / size; !error && chunk <= (first + count - 1) / size; chunk++)
		error = lend_chunk(dev, which, chunk);
	mutex_unlock(&dev->icm.lock);
	return error;
}

int rnic_take_mtt(struct rnic_device *dev, u32 count, u32 *first)
{
	unsigned long at = gen_pool_alloc(dev->icm.mtt, count);
	int error;

	if (!at)
		return -ENOMEM;
	*first = at - MTT_BASE;
	error = rnic_lend(dev, RNICSIM_ICM_TABLE_MTT, *first, count);
	if (error)
		rnic_give_back_mtt(dev, *first, count);
	return error;
}

void rnic_give_back_mtt(struct rnic_device *dev, u32 first, u32 count)
{
	gen_pool_free(dev->icm.mtt, MTT_BASE + first, count);
}

/* Writes an allocated entry, before a command names its region to the device. */
void rnic_write_mtt(struct rnic_device *dev, u32 index, dma_addr_t page)
{
	struct rnic_icm_table *table = &dev->icm.tables[RNICSIM_ICM_TABLE_MTT];
	struct rnicsim_mtt *entries = table->chunks[index / table->chunk_entries].memory;

	entries[index % table->chunk_entries].page = cpu_to_be64(page);
}
