// SPDX-License-Identifier: Apache-2.0
/* A child waits for a DMA write to memory that it shares with its parent. The parent registered the memory, and only
 * waits for its child. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 1 << 20, kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static void check(int right, const char *what) {
  if (right) return;
  printf("%s\n", what);
  exit(1);
}

/* A QP connected to itself. */
static struct ibv_qp *make_qp(struct ibv_context *context, struct ibv_pd *pd) {
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
  struct ibv_qp *qp = ibv_create_qp(pd, &init);
  check(qp != NULL, "ibv_create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kRights};
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  check(!ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid), "ibv_query_gid");
  attr.ah_attr.grh.sgid_index = 1;
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC), "RTS");
  return qp;
}

int main(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  struct ibv_context *context = ibv_open_device(list[0]);
  struct ibv_pd *pd = ibv_alloc_pd(context);
  unsigned char *own = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *shared = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  memset(own, 7, kBytes);
  struct ibv_mr *from = ibv_reg_mr(pd, own, kBytes, kRights), *to = ibv_reg_mr(pd, shared, kBytes, kRights);
  struct ibv_qp *qp = make_qp(context, pd);
  const pid_t child = fork();
  if (child == 0) {
    while (((volatile unsigned char *)shared)[kBytes - 1] != 7) continue;
    _exit(3);
  }
  struct ibv_sge part = {(uintptr_t)own, kBytes, from->lkey};
  struct ibv_send_wr wr = {.sg_list = &part, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
  wr.wr.rdma.remote_addr = (uintptr_t)shared;
  wr.wr.rdma.rkey = to->rkey;
  check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
  int status = 0;
  waitpid(child, &status, 0);
  printf("the child saw it: %d\n", WEXITSTATUS(status));
  return 0;
}
