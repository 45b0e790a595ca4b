// SPDX-License-Identifier: GPL-2.0
/* The PCI function: found, brought up as docs/device.md says, watched, and given back. */
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "rnic.h"

#define HEALTH_INTERVAL (2 * HZ)
#define ALL_ONES 0xffffffffu /* what a function that is gone reads as */

/*
 * The device answers no more, or says that it is broken: it loses DMA, so that
 * memory may be freed, and every waiter hears of it. In any context.
 */
void rnic_die(struct rnic_device *dev, const char *why)
{
	struct ib_event event = { .device = &dev->ib, .event = IB_EVENT_DEVICE_FATAL, .element.port_num = RNIC_PORT };

	if (test_and_set_bit(RNIC_DEAD, &dev->state))
		return;
	dev_err(&dev->pdev->dev, "device stopped: %s; reload the driver to reset the device\n", why);
	pci_clear_master(dev->pdev);
	rnic_abort_commands(dev);
	rnic_ethernet_set_carrier(dev, false);
	if (test_bit(RNIC_REGISTERED, &dev->state))
		ib_dispatch_event(&event);
}

static void check_health(struct work_struct *work)
{
	struct rnic_device *dev = container_of(to_delayed_work(work), struct rnic_device, health);
	u32 status = ioread32be(dev->bar + RNICSIM_REG_STATUS);

	if (rnic_dead(dev))
		return;
	if (status == ALL_ONES)
		return rnic_die(dev, "the device no longer answers on the bus");
	if (status != RNICSIM_DEVICE_STATUS_READY) {
		dev_err(&dev->pdev->dev, "status %u, health syndrome %#x\n", status,
			ioread32be(dev->bar + RNICSIM_REG_HEALTH_SYNDROME));
		return rnic_die(dev, "the device left the state ready");
	}
	schedule_delayed_work(&dev->health, HEALTH_INTERVAL);
}

static int map_bar(struct rnic_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int error;

	if (pci_resource_len(pdev, 0) < RNICSIM_BAR_SIZE) {
		dev_err(&pdev->dev, "BAR0 has %llu bytes, but the driver expects %u\n",
			(u64)pci_resource_len(pdev, 0), RNICSIM_BAR_SIZE);
		return -ENODEV;
	}
	error = pci_request_region(pdev, 0, KBUILD_MODNAME);
	if (error)
		return error;
	dev->bar_start = pci_resource_start(pdev, 0);
	dev->bar = pci_iomap(pdev, 0, 0);
	if (!dev->bar) {
		pci_release_region(pdev, 0);
		return -ENOMEM;
	}
	return 0;
}

static void unmap_bar(struct rnic_device *dev)
{
	pci_iounmap(dev->pdev, dev->bar);
	pci_release_region(dev->pdev, 0);
}

/* A reset of the function forgets BAR and Command, and all that an earlier driver left. */
static int reset_function(struct rnic_device *dev)
{
	int error;

	pci_save_state(dev->pdev);
	error = pcie_flr(dev->pdev);
	pci_restore_state(dev->pdev);
	return error;
}

static int identify(struct rnic_device *dev)
{
	struct device *log = &dev->pdev->dev;
	u32 magic = ioread32be(dev->bar + RNICSIM_REG_MAGIC);
	u32 version = ioread32be(dev->bar + RNICSIM_REG_ABI_VERSION);
	u32 status = ioread32be(dev->bar + RNICSIM_REG_STATUS);

	if (magic != RNICSIM_MAGIC_VALUE) {
		dev_err(log, "register 0 is %#x, but the driver expects %#x\n", magic, RNICSIM_MAGIC_VALUE);
		return -ENODEV;
	}
	if (version >> 16 != RNICSIM_ABI_MAJOR) {
		dev_err(log, "the device has interface version %u.%u, this driver supports %u\n", version >> 16,
			version & 0xffff, RNICSIM_ABI_MAJOR);
		return -ENODEV;
	}
	if (status != RNICSIM_DEVICE_STATUS_INITIALIZING) {
		dev_err(log, "status %u after a reset\n", status);
		return -EIO;
	}
	dev->abi_minor = version & 0xffff;
	dev->uar_pages = ioread32be(dev->bar + RNICSIM_REG_UAR_INFO);
	return 0;
}

