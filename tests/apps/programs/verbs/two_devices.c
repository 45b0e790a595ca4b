// SPDX-License-Identifier: Apache-2.0
/* A program with both devices of its host: which objects belong to which device, and a WRITE from one to the other. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBytes = 4096 };

struct end {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_mr *mr;
  struct ibv_cq *cq;
  struct ibv_qp *qp;
  union ibv_gid gid;
};

static void need(int good, const char *what) {
  if (good) return;
  printf("%s: %s\n", what, strerror(errno));
  exit(1);
}

static struct end open_end(struct ibv_device *device, void *memory) {
  struct end end;
  end.context = ibv_open_device(device);
  need(end.context != NULL, "open");
  end.pd = ibv_alloc_pd(end.context);
  end.mr = ibv_reg_mr(end.pd, memory, 2 * kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  need(end.mr != NULL, "register");
  end.cq = ibv_create_cq(end.context, 16, NULL, NULL, 0);
  struct ibv_qp_init_attr init = {.send_cq = end.cq, .recv_cq = end.cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
  end.qp = ibv_create_qp(end.pd, &init);
  need(end.qp != NULL, "create a QP");
  need(ibv_query_gid(end.context, 1, 1, &end.gid) == 0, "query the GID");
  return end;
}

static void connect_ends(const struct end *from, const struct end *to) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  need(ibv_modify_qp(from->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = to->qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = to->gid;
  attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.hop_limit = 64;
  need(ibv_modify_qp(from->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  need(ibv_modify_qp(from->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "RTS");
}

/* Writes the first half of the memory to the second half. */
static enum ibv_wc_status write_to(const struct end *from, const char *memory, uint32_t rkey) {
  struct ibv_sge piece = {(uintptr_t)memory, kBytes, from->mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED, .wr.rdma = {(uintptr_t)memory + kBytes, rkey}};
  struct ibv_send_wr *bad;
  need(ibv_post_send(from->qp, &wr, &bad) == 0, "post");
  struct ibv_wc wc;
  while (ibv_poll_cq(from->cq, 1, &wc) == 0) {}
  return wc.status;
}

int main(void) {
  int count;
  struct ibv_device **list = ibv_get_device_list(&count);
  printf("%d devices:", count);
  for (int i = 0; i < count; ++i)
    printf(" %s %s %d", ibv_get_device_name(list[i]), list[i]->dev_name, ibv_get_device_index(list[i]));
  printf(", another after them %d\n", list[count] != NULL);

  char *memory = aligned_alloc(4096, 2 * kBytes);
  memset(memory, 'a', kBytes);
  memset(memory + kBytes, 'b', kBytes);
  struct end first = open_end(list[0], memory), second = open_end(list[1], memory);
  printf("guids differ %d, gids differ %d\n", ibv_get_device_guid(list[0]) != ibv_get_device_guid(list[1]),
         memcmp(&first.gid, &second.gid, sizeof first.gid) != 0);
  connect_ends(&first, &second);
  connect_ends(&second, &first);
  printf("write: %s,", ibv_wc_status_str(write_to(&first, memory, second.mr->rkey)));
  printf(" the same %d\n", memcmp(memory, memory + kBytes, kBytes) == 0);

  /* Objects of one device cannot be used with the other. */
  struct ibv_qp_init_attr init = {.send_cq = first.cq, .recv_cq = first.cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 1, .max_send_sge = 1}};
  printf("a QP of both %d\n", ibv_create_qp(second.pd, &init) != NULL);

  /* A context of either device can be imported. */
  struct ibv_context *imported = ibv_import_device(dup(second.context->cmd_fd));
  need(imported != NULL, "import");
  printf("imported %s\n", ibv_get_device_name(imported->device));
  struct ibv_pd *pd = ibv_import_pd(imported, second.pd->handle);
  printf("its pd %d\n", pd != NULL);
  if (pd != NULL) ibv_unimport_pd(pd);
  ibv_close_device(imported);

  /* Pages pinned by one device stay pinned when the other device releases them. */
  need(ibv_dereg_mr(first.mr) == 0, "deregister");
  memset(memory, 'c', kBytes);
  struct ibv_mr *again = ibv_reg_mr(first.pd, memory, kBytes, 0);
  first.mr = again;
  printf("again: %s,", ibv_wc_status_str(write_to(&first, memory, second.mr->rkey)));
  printf(" the same %d\n", memcmp(memory, memory + kBytes, kBytes) == 0);
  for (struct end *end = &first; end != NULL; end = end == &first ? &second : NULL) {
    ibv_destroy_qp(end->qp);
    ibv_destroy_cq(end->cq);
    ibv_dereg_mr(end->mr);
    ibv_dealloc_pd(end->pd);
    printf("closed %d\n", ibv_close_device(end->context));
  }
  ibv_free_device_list(list);
}
