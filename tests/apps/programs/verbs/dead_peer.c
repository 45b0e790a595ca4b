// SPDX-License-Identifier: Apache-2.0
// A peer that ends while requests arrive: dead_peer END REQUEST [SERVER]. END: how the server ends (exit, abort, kill,
// exec, or destroy: only the QP is destroyed, by the owner). REQUEST: the client's requests (write, read, atomic, send,
// or many: READs, eight at a time). The client prints the status of the last request, and whether all data that it read
// were right.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 8192, kDepth = 256, kPort = 7100 };
enum { kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

struct end { uint64_t address; uint32_t rkey, qpn; union ibv_gid gid; };

static void check(int good, const char *what) {
  if (good) return;
  printf("failed: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(9);
}

// Opens the TCP connection for the exchange of parameters. server NULL: listens.
static int meet(const char *server) {
  int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  if (server == NULL) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    check(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0, "listen");
    int peer = accept(fd, NULL, NULL);
    check(peer >= 0, "accept");
    return peer;
  }
  check(inet_pton(AF_INET, server, &at.sin_addr) == 1, "address");
  for (int tries = 0; connect(fd, (struct sockaddr *)&at, sizeof at) != 0; ++tries) {
    check(tries < 1000, "connect");
    usleep(1000);
  }
  return fd;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void end_as(const char *how, struct ibv_qp *qp) {
  if (strcmp(how, "exit") == 0) exit(0);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "exec") == 0) execl("/bin/sleep", "sleep", "0.2", NULL);
  check(ibv_destroy_qp(qp) == 0, "destroy");
  usleep(200000);
  exit(0);
}

int main(int count, char **words) {
  const char *how = words[1], *what = words[2], *server = count > 3 ? words[3] : NULL;
  struct ibv_device **list = ibv_get_device_list(NULL);
  struct ibv_context *context = ibv_open_device(list[0]);
  struct ibv_pd *pd = ibv_alloc_pd(context);
  struct ibv_cq *cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = 16, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1}};
  struct ibv_qp *qp = ibv_create_qp(pd, &wanted);
  unsigned char *memory = aligned_alloc(4096, 2 * kBytes);
  memset(memory, server == NULL ? 0x5a : 0, 2 * kBytes);
  struct ibv_mr *mr = ibv_reg_mr(pd, memory, 2 * kBytes, kAll);
  check(qp && mr, "objects");
  struct end mine = {(uintptr_t)memory, mr->rkey, qp->qp_num, {{0}}}, other;
  ibv_query_gid(context, 1, 1, &mine.gid);
  int fd = meet(server);
  check(write(fd, &mine, sizeof mine) == sizeof mine && read(fd, &other, sizeof other) == sizeof other, "exchange");
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = kAll};
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  for (int i = 0; server == NULL && i < kDepth; ++i) {
    struct ibv_sge room = {(uintptr_t)memory, 4096, mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &room, .num_sge = 1}, *bad;
    check(ibv_post_recv(qp, &receive, &bad) == 0, "receive");
  }
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = other.qpn,
      .max_dest_rd_atomic = 8, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = other.gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 8};
  check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  char ready = 1;
  check(write(fd, &ready, 1) == 1 && read(fd, &ready, 1) == 1, "ready");
  if (server == NULL) {
    usleep(1000);
    end_as(how, qp);
  }

  int reads = strcmp(what, "read") == 0, many = strcmp(what, "many") == 0, atomic = strcmp(what, "atomic") == 0;
  int sends = strcmp(what, "send") == 0, window = many ? 8 : 1, posted = 0, wrong = 0;
  long good = 0;
  double last = seconds();
  for (;;) {
    for (; posted < window; ++posted) {
      if (sends) usleep(20);
      struct ibv_sge sge = {(uintptr_t)memory, atomic ? 8 : 4096, mr->lkey};
      struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = reads || many ? IBV_WR_RDMA_READ
          : atomic ? IBV_WR_ATOMIC_FETCH_AND_ADD : sends ? IBV_WR_SEND : IBV_WR_RDMA_WRITE}, *bad;
      wr.wr.rdma.remote_addr = other.address + kBytes;
      wr.wr.rdma.rkey = other.rkey;
      if (atomic) {
        wr.wr.atomic.remote_addr = other.address + kBytes;
        wr.wr.atomic.compare_add = 0;
        wr.wr.atomic.rkey = other.rkey;
      }
      check(ibv_post_send(qp, &wr, &bad) == 0, "post");
    }
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) {
      const double ms = 1e3 * (seconds() - last);
      printf("%s after %.1f ms, %ld good, %d wrong\n", ibv_wc_status_str(wc.status), ms, good, wrong);
      return good == 0;
    }
    last = seconds();
    ++good;
    --posted;
    if (reads || many || atomic) wrong += memory[0] != 0x5a || memory[7] != 0x5a;
    memset(memory, 0, 8);
  }
}
