// SPDX-License-Identifier: Apache-2.0
// A verbs program that misbehaves on request: misbehave MODE [HOW] [SERVER'S ADDRESS]. Without the address it is the
// server. MODE is the point or kind of the fault, HOW the way to die: segv, kill, exit. Prints the consequences.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kBytes = 65536, kPort = 18600, kDepth = 64 };

struct address {
  uint32_t qpn, rkey;
  uint64_t buffer;
  union ibv_gid gid;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static char *buffer;
static struct address mine, peer;
static int stream = -1;

static void check(int good, const char *what) {
  if (good) return;
  printf("failed: %s\n", what);
  exit(9);
}

static void say(const char *text) {
  printf("%s\n", text);
  fflush(stdout);
}

static void die(const char *how) {
  say("dying");
  if (strcmp(how, "segv") == 0) *(volatile int *)8 = 1;
  // The real process number, not the simulated one.
  if (strcmp(how, "kill") == 0) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  if (strcmp(how, "abort") == 0) abort();
  exit(5);
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  context = ibv_open_device(list[0]);
  check(context != NULL, "open");
}

static void make_objects(void) {
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  pd = ibv_alloc_pd(context);
  buffer = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(buffer, 0, kBytes);
  mr = ibv_reg_mr(pd, buffer, kBytes, access);
  check(pd && mr, "memory");
  cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1}};
  qp = ibv_create_qp(pd, &wanted);
  check(cq && qp, "queues");
  mine = (struct address){.qpn = qp->qp_num, .rkey = mr->rkey, .buffer = (uintptr_t)buffer};
  check(ibv_query_gid(context, 1, 1, &mine.gid) == 0, "gid");
}

static void join(const char *server) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  stream = socket(AF_INET, SOCK_STREAM, 0);
  if (server) {
    inet_pton(AF_INET, server, &at.sin_addr);
    check(connect(stream, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    return;
  }
  const int one = 1;
  setsockopt(stream, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  check(bind(stream, (struct sockaddr *)&at, sizeof at) == 0 && listen(stream, 1) == 0, "listen");
  const int listener = stream;
  stream = accept(listener, NULL, NULL);
  check(stream >= 0, "accept");
  close(listener);
}

static void exchange(void) {
  check(write(stream, &mine, sizeof mine) == (ssize_t)sizeof mine, "write");
  if (read(stream, &peer, sizeof peer) != (ssize_t)sizeof peer) {
    say("peer left before the exchange");
    exit(0);
  }
}

static void connect_qp(void) {
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer.qpn,
      .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer.gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 1};
  check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

// Barrier with the peer. False: the peer has ended.
static int meet(void) {
  char token = 'm';
  (void)!write(stream, &token, 1);
  return read(stream, &token, 1) == 1;
}

static void post_receive(void) {
  struct ibv_sge sge = {.addr = mine.buffer, .length = kBytes, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  check(ibv_post_recv(qp, &wr, &bad) == 0, "post_recv");
}

static void post(enum ibv_wr_opcode opcode, uint32_t bytes, uint32_t lkey, uint32_t rkey) {
  struct ibv_sge sge = {.addr = mine.buffer, .length = bytes, .lkey = lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode,
      .wr = {.rdma = {.remote_addr = peer.buffer, .rkey = rkey}}}, *bad;
  check(ibv_post_send(qp, &wr, &bad) == 0, "post_send");
}

static enum ibv_wc_status completion(void) {
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) == 0) continue;
  return wc.status;
}

static void print_completion(void) { printf("completion: %s\n", ibv_wc_status_str(completion())); }

// Writes until a WRITE fails because the peer has died.
static void write_until_error(void) {
  for (;;) {
    post(IBV_WR_RDMA_WRITE, 4096, mr->lkey, peer.rkey);
    const enum ibv_wc_status status = completion();
    if (status == IBV_WC_SUCCESS) continue;
    printf("completion: %s\n", ibv_wc_status_str(status));
    return;
  }
}

static void wait_for_end_of_stream(void) {
  char byte;
  say(read(stream, &byte, 1) == 0 ? "the stream ended" : "the stream broke");
}

static void print_event(void) {
  struct ibv_async_event event;
  check(ibv_get_async_event(context, &event) == 0, "event");
  printf("event: %s\n", ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
}

static int is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

static void client(const char *mode, const char *how) {
  if (is(mode, "die-mid-traffic")) {
    for (int i = 0; i < kDepth; ++i) post(IBV_WR_RDMA_WRITE, kBytes, mr->lkey, peer.rkey);
    completion();
    die(how);
  }
  if (is(mode, "die-while-peer-waits") || is(mode, "die-while-peer-polls")) die(how);
  if (is(mode, "die-while-peer-writes")) { for (int i = 0; i < 50; ++i) usleep(10); die(how); }
  if (is(mode, "bad-lkey-send")) post(IBV_WR_SEND, 64, mr->lkey + 0x100, 0);
  if (is(mode, "bad-lkey-write")) post(IBV_WR_RDMA_WRITE, 64, mr->lkey + 0x100, peer.rkey);
  if (is(mode, "bad-rkey-write")) post(IBV_WR_RDMA_WRITE, 64, mr->lkey, peer.rkey + 0x100);
  if (is(mode, "bad-rkey-read")) post(IBV_WR_RDMA_READ, 64, mr->lkey, peer.rkey + 0x100);
  if (is(mode, "munmap-write")) post(IBV_WR_RDMA_WRITE, 64, mr->lkey, peer.rkey);
  if (is(mode, "munmap-read")) post(IBV_WR_RDMA_READ, 64, mr->lkey, peer.rkey);
  if (is(mode, "munmap-local")) {
    munmap(buffer, kBytes);
    post(IBV_WR_RDMA_WRITE, 64, mr->lkey, peer.rkey);
  }
  print_completion();
}

static void server(const char *mode) {
  if (is(mode, "die-mid-traffic") || is(mode, "die-while-peer-waits")) {
    wait_for_end_of_stream();
    post(IBV_WR_RDMA_WRITE, 64, mr->lkey, peer.rkey);
    print_completion();
    return;
  }
  if (is(mode, "die-while-peer-writes")) return write_until_error();
  if (is(mode, "die-while-peer-polls")) return print_completion();
  if (strncmp(mode, "bad-rkey", 8) == 0) print_event();
  wait_for_end_of_stream();
}

static void run(const char *mode, const char *how, const char *address) {
  if (address && is(mode, "die-first")) die(how);
  open_device();
  if (address && is(mode, "die-after-open")) die(how);
  make_objects();
  if (address && is(mode, "die-before-connect")) die(how);
  join(address);
  if (address && is(mode, "die-after-connect")) die(how);
  exchange();
  connect_qp();
  post_receive();
  if (!address && strncmp(mode, "munmap-w", 8) == 0) munmap(buffer, kBytes);
  if (!address && strncmp(mode, "munmap-r", 8) == 0) munmap(buffer, kBytes);
  if (!meet()) {
    wait_for_end_of_stream();
    return;
  }
  if (address) client(mode, how);
  else server(mode);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  run(argv[1], argv[2], argc > 3 ? argv[3] : NULL);
  say("done");
  return 0;
}
