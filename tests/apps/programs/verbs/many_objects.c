// SPDX-License-Identifier: Apache-2.0
// Very many objects in one process: created, connected to another host's, used, and destroyed.
//
//   many_objects QPS MRS CQS [SERVER]       QPS a multiple of 10
//
// Prints one value per line: the time to create a tenth of the queue pairs, in nanoseconds (ten lines), and `rest` with
// the bytes of simulator memory per queue pair after all were used. Exit status 2: an error.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kPort = 18999, kMessage = 64, kBatch = 100 };

struct address {
  uint32_t qpn;
  uint32_t rkey;
  uint64_t buffer;
  union ibv_gid gid;
};

static int qps, mrs, cqs;
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq **cq;
static struct ibv_qp **qp;
static struct ibv_mr **mr;
static char *buffer;
static int peer;

static void check(int right, const char *what) {
  if (right) return;
  printf("wrong: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(2);
}

static long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Reads a number from /proc/PID/status, in the file's unit.
static long status_of(const char *pid, const char *key) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%s/status", pid);
  FILE *file = fopen(path, "r");
  check(file != NULL, path);
  long value = -1;
  while (value < 0 && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) value = atol(line + strlen(key));
  fclose(file);
  return value;
}

// Memory of the simulator, in bytes. The simulator is this process's parent.
static long simulator_bytes(void) {
  char pid[32];
  snprintf(pid, sizeof pid, "%ld", status_of("self", "PPid:"));
  return status_of(pid, "RssAnon:") * 1024;
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list != NULL && list[0] != NULL, "device");
  context = ibv_open_device(list[0]);
  check(context != NULL, "open");
  ibv_free_device_list(list);
  pd = ibv_alloc_pd(context);
  check(pd != NULL, "pd");
  buffer = aligned_alloc(4096, 1 << 20);
  check(buffer != NULL, "memory");
  memset(buffer, 0, 1 << 20);
}

static void make_regions_and_queues(void) {
  mr = calloc(mrs, sizeof *mr);
  for (int i = 0; i < mrs; ++i) {
    mr[i] = ibv_reg_mr(pd, buffer + i * 64 % (1 << 20), kMessage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    check(mr[i] != NULL, "mr");
  }
  cq = calloc(cqs, sizeof *cq);
  for (int i = 0; i < cqs; ++i) check((cq[i] = ibv_create_cq(context, 16, NULL, NULL, 0)) != NULL, "cq");
}

static void make_qps(void) {
  qp = calloc(qps, sizeof *qp);
  long begin = now();
  for (int i = 0; i < qps; ++i) {
    struct ibv_qp_init_attr wanted = {.send_cq = cq[i % cqs], .recv_cq = cq[i % cqs], .qp_type = IBV_QPT_RC};
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = 1;
    wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
    wanted.sq_sig_all = 1;
    check((qp[i] = ibv_create_qp(pd, &wanted)) != NULL, "qp");
    if ((i + 1) % (qps / 10) != 0) continue;
    printf("%ld\n", now() - begin);
    begin = now();
  }
}

static void exchange(void *mine, void *theirs, size_t bytes) {
  check(write(peer, mine, bytes) == (ssize_t)bytes, "write");
  check(recv(peer, theirs, bytes, MSG_WAITALL) == (ssize_t)bytes, "read");
}

static void meet_peer(const char *server) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  int one = socket(AF_INET, SOCK_STREAM, 0);
  if (server == NULL) {
    address.sin_addr.s_addr = INADDR_ANY;
    check(bind(one, (struct sockaddr *)&address, sizeof address) == 0 && listen(one, 1) == 0, "listen");
    check((peer = accept(one, NULL, NULL)) >= 0, "accept");
    return;
  }
  struct hostent *host = gethostbyname(server);
  check(host != NULL, "host");
  memcpy(&address.sin_addr, host->h_addr_list[0], 4);
  for (int tries = 0; connect(one, (struct sockaddr *)&address, sizeof address) != 0; ++tries) {
    check(tries < 100, "connect");
    usleep(10000);
  }
  peer = one;
}

static void connect_qp(int i, const struct address *remote) {
  struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  check(ibv_modify_qp(qp[i], &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = IBV_MTU_1024;
  to.dest_qp_num = remote->qpn;
  to.ah_attr.is_global = 1;
  to.ah_attr.port_num = 1;
  to.ah_attr.grh.dgid = remote->gid;
  to.ah_attr.grh.sgid_index = 1;
  check(ibv_modify_qp(qp[i], &to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  to.qp_state = IBV_QPS_RTS;
  to.timeout = 14;
  to.retry_cnt = to.rnr_retry = 7;
  check(ibv_modify_qp(qp[i], &to, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

static void completion_of(int i) {
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq[i % cqs], 1, &wc)) == 0) {
  }
  check(count == 1 && wc.status == IBV_WC_SUCCESS && wc.qp_num == qp[i]->qp_num, "completion");
}

// A message in each direction on the queue pair, from and to its own region.
static void use_qp(int i, const struct address *remote) {
  struct ibv_sge sge = {(uintptr_t)mr[i % mrs]->addr, kMessage, mr[i % mrs]->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
  wr.wr.rdma.remote_addr = remote->buffer;
  wr.wr.rdma.rkey = remote->rkey;
  check(ibv_post_send(qp[i], &wr, &bad) == 0, "post");
  completion_of(i);
}

int main(int count, char **words) {
  check(count >= 4, "usage: many_objects QPS MRS CQS [SERVER]");
  qps = atoi(words[1]);
  mrs = atoi(words[2]);
  cqs = atoi(words[3]);
  open_device();
  meet_peer(words[4]);
  make_regions_and_queues();
  const long before = simulator_bytes();
  make_qps();
  struct address mine[kBatch], theirs[kBatch];
  for (int first = 0; first < qps; first += kBatch) {
    for (int i = 0; i < kBatch; ++i) {
      mine[i].qpn = qp[first + i]->qp_num;
      mine[i].rkey = mr[(first + i) % mrs]->rkey;
      mine[i].buffer = (uintptr_t)mr[(first + i) % mrs]->addr;
      check(ibv_query_gid(context, 1, 1, &mine[i].gid) == 0, "gid");
    }
    exchange(mine, theirs, sizeof mine);
    for (int i = 0; i < kBatch; ++i) connect_qp(first + i, &theirs[i]);
    char ready = 1;
    exchange(&ready, &ready, 1);
    for (int i = 0; i < kBatch; ++i) use_qp(first + i, &theirs[i]);
  }
  char done = 1;
  exchange(&done, &done, 1);
  // The QPs of both hosts are included.
  printf("rest %ld\n", (simulator_bytes() - before) / (2 * qps));
  exchange(&done, &done, 1);
  for (int i = 0; i < qps; ++i) check(ibv_destroy_qp(qp[i]) == 0, "destroy qp");
  for (int i = 0; i < cqs; ++i) check(ibv_destroy_cq(cq[i]) == 0, "destroy cq");
  for (int i = 0; i < mrs; ++i) check(ibv_dereg_mr(mr[i]) == 0, "dereg");
  check(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0, "close");
  return 0;
}
