/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR Apache-2.0 */
/*
 * Answers of the kernel driver to the rdma-core provider, behind the
 * answers of uverbs. Numbers are in the byte order of the host.
 */
#ifndef RNIC_ABI_H
#define RNIC_ABI_H

#include <linux/types.h>

#define RNIC_ABI_VERSION 1

/* Memory that the provider maps: mmap(2) of the command file descriptor. */
struct rnic_mapping {
  __aligned_u64 offset;
  __aligned_u64 bytes;
};

struct rnic_alloc_ucontext_resp {
  struct rnic_mapping uar; /* write only, not cached */
  __aligned_u64 features;  /* RNICSIM_FEATURE_* */
  __u32 uar_page;
  __u32 core_clock_khz;
};

struct rnic_create_cq_resp {
  struct rnic_mapping ring;
  struct rnic_mapping record; /* begins with the doorbell record */
  __u32 cqn;
  __u32 log_entries;
};

struct rnic_resize_cq_resp {
  struct rnic_mapping ring;
  __u32 log_entries;
  __u32 producer; /* position of the first entry in this ring */
};

struct rnic_create_qp_resp {
  struct rnic_mapping send;    /* the send ring, then the record */
  struct rnic_mapping receive; /* no bytes: no ring */
  __u32 qpn;
  __u32 record_offset;   /* of the doorbell record, in `send` */
  __u32 send_wqe_blocks; /* of the longest WQE */
  __u8 log_send_blocks;
  __u8 log_receive_wqes;
  __u8 log_receive_stride;
  __u8 reserved;
};

struct rnic_create_srq_resp {
  struct rnic_mapping ring; /* entries, then the record */
  __u32 srqn;
  __u32 record_offset;
  __u8 log_entries;
  __u8 log_stride;
  __u8 reserved[6];
};

struct rnic_create_ah_resp {
  __u8 dmac[6]; /* to which frames go */
  __u8 reserved[2];
};

#endif /* RNIC_ABI_H */
