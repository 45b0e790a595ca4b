// SPDX-License-Identifier: Apache-2.0
/* Numbered messages over RC. The receiver checks that each message comes once, in order and complete.
 *
 * usage: numbered_messages [-g GID] [-n MESSAGES] [-s BYTES] [-p PORT] [-m MTU] [-t TIMEOUT] [SERVER]
 *
 * Without SERVER it is the receiver. The parameters of the connection are exchanged over TCP. */
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WINDOW = 32 };

struct side {
  union ibv_gid gid;
  uint32_t qpn, psn;
};

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static int meet(const char* server, const char* port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = server ? 0 : AI_PASSIVE};
  struct addrinfo* found;
  if (getaddrinfo(server, port, &hints, &found) != 0) fail("getaddrinfo");
  int fd = socket(found->ai_family, found->ai_socktype, 0);
  if (server) {
    for (int i = 0; connect(fd, found->ai_addr, found->ai_addrlen) != 0; ++i) {
      if (i == 60) fail("connect");
      close(fd);
      sleep(1);
      fd = socket(found->ai_family, found->ai_socktype, 0);
    }
    return fd;
  }
  int one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) fail("listen");
  int client = accept(fd, NULL, NULL);
  if (client < 0) fail("accept");
  close(fd);
  return client;
}

static void swap(int fd, const void* mine, void* theirs, size_t bytes) {
  if (write(fd, mine, bytes) != (ssize_t)bytes) fail("write");
  for (size_t got = 0; got < bytes;) {
    ssize_t more = read(fd, (char*)theirs + got, bytes - got);
    if (more <= 0) fail("read");
    got += (size_t)more;
  }
}

static void fill(unsigned char* at, uint64_t number, uint32_t bytes) {
  memcpy(at, &number, sizeof number);
  for (uint32_t i = sizeof number; i < bytes; ++i) at[i] = (unsigned char)(number * 31 + i);
}

/* Returns the number of a message; ends the process if the data are wrong. */
static uint64_t number_of(const unsigned char* at, uint32_t bytes) {
  uint64_t number;
  memcpy(&number, at, sizeof number);
  for (uint32_t i = sizeof number; i < bytes; ++i)
    if (at[i] != (unsigned char)(number * 31 + i)) {
      printf("message %llu: byte %u is wrong\n", (unsigned long long)number, i);
      exit(2);
    }
  return number;
}

static struct ibv_context* device;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* mr;
static unsigned char* memory;
static uint32_t size = 256, gid_index = 1, mtu = 1024;
static uint64_t count = 1000;
static uint8_t timeout = 14;

static void make_qp(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  if (!list || !list[0] || !(device = ibv_open_device(list[0]))) fail("device");
  pd = ibv_alloc_pd(device);
  cq = ibv_create_cq(device, 2 * WINDOW, NULL, NULL, 0);
  memory = malloc((size_t)WINDOW * size);
  mr = ibv_reg_mr(pd, memory, (size_t)WINDOW * size, IBV_ACCESS_LOCAL_WRITE);
  if (!pd || !cq || !mr) fail("objects");
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = WINDOW, .max_recv_wr = WINDOW, .max_send_sge = 1,
                                          .max_recv_sge = 1}};
  if (!(qp = ibv_create_qp(pd, &init))) fail("create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    fail("INIT");
}

static void connect_qp(const struct side* mine, const struct side* peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .dest_qp_num = peer->qpn, .rq_psn = peer->psn,
                             .min_rnr_timer = 12, .max_dest_rd_atomic = 1};
  attr.path_mtu = mtu == 4096 ? IBV_MTU_4096 : mtu == 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer->gid;
  attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    fail("RTR");
  struct ibv_qp_attr send = {.qp_state = IBV_QPS_RTS, .sq_psn = mine->psn, .timeout = timeout, .retry_cnt = 7,
                             .rnr_retry = 7, .max_rd_atomic = 1};
  if (ibv_modify_qp(qp, &send, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                   IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    fail("RTS");
}

static void post(uint32_t slot, int sends) {
  struct ibv_sge sge = {(uintptr_t)(memory + (size_t)slot * size), size, mr->lkey};
  struct ibv_send_wr send = {.wr_id = slot, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED}, *bad_send;
  struct ibv_recv_wr receive = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad_receive;
  if ((sends ? ibv_post_send(qp, &send, &bad_send) : ibv_post_recv(qp, &receive, &bad_receive)) != 0) fail("post");
}

static struct ibv_wc complete(void) {
  struct ibv_wc wc;
  int got;
  while ((got = ibv_poll_cq(cq, 1, &wc)) == 0) continue;
  if (got < 0) fail("poll");
  if (wc.status != IBV_WC_SUCCESS) {
    printf("completion: %s\n", ibv_wc_status_str(wc.status));
    exit(3);
  }
  return wc;
}

static void send_all(void) {
  uint64_t posted = 0;
  for (uint64_t done = 0; done < count; ++done) {
    for (; posted < count && posted - done < WINDOW; ++posted) {
      fill(memory + (posted % WINDOW) * size, posted, size);
      post((uint32_t)(posted % WINDOW), 1);
    }
    complete();
  }
  printf("%llu messages sent\n", (unsigned long long)count);
}

static void receive_all(void) {
  for (uint64_t done = 0; done < count; ++done) {
    struct ibv_wc wc = complete();
    uint64_t number = number_of(memory + wc.wr_id * size, size);
    if (done % 10000 == 9999) fprintf(stderr, "%llu\n", (unsigned long long)done + 1);
    if (number != done || wc.byte_len != size) {
      printf("message %llu came in the place of %llu\n", (unsigned long long)number, (unsigned long long)done);
      exit(2);
    }
    post((uint32_t)wc.wr_id, 0);
  }
  printf("%llu messages came, each once, in order\n", (unsigned long long)count);
}

int main(int argc, char** argv) {
  const char* port = "18600";
  for (int option; (option = getopt(argc, argv, "g:n:s:p:m:t:")) != -1;) {
    if (option == 'g') gid_index = (uint32_t)atoi(optarg);
    if (option == 'n') count = strtoull(optarg, NULL, 10);
    if (option == 's') size = (uint32_t)atoi(optarg);
    if (option == 'p') port = optarg;
    if (option == 'm') mtu = (uint32_t)atoi(optarg);
    if (option == 't') timeout = (uint8_t)atoi(optarg);
  }
  const char* server = optind < argc ? argv[optind] : NULL;
  make_qp();
  struct side mine = {.qpn = qp->qp_num, .psn = 0xfffff0}, peer;
  if (ibv_query_gid(device, 1, (int)gid_index, &mine.gid) != 0) fail("gid");
  int fd = meet(server, port);
  swap(fd, &mine, &peer, sizeof mine);
  connect_qp(&mine, &peer);
  if (!server)
    for (uint32_t slot = 0; slot < WINDOW; ++slot) post(slot, 0);
  char ready = 1, other;
  swap(fd, &ready, &other, 1);
  server ? send_all() : receive_all();
  swap(fd, &ready, &other, 1);
  close(fd);
  return 0;
}