static int query_capabilities(struct rnic_device *dev)
{
	struct rnicsim_device_capabilities answer = {};
	struct rnicsim_command_header header = {};
	struct rnic_capabilities *caps = &dev->caps;
	int error;

	rnic_fill_header(&header, RNIC_COMMAND(QUERY_DEVICE), 0);
	error = rnic_execute(dev, &header, sizeof(header), &answer, sizeof(answer));
	if (error)
		return error;
	caps->features = be64_to_cpu(answer.features);
	caps->firmware_version = be64_to_cpu(answer.firmware_version);
	caps->max_mr_size = be64_to_cpu(answer.max_mr_size);
	caps->vendor_part_id = be32_to_cpu(answer.vendor_part_id);
	caps->max_qp = be32_to_cpu(answer.max_qp);
	caps->max_qp_wr = be32_to_cpu(answer.max_qp_wr);
	caps->max_send_sge = be32_to_cpu(answer.max_send_sge);
	caps->max_recv_sge = be32_to_cpu(answer.max_receive_sge);
	caps->max_cq = be32_to_cpu(answer.max_cq);
	/* A ring is one piece of memory: no longer than the kernel has them. */
	caps->max_cqe = min_t(u32, rounddown_pow_of_two(be32_to_cpu(answer.max_cqe)),
			      (PAGE_SIZE << (MAX_ORDER - 1)) / sizeof(struct rnicsim_cqe));
	caps->max_mr = be32_to_cpu(answer.max_mr);
	caps->max_pd = be32_to_cpu(answer.max_pd);
	caps->max_inline = be32_to_cpu(answer.max_inline);
	caps->max_rd_atomic = be32_to_cpu(answer.max_rd_atomic);
	caps->local_ca_ack_delay = be32_to_cpu(answer.local_ca_ack_delay);
	caps->max_eq = be32_to_cpu(answer.max_eq);
	caps->core_clock_khz = be32_to_cpu(answer.core_clock_khz);
	caps->atomic = be32_to_cpu(answer.atomic);
	caps->max_srq = be32_to_cpu(answer.max_srq);
	caps->max_srq_wr = be32_to_cpu(answer.max_srq_wr);
	caps->max_srq_sge = be32_to_cpu(answer.max_srq_sge);
	caps->max_ah = be32_to_cpu(answer.max_ah);
	caps->max_mtt = be32_to_cpu(answer.max_mtt);
	caps->max_cq_moderation_count = be16_to_cpu(answer.max_cq_moderation_count);
	caps->max_cq_moderation_period = be16_to_cpu(answer.max_cq_moderation_period);
	caps->max_multicast_groups = be32_to_cpu(answer.max_multicast_groups);
	caps->max_group_qps = be32_to_cpu(answer.max_group_qps);
	caps->max_attached_qps = be32_to_cpu(answer.max_attached_qps);
	caps->max_frame = be32_to_cpu(answer.max_frame);
	caps->max_flows = be32_to_cpu(answer.max_flows);
	caps->max_tso = be32_to_cpu(answer.max_tso);
	caps->max_tso_header = be32_to_cpu(answer.max_tso_header);
	dev->max_qp_wr = rnic_most_work_requests(caps);
	return 0;
}

/* The region of all memory is as long as a region may be: no bus address lies beyond. */
static int limit_addresses(struct rnic_device *dev)
{
	unsigned int bits = min_t(unsigned int, 64, ilog2(dev->caps.max_mr_size));

	dma_set_max_seg_size(&dev->pdev->dev, UINT_MAX);
	return dma_set_mask_and_coherent(&dev->pdev->dev, DMA_BIT_MASK(bits));
}

static int initialize(struct rnic_device *dev, u32 completion_eqs)
{
	u32 status;
	int error;

	error = rnic_lend(dev, RNICSIM_ICM_TABLE_EQC, 0, RNIC_FIRST_COMPLETION_EQ + completion_eqs);
	if (error)
		return error;
	error = rnic_command(dev, RNIC_COMMAND(INITIALIZE), 0);
	if (error)
		return error;
	status = ioread32be(dev->bar + RNICSIM_REG_STATUS);
	if (status == RNICSIM_DEVICE_STATUS_READY)
		return 0;
	dev_err(&dev->pdev->dev, "status %u after initialize\n", status);
	return -EIO;
}

static void teardown(struct rnic_device *dev)
{
	if (rnic_destroy(dev, RNIC_COMMAND(TEARDOWN), 0))
		rnic_die(dev, "teardown failed");
}

static int bring_up_objects(struct rnic_device *dev, u32 completion_eqs)
{
	int error = rnic_init_icm(dev);

	if (error)
		return error;
	error = initialize(dev, completion_eqs);
	if (error)
		goto free_icm;
	error = rnic_create_eqs(dev, completion_eqs);
	if (error)
		goto teardown;
	dev->ib.num_comp_vectors = completion_eqs;
	if (rnic_wants_ethernet(dev))
		error = rnic_create_ethernet(dev);
	if (error)
		goto destroy_eqs;
	error = rnic_register(dev);
	if (error)
		goto destroy_ethernet;
	return 0;

destroy_ethernet:
	rnic_destroy_ethernet(dev);
destroy_eqs:
	rnic_destroy_eqs(dev);
teardown:
	teardown(dev);
free_icm:
	pci_clear_master(dev->pdev);
	rnic_free_icm(dev);
	return error;
}

