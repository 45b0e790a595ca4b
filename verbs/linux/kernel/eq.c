// SPDX-License-Identifier: GPL-2.0
/* Event queues: completions, each in the queue of its CQ, and everything else in queue 0. */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>

#include "rnic.h"

#define LOG_ENTRIES 10

static const char *event_name(u8 type)
{
	switch (type) {
	case RNICSIM_EVENT_TYPE_PORT_ACTIVE:
		return "port_active";
	case RNICSIM_EVENT_TYPE_PORT_ERROR:
		return "port_error";
	default:
		return "unknown";
	}
}

static void handle_event(struct rnic_device *dev, u8 type, u32 number)
{
	switch (type) {
	case RNICSIM_EVENT_TYPE_COMPLETION:
		return rnic_complete(dev, number);
	case RNICSIM_EVENT_TYPE_COMMUNICATION_ESTABLISHED:
		return rnic_qp_event(dev, number, IB_EVENT_COMM_EST);
	case RNICSIM_EVENT_TYPE_SEND_QUEUE_DRAINED:
		return rnic_qp_event(dev, number, IB_EVENT_SQ_DRAINED);
	case RNICSIM_EVENT_TYPE_LAST_WQE_REACHED:
		return rnic_qp_event(dev, number, IB_EVENT_QP_LAST_WQE_REACHED);
	case RNICSIM_EVENT_TYPE_QP_FATAL:
		return rnic_qp_event(dev, number, IB_EVENT_QP_FATAL);
	case RNICSIM_EVENT_TYPE_QP_REQUEST_ERROR:
		return rnic_qp_event(dev, number, IB_EVENT_QP_REQ_ERR);
	case RNICSIM_EVENT_TYPE_QP_ACCESS_ERROR:
		return rnic_qp_event(dev, number, IB_EVENT_QP_ACCESS_ERR);
	case RNICSIM_EVENT_TYPE_SRQ_LIMIT:
		return rnic_srq_event(dev, number, IB_EVENT_SRQ_LIMIT_REACHED);
	case RNICSIM_EVENT_TYPE_SRQ_ERROR:
		return rnic_srq_event(dev, number, IB_EVENT_SRQ_ERR);
	case RNICSIM_EVENT_TYPE_CQ_ERROR:
		return rnic_cq_event(dev, number);
	case RNICSIM_EVENT_TYPE_PORT_ACTIVE:
		return rnic_port_event(dev, IB_EVENT_PORT_ACTIVE);
	case RNICSIM_EVENT_TYPE_PORT_ERROR:
		return rnic_port_event(dev, IB_EVENT_PORT_ERR);
	case RNICSIM_EVENT_TYPE_DEVICE_FATAL:
		return rnic_die(dev, "the device reports a fatal error");
	default:
		dev_warn_ratelimited(&dev->pdev->dev, "unhandled event %#x (%s) of object %u\n", type,
				     event_name(type), number);
	}
}

/* The next entry, once it is the driver's: its owner bit is that of the lap. */
static struct rnicsim_eqe *next_entry(struct rnic_eq *eq)
{
	struct rnicsim_eqe *eqe = &eq->ring[eq->consumer & (BIT(eq->log_entries) - 1)];

	if ((READ_ONCE(eqe->owner) & 1) != (eq->consumer >> eq->log_entries & 1))
		return NULL;
	dma_rmb(); /* `owner` was written last */
	return eqe;
}

/* Gives the entries back, and arms the vector: an entry that came meanwhile interrupts at once. */
static void rearm(struct rnic_eq *eq)
{
	rnic_ring(eq->dev, 0, RNICSIM_UAR_EQ_DOORBELL, eq->eqn, eq->consumer & 0xffffff);
}

static irqreturn_t event_interrupt(int irq, void *data)
{
	struct rnic_eq *eq = data;
	struct rnicsim_eqe *eqe;

	while ((eqe = next_entry(eq)) != NULL) {
		handle_event(eq->dev, eqe->type, be32_to_cpu(eqe->number));
		eq->consumer++;
	}
	rearm(eq);
	return IRQ_HANDLED;
}

