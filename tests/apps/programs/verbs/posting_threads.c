// SPDX-License-Identifier: Apache-2.0
// Threads that post at once, each on its own queue pair, which accepts work requests and sends nothing.
//
//   posting_threads THREADS POSTS
//
// Prints the time of a post in each thread, in picoseconds. Exit status 2: an error.
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMostThreads = 16 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char buffer[64];
static struct ibv_qp *qps[kMostThreads];
static long took[kMostThreads];
static int posts;
static long begin;

static void check(int right, const char *what) {
  if (right) return;
  printf("wrong: %s: %s\n", what, strerror(errno));
  _exit(2);
}

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list != NULL && list[0] != NULL, "device");
  context = ibv_open_device(list[0]);
  check(context != NULL, "open");
  ibv_free_device_list(list);
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  check(pd != NULL && cq != NULL && mr != NULL, "objects");
}

// A QP in SQD, connected to itself.
static struct ibv_qp *new_queue_pair(void) {
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = (uint32_t)posts, .max_send_sge = 1}};
  struct ibv_qp *qp = ibv_create_qp(pd, &wanted);
  check(qp != NULL, "queue pair");
  union ibv_gid gid;
  check(ibv_query_gid(context, 1, 1, &gid) == 0, "gid");
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14};
  check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD};
  check(ibv_modify_qp(qp, &sqd, IBV_QP_STATE) == 0, "SQD");
  return qp;
}

static void *post(void *argument) {
  const long index = (long)(intptr_t)argument;
  struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = sizeof buffer, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
  const struct timespec wait = {.tv_nsec = begin - now()};
  nanosleep(&wait, NULL);
  const long start = now();
  for (int i = 0; i < posts; ++i) check(ibv_post_send(qps[index], &wr, &bad) == 0, "post");
  took[index] = now() - start;
  return NULL;
}

int main(int argc, char **argv) {
  check(argc == 3, "arguments");
  const int threads = atoi(argv[1]);
  posts = atoi(argv[2]);
  open_device();
  for (int i = 0; i < threads; ++i) qps[i] = new_queue_pair();
  begin = now() + 1000000;
  pthread_t others[kMostThreads];
  for (int i = 1; i < threads; ++i)
    check(pthread_create(&others[i], NULL, post, (void *)(intptr_t)i) == 0, "thread");
  post(0);
  for (int i = 1; i < threads; ++i) pthread_join(others[i], NULL);
  for (int i = 0; i < threads; ++i) printf("%ld\n", took[i] * 1000 / posts);
  return 0;
}
