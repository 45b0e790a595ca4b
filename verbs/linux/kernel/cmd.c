// SPDX-License-Identifier: GPL-2.0
/*
 * The command queue. Up to RNIC_COMMANDS commands are in flight; whoever
 * issued one sleeps until interrupt 0 finds its entry given back.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "rnic.h"

static unsigned int command_timeout = 60;
module_param(command_timeout, uint, 0444);
MODULE_PARM_DESC(command_timeout, "seconds to wait for the answer to a command; then the driver stops the device (60)");

#define RING_BYTES (RNIC_COMMANDS * sizeof(struct rnicsim_command_entry))
#define MAILBOXES_BYTES (2 * RNIC_COMMANDS * RNICSIM_MAILBOX_BYTES)

static u8 *input_of(struct rnic_commands *c, u32 slot)
{
	return c->mailboxes + 2 * slot * RNICSIM_MAILBOX_BYTES;
}

static u8 *output_of(struct rnic_commands *c, u32 slot)
{
	return input_of(c, slot) + RNICSIM_MAILBOX_BYTES;
}

static int to_errno(u8 status)
{
	switch (status) {
	case RNICSIM_COMMAND_STATUS_OK:
		return 0;
	case RNICSIM_COMMAND_STATUS_BAD_PARAMETER:
	case RNICSIM_COMMAND_STATUS_BAD_STATE:
		return -EINVAL;
	case RNICSIM_COMMAND_STATUS_BAD_RESOURCE:
		return -ENOENT;
	case RNICSIM_COMMAND_STATUS_RESOURCE_BUSY:
		return -EBUSY;
	case RNICSIM_COMMAND_STATUS_EXCEEDS_LIMIT:
		return -ENOMEM;
	case RNICSIM_COMMAND_STATUS_BAD_OPCODE:
	case RNICSIM_COMMAND_STATUS_NOT_SUPPORTED:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

void rnic_fill_header(struct rnicsim_command_header *header, u16 opcode, u32 object)
{
	header->opcode = cpu_to_be16(opcode);
	header->object = cpu_to_be32(object);
}

static u32 take_slot(struct rnic_commands *c)
{
	unsigned long flags;
	u32 slot;

	down(&c->free);
	spin_lock_irqsave(&c->lock, flags);
	slot = find_first_zero_bit(&c->taken, RNIC_COMMANDS);
	__set_bit(slot, &c->taken);
	c->slots[slot].token = ++c->token;
	spin_unlock_irqrestore(&c->lock, flags);
	return slot;
}

static void give_back_slot(struct rnic_commands *c, u32 slot)
{
	unsigned long flags;

	spin_lock_irqsave(&c->lock, flags);
	__clear_bit(slot, &c->taken);
	spin_unlock_irqrestore(&c->lock, flags);
	up(&c->free);
}

static void submit(struct rnic_device *dev, u32 slot, size_t in_bytes)
{
	struct rnic_commands *c = &dev->commands;
	struct rnicsim_command_entry *entry = &c->ring[slot];
	dma_addr_t mailbox = c->mailboxes_dma + 2 * slot * RNICSIM_MAILBOX_BYTES;

	entry->status = 0;
	entry->token = cpu_to_be16(c->slots[slot].token);
	entry->input_bytes = cpu_to_be32(in_bytes);
	entry->input = cpu_to_be64(mailbox);
	entry->output = cpu_to_be64(mailbox + RNICSIM_MAILBOX_BYTES);
	entry->output_bytes = cpu_to_be32(RNICSIM_MAILBOX_BYTES);
	dma_wmb(); /* entry and mailbox before the entry is the device's */
	WRITE_ONCE(entry->owner, 1);
	smp_mb__before_atomic(); /* the interrupt sees an entry given away */
	set_bit(slot, &c->pending);
	iowrite32be(BIT(slot), dev->bar + RNICSIM_REG_COMMAND_DOORBELL);
}

/* True when the device has given the entry back; whoever finds so completes it. */
static bool collect(struct rnic_commands *c, u32 slot)
{
	struct rnicsim_command_entry *entry = &c->ring[slot];

	if (READ_ONCE(entry->owner) != 0)
		return false;
	dma_rmb(); /* `owner` was written last */
	if (be16_to_cpu(entry->token) != c->slots[slot].token)
		return false;
	if (!test_and_clear_bit(slot, &c->pending))
		return false;
	c->slots[slot].status = entry->status;
	complete(&c->slots[slot].done);
	return true;
}

static irqreturn_t command_interrupt(int irq, void *data)
{
	struct rnic_commands *c = &((struct rnic_device *)data)->commands;
	unsigned long pending = READ_ONCE(c->pending);
	u32 slot;

	for_each_set_bit(slot, &pending, RNIC_COMMANDS)
		collect(c, slot);
	return IRQ_HANDLED;
}

/* 0, or why there is no answer. A slot whose command never ended is not used again. */
static int wait_for_answer(struct rnic_device *dev, u32 slot)
{
	struct rnic_commands *c = &dev->commands;
	struct rnic_command_slot *s = &c->slots[slot];

	if (!wait_for_completion_timeout(&s->done, command_timeout * HZ)) {
		if (!collect(c, slot) && !completion_done(&s->done)) {
			dev_err(&dev->pdev->dev, "command %#x: no answer in %u s\n", s->opcode, command_timeout);
			rnic_die(dev, "no answer to a command");
			return -ETIMEDOUT;
		}
		dev_warn(&dev->pdev->dev, "command %#x: an answer without an interrupt\n", s->opcode);
	}
	return rnic_dead(dev) && s->status != RNICSIM_COMMAND_STATUS_OK ? -EIO : 0;
}