static int bring_up(struct rnic_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	u32 completion_eqs = min_t(u32, num_online_cpus(), RNIC_MOST_COMPLETION_EQS);
	int vectors, error;

	error = identify(dev);
	if (error)
		return error;
	vectors = pci_alloc_irq_vectors(pdev, RNIC_FIRST_EQ_VECTOR + RNIC_FIRST_COMPLETION_EQ + 1,
					RNIC_FIRST_EQ_VECTOR + RNIC_FIRST_COMPLETION_EQ + completion_eqs, PCI_IRQ_MSIX);
	if (vectors < 0)
		return vectors;
	error = rnic_start_commands(dev);
	if (error)
		goto free_vectors;
	error = query_capabilities(dev);
	if (!error)
		error = limit_addresses(dev);
	if (error)
		goto stop_commands;
	completion_eqs = min_t(u32, vectors - RNIC_FIRST_EQ_VECTOR, dev->caps.max_eq) - RNIC_FIRST_COMPLETION_EQ;
	error = bring_up_objects(dev, completion_eqs);
	if (error)
		goto stop_commands;
	return 0;

stop_commands:
	pci_clear_master(pdev);
	rnic_stop_commands(dev);
free_vectors:
	pci_free_irq_vectors(pdev);
	return error;
}

static void init_numbers(struct rnic_device *dev)
{
	ida_init(&dev->uars);
	ida_init(&dev->pds);
	ida_init(&dev->mrs);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	INIT_DELAYED_WORK(&dev->health, check_health);
}

static int enable(struct rnic_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int error = pci_enable_device_mem(pdev);

	if (error)
		return error;
	error = map_bar(dev);
	if (error)
		goto disable;
	pci_set_master(pdev);
	error = reset_function(dev);
	if (!error)
		error = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!error)
		return 0;
	pci_clear_master(pdev);
	unmap_bar(dev);
disable:
	pci_disable_device(pdev);
	return error;
}

static void disable(struct rnic_device *dev)
{
	pci_clear_master(dev->pdev);
	unmap_bar(dev);
	pci_disable_device(dev->pdev);
}

static int rnic_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rnic_device *dev;
	int error;

	/* Rings are mapped to programs as cached memory, and UAR pages have 4 KiB. */
	if (!dev_is_dma_coherent(&pdev->dev) || PAGE_SIZE != RNICSIM_UAR_PAGE_SIZE) {
		dev_err(&pdev->dev, "the driver needs coherent DMA and pages of %u bytes\n", RNICSIM_UAR_PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	dev = ib_alloc_device(rnic_device, ib);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	pci_set_drvdata(pdev, dev);
	init_numbers(dev);
	error = enable(dev);
	if (error)
		goto dealloc;
	error = bring_up(dev);
	if (error)
		goto disable;
	error = rnic_follow_netdevs(dev);
	if (error)
		dev_warn(&pdev->dev, "no notification of added or removed network devices: error %d\n", error);
	schedule_delayed_work(&dev->health, HEALTH_INTERVAL);
	return 0;

disable:
	disable(dev);
dealloc:
	ib_dealloc_device(&dev->ib);
	return error;
}

static void rnic_remove(struct pci_dev *pdev)
{
	struct rnic_device *dev = pci_get_drvdata(pdev);

	if (ioread32be(dev->bar + RNICSIM_REG_MAGIC) == ALL_ONES)
		rnic_die(dev, "the device no longer answers on the bus");
	cancel_delayed_work_sync(&dev->health);
	if (dev->netdev_notifier.notifier_call)
		rnic_unfollow_netdevs(dev);
	ib_unregister_device(&dev->ib);
	clear_bit(RNIC_REGISTERED, &dev->state);
	rnic_destroy_ethernet(dev);
	rnic_destroy_eqs(dev);
	teardown(dev);
	pci_clear_master(pdev);
	rnic_free_icm(dev);
	rnic_stop_commands(dev);
	pci_free_irq_vectors(pdev);
	disable(dev);
	ib_dealloc_device(&dev->ib);
}

static const struct pci_device_id rnic_ids[] = {
	{ PCI_DEVICE(RNICSIM_PCI_VENDOR_ID, RNICSIM_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, rnic_ids);

static struct pci_driver rnic_driver = {
	.name = KBUILD_MODNAME,
	.id_table = rnic_ids,
	.probe = rnic_probe,
	.remove = rnic_remove,
};
module_pci_driver(rnic_driver);

MODULE_DESCRIPTION("Driver of the rnicsim RDMA NIC");
MODULE_LICENSE("GPL");
