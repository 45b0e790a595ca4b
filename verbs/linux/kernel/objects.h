/* SPDX-License-Identifier: GPL-2.0 */
/* State of the rnicsim NIC's driver: the device, and each object of verbs. */
#ifndef RNIC_OBJECTS_H
#define RNIC_OBJECTS_H

#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "hw.h"
#include "rnic_abi.h"

struct gen_pool;
struct rnic_ethernet;

#define RNIC_COMMANDS (1u << RNICSIM_COMMAND_LOG_ENTRIES)
#define RNIC_ICM_TABLES 6

/* Key 0x100 (index 1, tag 0) ends a receive's list of segments: RNICSIM_INVALID_LKEY. */
#define RNIC_FIRST_MR 2
#define RNIC_GSI_QPN 1
#define RNIC_FIRST_QPN 2

/* Most bytes of headers for TCP segmentation: Ethernet, VLAN, IP and TCP with options; a multiple of 16. */
#define RNIC_MOST_HEADERS 144

/* MSI-X vectors: commands, event queue 0 (all but completions), then one a completion event queue. */
#define RNIC_COMMAND_VECTOR 0
#define RNIC_FIRST_EQ_VECTOR 1
#define RNIC_FIRST_COMPLETION_EQ 1
#define RNIC_MOST_COMPLETION_EQS 16

/* Rights that a region may be asked to have. Of the optional ones the driver knows one. */
#define RNIC_KNOWN_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			   IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)
/* Pages of a fast registration: with those of 4 KiB, 4 MiB. */
#define RNIC_MOST_FAST_PAGES 1024

/* Answer of query_device, in the byte order of the host. */
struct rnic_capabilities {
	u64 features;
	u64 firmware_version;
	u64 max_mr_size;
	u32 vendor_part_id;
	u32 max_qp;
	u32 max_qp_wr;
	u32 max_send_sge;
	u32 max_recv_sge;
	u32 max_cq;
	u32 max_cqe;
	u32 max_mr;
	u32 max_pd;
	u32 max_inline;
	u32 max_rd_atomic;
	u32 local_ca_ack_delay;
	u32 max_eq;
	u32 core_clock_khz;
	u32 atomic;
	u32 max_srq;
	u32 max_srq_wr;
	u32 max_srq_sge;
	u32 max_ah;
	u32 max_mtt;
	u32 max_cq_moderation_count;
	u32 max_cq_moderation_period;
	u32 max_multicast_groups;
	u32 max_group_qps;
	u32 max_attached_qps;
	u32 max_frame;
	u32 max_flows;
	u32 max_tso;
	u32 max_tso_header;
};

struct rnic_command_slot {
	struct completion done;
	u16 opcode;
	u16 token;
	u8 status;
};

struct rnic_commands {
	struct rnicsim_command_entry *ring;
	dma_addr_t ring_dma;
	u8 *mailboxes; /* of each slot the input, then the output */
	dma_addr_t mailboxes_dma;
	struct semaphore free; /* counts the slots that are not in `taken` */
	spinlock_t lock; /* of `taken` and `token` */
	unsigned long taken;
	unsigned long pending; /* slots that wait for the device: atomic bits */
	u16 token;
	struct rnic_command_slot slots[RNIC_COMMANDS];
};

struct rnic_icm_chunk {
	void *memory;
	dma_addr_t dma;
};

struct rnic_icm_table {
	u32 entries;
	u32 entry_bytes;
	u32 chunk_entries;
	struct rnic_icm_chunk *chunks;
};

struct rnic_icm {
	struct mutex lock; /* of what is lent */
	struct rnic_icm_table tables[RNIC_ICM_TABLES];
	struct gen_pool *mtt; /* runs of MTT entries, from RNIC_MTT_BASE on */
};

struct rnic_eq {
	struct rnic_device *dev;
	u32 eqn;
	int irq;
	char name[32];
	u8 log_entries;
	u32 consumer; /* counted for ever */
	struct rnicsim_eqe *ring;
	dma_addr_t dma;
};

/* Memory that the device reads or writes as one range of bus addresses; a program may map it. */
struct rnic_buf {
	struct rdma_user_mmap_entry entry;
	struct rnic_device *dev;
	void *memory;
	dma_addr_t dma;
	size_t bytes;
	bool mapped; /* `entry` is a program's */
};

struct rnic_device {
	struct ib_device ib;
	struct pci_dev *pdev;
	void __iomem *bar;
	resource_size_t bar_start;
	unsigned long state;
#define RNIC_DEAD 0 /* the device answers no more, and has no DMA */
#define RNIC_REGISTERED 1
	struct rnic_capabilities caps;
	struct rnic_commands commands;
	struct rnic_icm icm;
	struct rnic_eq *eqs;
	u32 eq_count;
	u32 uar_pages;
	u16 abi_minor; /* minor version of the device's contract */
	u32 max_qp_wr; /* of the longest WQE, so many fit the longest ring */
	struct ida uars;
	struct ida pds;
	struct ida mrs;
	struct xarray cqs;
	struct xarray qps;
	struct xarray srqs;
	u32 next_qpn;
	u32 next_cqn;
	u32 next_srqn;
	atomic_t mr_tag;
	u8 port_mac[ETH_ALEN];
	struct mutex netdev_lock; /* of `netdev` */
	struct net_device *netdev;
	struct notifier_block netdev_notifier;
	struct rnic_ethernet *ethernet; /* NULL: the driver has no network device of its own */
	struct delayed_work health;
};