static int run_command(struct rnic_device *dev, u32 slot, const void *in, size_t in_bytes, void *out,
		     size_t out_bytes)
{
	const struct rnicsim_command_header *header = in;
	struct rnic_commands *c = &dev->commands;
	struct rnic_command_slot *s = &c->slots[slot];
	struct rnicsim_command_result *result;
	int error;

	s->opcode = be16_to_cpu(header->opcode);
	s->status = RNICSIM_COMMAND_STATUS_INTERNAL_ERROR;
	reinit_completion(&s->done);
	memcpy(input_of(c, slot), in, in_bytes);
	submit(dev, slot, in_bytes);
	if (rnic_dead(dev)) /* died beside submit(), which the abort may not have seen */
		rnic_abort_commands(dev);
	error = wait_for_answer(dev, slot);
	if (error)
		return error;
	result = (struct rnicsim_command_result *)output_of(c, slot);
	if (s->status != RNICSIM_COMMAND_STATUS_OK)
		dev_dbg(&dev->pdev->dev, "command %#x, object %u: status %#x, syndrome %#x\n", s->opcode,
			be32_to_cpu(header->object), s->status, be32_to_cpu(result->syndrome));
	else if (out)
		memcpy(out, result, out_bytes);
	return to_errno(s->status);
}

/* `in` begins with its header, `out` with a result. May sleep. */
int rnic_execute(struct rnic_device *dev, void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	u32 slot;
	int error;

	if (WARN_ON_ONCE(in_bytes > RNICSIM_MAILBOX_BYTES || out_bytes > RNICSIM_MAILBOX_BYTES))
		return -EINVAL;
	if (rnic_dead(dev))
		return -EIO;
	slot = take_slot(&dev->commands);
	if (rnic_dead(dev))
		error = -EIO;
	else
		error = run_command(dev, slot, in, in_bytes, out, out_bytes);
	/* After a death the device has no DMA: the slot is safe. */
	give_back_slot(&dev->commands, slot);
	return error;
}

int rnic_command(struct rnic_device *dev, u16 opcode, u32 object)
{
	struct rnicsim_command_header header = {};

	rnic_fill_header(&header, opcode, object);
	return rnic_execute(dev, &header, sizeof(header), NULL, 0);
}

int rnic_destroy(struct rnic_device *dev, u16 opcode, u32 object)
{
	int error = rnic_command(dev, opcode, object);

	return rnic_dead(dev) ? 0 : error;
}

/* Wakes all waiters of a dead device. */
void rnic_abort_commands(struct rnic_device *dev)
{
	struct rnic_commands *c = &dev->commands;
	u32 slot;

	for (slot = 0; slot < RNIC_COMMANDS; slot++)
		if (test_and_clear_bit(slot, &c->pending))
			complete(&c->slots[slot].done);
}

int rnic_start_commands(struct rnic_device *dev)
{
	struct rnic_commands *c = &dev->commands;
	struct device *dma = &dev->pdev->dev;
	u32 slot;
	int error;

	if (ioread32be(dev->bar + RNICSIM_REG_COMMAND_LOG_ENTRIES) != RNICSIM_COMMAND_LOG_ENTRIES) {
		dev_err(dma, "the command queue of the device does not have %u entries\n", RNIC_COMMANDS);
		return -ENODEV;
	}
	c->ring = dma_alloc_coherent(dma, RING_BYTES, &c->ring_dma, GFP_KERNEL);
	if (!c->ring)
		return -ENOMEM;
	c->mailboxes = dma_alloc_coherent(dma, MAILBOXES_BYTES, &c->mailboxes_dma, GFP_KERNEL);
	if (!c->mailboxes) {
		error = -ENOMEM;
		goto free_ring;
	}
	sema_init(&c->free, RNIC_COMMANDS);
	spin_lock_init(&c->lock);
	for (slot = 0; slot < RNIC_COMMANDS; slot++)
		init_completion(&c->slots[slot].done);
	error = request_irq(pci_irq_vector(dev->pdev, RNIC_COMMAND_VECTOR), command_interrupt, 0, "rnic-commands",
			    dev);
	if (error)
		goto free_mailboxes;
	rnic_write64(dev, RNICSIM_REG_COMMAND_QUEUE_BASE, c->ring_dma);
	return 0;

free_mailboxes:
	dma_free_coherent(dma, MAILBOXES_BYTES, c->mailboxes, c->mailboxes_dma);
free_ring:
	dma_free_coherent(dma, RING_BYTES, c->ring, c->ring_dma);
	return error;
}

/* The device has no DMA any more. */
void rnic_stop_commands(struct rnic_device *dev)
{
	struct rnic_commands *c = &dev->commands;
	struct device *dma = &dev->pdev->dev;

	free_irq(pci_irq_vector(dev->pdev, RNIC_COMMAND_VECTOR), dev);
	dma_free_coherent(dma, MAILBOXES_BYTES, c->mailboxes, c->mailboxes_dma);
	dma_free_coherent(dma, RING_BYTES, c->ring, c->ring_dma);
}