static size_t ring_bytes(const struct rnic_eq *eq)
{
	return sizeof(struct rnicsim_eqe) << eq->log_entries;
}

static int create_on_device(struct rnic_eq *eq)
{
	struct rnicsim_create_eq create = {};

	rnic_fill_header(&create.header, RNIC_COMMAND(CREATE_EQ), eq->eqn);
	create.context.log_entries = eq->log_entries;
	create.context.msix_vector = cpu_to_be16(RNIC_FIRST_EQ_VECTOR + eq->eqn);
	create.context.ring = cpu_to_be64(eq->dma);
	create.context.producer = cpu_to_be32(eq->consumer);
	create.context.consumer = cpu_to_be32(eq->consumer);
	return rnic_execute(eq->dev, &create, sizeof(create), NULL, 0);
}

static int create_eq(struct rnic_device *dev, struct rnic_eq *eq, u32 eqn)
{
	struct device *dma = &dev->pdev->dev;
	int error;

	eq->dev = dev;
	eq->eqn = eqn;
	eq->log_entries = LOG_ENTRIES;
	/* In the second lap zeros are the device's: the ring needs no writing. */
	eq->consumer = 1u << eq->log_entries;
	eq->irq = pci_irq_vector(dev->pdev, RNIC_FIRST_EQ_VECTOR + eqn);
	if (eqn < RNIC_FIRST_COMPLETION_EQ)
		strscpy(eq->name, "rnic-events", sizeof(eq->name));
	else
		snprintf(eq->name, sizeof(eq->name), "rnic-cq%u", eqn - RNIC_FIRST_COMPLETION_EQ);
	eq->ring = dma_alloc_coherent(dma, ring_bytes(eq), &eq->dma, GFP_KERNEL);
	if (!eq->ring)
		return -ENOMEM;
	error = create_on_device(eq);
	if (error)
		goto free_ring;
	/* Handlers of events of queue pairs may sleep, those of completions may not. */
	if (eqn < RNIC_FIRST_COMPLETION_EQ)
		error = request_threaded_irq(eq->irq, NULL, event_interrupt, IRQF_ONESHOT, eq->name, eq);
	else
		error = request_irq(eq->irq, event_interrupt, 0, eq->name, eq);
	if (error)
		goto destroy;
	rearm(eq);
	return 0;

destroy:
	rnic_destroy(dev, RNIC_COMMAND(DESTROY_EQ), eqn);
free_ring:
	dma_free_coherent(dma, ring_bytes(eq), eq->ring, eq->dma);
	eq->ring = NULL;
	return error;
}

static void destroy_eq(struct rnic_device *dev, struct rnic_eq *eq)
{
	if (rnic_destroy(dev, RNIC_COMMAND(DESTROY_EQ), eq->eqn))
		dev_err(&dev->pdev->dev, "the device did not destroy event queue %u\n", eq->eqn);
	free_irq(eq->irq, eq);
	dma_free_coherent(&dev->pdev->dev, ring_bytes(eq), eq->ring, eq->dma);
}

int rnic_create_eqs(struct rnic_device *dev, u32 completion_eqs)
{
	u32 count = RNIC_FIRST_COMPLETION_EQ + completion_eqs;
	int error;

	dev->eqs = kcalloc(count, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;
	for (dev->eq_count = 0; dev->eq_count < count; dev->eq_count++) {
		error = create_eq(dev, &dev->eqs[dev->eq_count], dev->eq_count);
		if (error) {
			rnic_destroy_eqs(dev);
			return error;
		}
	}
	return 0;
}

void rnic_destroy_eqs(struct rnic_device *dev)
{
	while (dev->eq_count > 0)
		destroy_eq(dev, &dev->eqs[--dev->eq_count]);
	kfree(dev->eqs);
	dev->eqs = NULL;
}
