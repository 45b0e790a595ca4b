// SPDX-License-Identifier: Apache-2.0
// Threads that call verbs from their first instruction on.
//
//   threads COUNT ROUNDS [idle]
//   threads lock
//   threads join
//
// COUNT threads at once, ROUNDS times in sequence: each creates its own queues on the shared context, writes from one
// half of a buffer to the other, and destroys the queues (`idle`: does nothing). Prints the number of successful
// threads. `lock`: one thread polls an empty queue with a lock held, and takes the lock again at once, until another
// thread has got the lock. `join`: a joined thread ends while other threads are created; prints the time at which the
// join returned. Exit status 2: an error.
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kMostThreads = 512, kBytes = 4096, kWrites = 10 };

static struct ibv_context *context;
static union ibv_gid gid;
static int came_through;

static void check(int right, const char *what) {
  if (right) return;
  printf("wrong: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(2);
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list != NULL && list[0] != NULL, "device");
  context = ibv_open_device(list[0]);
  check(context != NULL, "open");
  ibv_free_device_list(list);
  check(ibv_query_gid(context, 1, 1, &gid) == 0, "gid");
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void write_once(struct ibv_qp *qp, struct ibv_cq *cq, const struct ibv_mr *mr, char *buffer, char letter) {
  memset(buffer, letter, kBytes / 2);
  struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = kBytes / 2, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
      .wr = {.rdma = {.remote_addr = (uintptr_t)buffer + kBytes / 2, .rkey = mr->rkey}}}, *bad;
  check(ibv_post_send(qp, &wr, &bad) == 0, "post");
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) continue;
  check(count == 1 && wc.status == IBV_WC_SUCCESS, "completion");
  check(memcmp(buffer, buffer + kBytes / 2, kBytes / 2) == 0, "data");
}

static void *live(void *argument) {
  struct ibv_pd *pd = ibv_alloc_pd(context);
  check(pd != NULL, "PD");
  char *buffer = aligned_alloc(4096, kBytes);
  struct ibv_mr *mr = ibv_reg_mr(pd, buffer, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  check(mr != NULL && mr->lkey != 0 && mr->handle != 0, "region");
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  check(cq != NULL, "CQ");
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp *qp = ibv_create_qp(pd, &wanted), *target = ibv_create_qp(pd, &wanted);
  check(qp != NULL && target != NULL, "queue pairs");
  connect_to(qp, target);
  connect_to(target, qp);
  for (int i = 0; i < kWrites; ++i) write_once(qp, cq, mr, buffer, (char)('a' + (i + (intptr_t)argument) % 26));
  check(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(target) == 0 && ibv_destroy_cq(cq) == 0, "queues' end");
  check(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0, "memory's end");
  free(buffer);
  __atomic_fetch_add(&came_through, 1, __ATOMIC_RELAXED);
  return argument;
}

static void *come_and_go(void *argument) {
  __atomic_fetch_add(&came_through, 1, __ATOMIC_RELAXED);
  return argument;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int had_the_lock;

static void *want_the_lock(void *argument) {
  pthread_mutex_lock(&lock);
  had_the_lock = 1;
  pthread_mutex_unlock(&lock);
  return argument;
}

static int poll_with_the_lock(void) {
  open_device();
  struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  check(cq != NULL, "CQ");
  pthread_t other;
  check((errno = pthread_create(&other, NULL, want_the_lock, NULL)) == 0, "thread");
  for (int done = 0; !done;) {
    struct ibv_wc wc;
    pthread_mutex_lock(&lock);
    check(ibv_poll_cq(cq, 1, &wc) == 0, "poll");
    done = had_the_lock;
    pthread_mutex_unlock(&lock);
  }
  check(pthread_join(other, NULL) == 0, "join");
  puts("had the lock");
  return 0;
}

static double milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}
static void *sleep_so_long(void *microseconds) {
  usleep((useconds_t)(uintptr_t)microseconds);
  return microseconds;
}
static double joined;
static void *join_other(void *other) {
  check(pthread_join(*(pthread_t *)other, NULL) == 0, "join");
  joined = milliseconds();
  return other;
}

static int make_threads_when_one_ends(void) {
  enum { kMade = 40 };
  pthread_t ends, joins, made[kMade];
  const double began = milliseconds();
  check((errno = pthread_create(&ends, NULL, sleep_so_long, (void *)1000)) == 0, "thread");
  check((errno = pthread_create(&joins, NULL, join_other, &ends)) == 0, "thread");
  usleep(990);
  for (int i = 0; i < kMade; ++i) {
    check((errno = pthread_create(&made[i], NULL, sleep_so_long, (void *)100000)) == 0, "thread");
    for (const double now = milliseconds(); milliseconds() < now + 0.0005;) continue;
  }
  for (int i = 0; i < kMade; ++i) check(pthread_join(made[i], NULL) == 0, "join");
  check(pthread_join(joins, NULL) == 0, "join");
  printf("joined after %.0f ms\n", joined - began);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "join") == 0) return make_threads_when_one_ends();
  if (argc == 2 && strcmp(argv[1], "lock") == 0) return poll_with_the_lock();
  check(argc == 3 || argc == 4, "arguments");
  void *(*const what)(void *) = argc == 3 ? live : come_and_go;
  const int count = atoi(argv[1]), rounds = atoi(argv[2]);
  check(count <= kMostThreads, "arguments");
  open_device();
  for (int round = 0; round < rounds; ++round) {
    pthread_t threads[kMostThreads];
    for (intptr_t i = 0; i < count; ++i)
      check((errno = pthread_create(&threads[i], NULL, what, (void *)i)) == 0, "thread");
    for (intptr_t i = 0; i < count; ++i) {
      void *result = NULL;
      check(pthread_join(threads[i], &result) == 0 && result == (void *)i, "join");
    }
  }
  check(ibv_close_device(context) == 0, "close");
  printf("%d threads\n", came_through);
  return 0;
}
