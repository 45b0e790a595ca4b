/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that the sources of the driver share. */
#ifndef RNIC_H
#define RNIC_H

#include <linux/pci.h>

#include "objects.h"

static inline bool rnic_dead(const struct rnic_device *dev)
{
	return test_bit(RNIC_DEAD, &dev->state);
}

/* One store of 8 bytes, big-endian; stores of memory before it are seen before it. */
static inline void rnic_write64(struct rnic_device *dev, u32 offset, u64 value)
{
	writeq(swab64(value), dev->bar + offset);
}

/* A doorbell: what it announces was stored before. */
static inline void rnic_ring(struct rnic_device *dev, u32 page, u32 offset, u32 first, u32 second)
{
	rnic_write64(dev, RNICSIM_UAR_BASE + page * RNICSIM_UAR_PAGE_SIZE + offset, (u64)first << 32 | second);
}

/* main.c */
void rnic_die(struct rnic_device *dev, const char *why);

/* cmd.c */
int rnic_start_commands(struct rnic_device *dev);
void rnic_stop_commands(struct rnic_device *dev);
void rnic_abort_commands(struct rnic_device *dev);
int rnic_execute(struct rnic_device *dev, void *in, size_t in_bytes, void *out, size_t out_bytes);
int rnic_command(struct rnic_device *dev, u16 opcode, u32 object);
void rnic_fill_header(struct rnicsim_command_header *header, u16 opcode, u32 object);

/* Destroying what a dead device forgot succeeds. */
int rnic_destroy(struct rnic_device *dev, u16 opcode, u32 object);

/* icm.c */
int rnic_init_icm(struct rnic_device *dev);
void rnic_free_icm(struct rnic_device *dev);
int rnic_lend(struct rnic_device *dev, enum rnicsim_icm_table table, u32 first, u32 count);
int rnic_take_mtt(struct rnic_device *dev, u32 count, u32 *first);
void rnic_give_back_mtt(struct rnic_device *dev, u32 first, u32 count);
void rnic_write_mtt(struct rnic_device *dev, u32 index, dma_addr_t page);

/* eq.c */
int rnic_create_eqs(struct rnic_device *dev, u32 completion_eqs);
void rnic_destroy_eqs(struct rnic_device *dev);

/* ethernet.c */
int rnic_create_ethernet(struct rnic_device *dev);
void rnic_destroy_ethernet(struct rnic_device *dev);
void rnic_ethernet_set_carrier(struct rnic_device *dev, bool on);
struct net_device *rnic_ethernet_netdev(struct rnic_device *dev);

/* netdev.c */
bool rnic_wants_ethernet(const struct rnic_device *dev);
int rnic_find_netdev(struct rnic_device *dev);
int rnic_follow_netdevs(struct rnic_device *dev);
void rnic_unfollow_netdevs(struct rnic_device *dev);

/* ib.c */
int rnic_register(struct rnic_device *dev);
int rnic_ask_port(struct rnic_device *dev, struct rnicsim_port_attributes *answer);
void rnic_format_firmware(const struct rnic_device *dev, char *to, size_t bytes);
void rnic_port_event(struct rnic_device *dev, enum ib_event_type type);

/* counters.c */
int rnic_count_port_counters(void);
const char *rnic_port_counter_name(int index);
int rnic_read_port_counters(struct rnic_device *dev, u64 *to);
struct rdma_hw_stats *rnic_alloc_port_stats(struct ib_device *ib, u32 port);
int rnic_get_port_stats(struct ib_device *ib, struct rdma_hw_stats *stats, u32 port, int index);

/* buf.c: `context` is NULL for what the kernel uses itself. */
struct rnic_buf *rnic_alloc_buf(struct rnic_device *dev, struct rnic_ucontext *context, size_t bytes);
void rnic_free_buf(struct rnic_buf *buf);
struct rnic_mapping rnic_mapping_of(const struct rnic_buf *buf);
int rnic_answer(struct ib_udata *udata, void *answer, size_t bytes);