struct rnic_ucontext {
	struct ib_ucontext ib;
	struct rdma_user_mmap_entry entry; /* of the UAR page */
	u32 uar_page;
};

struct rnic_pd {
	struct ib_pd ib;
	u32 number;
};

struct rnic_ah {
	struct ib_ah ib;
	struct rnicsim_address_vector path;
};

struct rnic_mr {
	struct ib_mr ib;
	struct ib_umem *umem;
	u32 index;
	u32 first_page;
	u32 pages; /* entries of the translation table */
	u32 used_pages; /* fast registration: those that rnic_map_mr_sg wrote */
	int access; /* of a program's region: what it asked for */
	bool replaced; /* the device has forgotten it: rnic_rereg_user_mr */
};

struct rnic_mw {
	struct ib_mw ib;
	u32 index;
};

struct rnic_cq {
	struct ib_cq ib;
	u32 cqn;
	u8 log_entries;
	struct rnic_buf *ring;
	struct rnic_buf *record;
	spinlock_t lock; /* of `consumer` and the ring: a kernel CQ's */
	u32 consumer; /* counted for ever */
	refcount_t users; /* interrupts that hold it, and 1 for its life */
	struct completion free;
};

/* A send WQE of a kernel queue pair, in the slot of the WQE's first block. */
struct rnic_send_slot {
	u64 wr_id;
	u32 retired_after; /* WQEs retired when this one is */
};

struct rnic_send_queue {
	u8 *ring;
	u8 log_blocks;
	u32 capacity; /* WQEs */
	u32 producer; /* blocks ever posted */
	u32 posted; /* WQEs ever posted */
	u32 retired;
	struct rnic_send_slot *slots;
	spinlock_t lock;
};

struct rnic_receive_queue {
	u8 *ring;
	u8 log_wqes;
	u8 log_stride;
	u32 posted;
	u32 retired;
	u64 *wr_ids;
	spinlock_t lock;
};

struct rnic_qp {
	struct ib_qp ib;
	u32 qpn;
	u8 transport;
	struct mutex mutex; /* of `state`: one modification at a time */
	enum ib_qp_state state;
	struct ib_qp_cap cap;
	bool signal_all;
	u32 send_wqe_blocks;
	u16 uar_page;
	struct rnic_buf *send_buf; /* the send ring, then the record */
	struct rnic_buf *receive_buf;
	struct rnicsim_qp_doorbell_record *record;
	dma_addr_t record_dma;
	struct rnic_send_queue sq;
	struct rnic_receive_queue rq;
	bool failed; /* the device moved it to ERR */
	refcount_t users;
	struct completion free;
};

struct rnic_srq {
	struct ib_srq ib;
	u32 srqn;
	u8 log_entries;
	u8 log_stride;
	u32 max_wr;
	u32 max_sge;
	struct rnic_buf *buf; /* entries, then the record */
	struct rnicsim_qp_doorbell_record *record;
	spinlock_t lock; /* of what follows: a kernel queue's */
	u64 *wr_ids;
	u16 head; /* the next entry to be posted */
	u16 tail; /* the last free one, never posted */
	u16 posted;
	u32 outstanding;
	refcount_t users;
	struct completion free;
};

static inline struct rnic_device *to_rnic(struct ib_device *ib)
{
	return container_of(ib, struct rnic_device, ib);
}

static inline struct rnic_ucontext *to_rnic_ucontext(struct ib_ucontext *ib)
{
	return container_of(ib, struct rnic_ucontext, ib);
}

static inline struct rnic_pd *to_rnic_pd(struct ib_pd *ib)
{
	return container_of(ib, struct rnic_pd, ib);
}

static inline struct rnic_ah *to_rnic_ah(struct ib_ah *ib)
{
	return container_of(ib, struct rnic_ah, ib);
}

static inline struct rnic_mr *to_rnic_mr(struct ib_mr *ib)
{
	return container_of(ib, struct rnic_mr, ib);
}

static inline struct rnic_mw *to_rnic_mw(struct ib_mw *ib)
{
	return container_of(ib, struct rnic_mw, ib);
}

static inline struct rnic_cq *to_rnic_cq(struct ib_cq *ib)
{
	return container_of(ib, struct rnic_cq, ib);
}

static inline struct rnic_qp *to_rnic_qp(struct ib_qp *ib)
{
	return container_of(ib, struct rnic_qp, ib);
}

static inline struct rnic_srq *to_rnic_srq(struct ib_srq *ib)
{
	return container_of(ib, struct rnic_srq, ib);
}

#endif /* RNIC_OBJECTS_H */