/* ucontext.c */
int rnic_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata);
void rnic_dealloc_ucontext(struct ib_ucontext *ib);
int rnic_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma);
void rnic_mmap_free(struct rdma_user_mmap_entry *entry);
void rnic_disassociate_ucontext(struct ib_ucontext *ib);

/* pd.c */
int rnic_alloc_pd(struct ib_pd *ib, struct ib_udata *udata);
int rnic_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata);

/* ah.c */
void rnic_encode_path(const struct rdma_ah_attr *from, struct rnicsim_address_vector *to);
void rnic_decode_path(struct rnic_device *dev, const struct rnicsim_address_vector *from, struct rdma_ah_attr *to);
int rnic_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int rnic_query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr);
int rnic_destroy_ah(struct ib_ah *ib, u32 flags);

/* mr.c */
u32 rnic_device_access(struct rnic_device *dev, int access);
int rnic_take_mr_index(struct rnic_device *dev);
struct rnic_mr *rnic_new_mr(struct rnic_device *dev);
void rnic_free_mr(struct rnic_device *dev, struct rnic_mr *mr);
int rnic_create_mpt(struct rnic_device *dev, u32 index, struct ib_pd *pd, struct rnicsim_create_mpt *create, u32 *key);
struct ib_mr *rnic_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *rnic_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 address, int access,
			       struct ib_udata *udata);
struct ib_mr *rnic_rereg_user_mr(struct ib_mr *ib, int flags, u64 start, u64 length, u64 address, int access,
				 struct ib_pd *pd, struct ib_udata *udata);
int rnic_dereg_mr(struct ib_mr *ib, struct ib_udata *udata);

/* fast_mr.c */
u32 rnic_most_fast_pages(const struct rnic_device *dev);
struct ib_mr *rnic_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int rnic_map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int count, unsigned int *offset);
int rnic_encode_registration(struct rnic_device *dev, const struct ib_reg_wr *wr, struct rnicsim_register_segment *to);

/* mw.c */
int rnic_alloc_mw(struct ib_mw *ib, struct ib_udata *udata);
int rnic_dealloc_mw(struct ib_mw *ib);

/* cq.c */
int rnic_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, struct ib_udata *udata);
int rnic_modify_cq(struct ib_cq *ib, u16 count, u16 period);
int rnic_resize_cq(struct ib_cq *ib, int cqe, struct ib_udata *udata);
int rnic_destroy_cq(struct ib_cq *ib, struct ib_udata *udata);
void rnic_complete(struct rnic_device *dev, u32 cqn);
void rnic_cq_event(struct rnic_device *dev, u32 cqn);

/* poll.c */
int rnic_poll_cq(struct ib_cq *ib, int count, struct ib_wc *wc);
int rnic_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags flags);
void rnic_forget_completions(struct rnic_cq *cq, const struct rnic_qp *qp);

/* qp.c */
int rnic_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int rnic_destroy_qp(struct ib_qp *ib, struct ib_udata *udata);
u32 rnic_most_headers(const struct rnic_capabilities *caps);
u32 rnic_most_work_requests(const struct rnic_capabilities *caps);
void rnic_qp_event(struct rnic_device *dev, u32 qpn, enum ib_event_type type);
int rnic_attach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid);
int rnic_detach_mcast(struct ib_qp *ib, union ib_gid *gid, u16 lid);

/* modify.c */
int rnic_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int rnic_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);

/* post.c */
int rnic_post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
void rnic_put_segment(struct rnicsim_data_segment *to, const struct ib_sge *sge);

/* post_receive.c */
int rnic_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
void rnic_flush_receives(struct rnic_qp *qp);

/* srq.c */
int rnic_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int rnic_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		    struct ib_udata *udata);
int rnic_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr);
int rnic_destroy_srq(struct ib_srq *ib, struct ib_udata *udata);
int rnic_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
u64 rnic_retire_shared(struct rnic_srq *srq, u16 index);
void rnic_srq_event(struct rnic_device *dev, u32 srqn, enum ib_event_type type);

#endif /* RNIC_H */
