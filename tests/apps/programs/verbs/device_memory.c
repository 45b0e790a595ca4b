// SPDX-License-Identifier: Apache-2.0
// Device memory shared by two processes: `device_memory MODE` on one host, `device_memory peer ADDRESS` on another. The
// owner allocates and ends as MODE says. The importer has imported the memory before, and serves it to the peer.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 8192, kCounter = 64, kSwapped = 72, kText = 128, kAdds = 100, kDepth = 16, kTcpPort = 18700 };
enum { kAll = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
              IBV_ACCESS_REMOTE_ATOMIC };
static const uint64_t kFirst = 1000, kNext = 0x0123456789abcdef;

// Handles that the owner gives the importer.
struct shared {
  uint32_t pd, dm, mr;
};
// Parameters that the two ends of a connection exchange.
struct address {
  union ibv_gid gid;
  uint32_t qpn, rkey;
};
struct connection {
  struct ibv_cq *cq;
  struct ibv_qp *qp;
};

static const char *who = "watcher";

static void say(const char *what, int error) {
  printf("%s: %s: %s\n", who, what, error ? strerrorname_np(error) : "ok");
  fflush(stdout);
}
static void check(int good, const char *what) {
  if (good) return;
  say(what, errno);
  _exit(9);
}
static int error_of(const void *object) { return object ? 0 : errno; }

static struct ibv_context *open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  struct ibv_context *context = ibv_open_device(list[0]);
  check(context != NULL, "open");
  ibv_free_device_list(list);
  return context;
}

static void put(int fd, const void *bytes, size_t length) {
  check(write(fd, bytes, length) == (ssize_t)length, "write");
}
static void get(int fd, void *bytes, size_t length) {
  check(recv(fd, bytes, length, MSG_WAITALL) == (ssize_t)length, "recv");
}
static void tell(int fd) { put(fd, "", 1); }
static void hear(int fd) {
  char byte;
  get(fd, &byte, 1);
}
static int has_ended(int fd) {
  char byte;
  return recv(fd, &byte, 1, 0) == 0;
}

// --- A context's descriptor, and the handles of shared objects.
static void send_shared(int to, struct shared what, int fd) {
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {&what, sizeof what};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  check(sendmsg(to, &message, 0) == sizeof what, "sendmsg");
}
static int receive_shared(int from, struct shared *what) {
  int fd = -1;
  char control[CMSG_SPACE(sizeof fd)] = {0};
  struct iovec part = {what, sizeof *what};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  check(recvmsg(from, &message, 0) == sizeof *what && CMSG_FIRSTHDR(&message) != NULL, "recvmsg");
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

// --- A QP connected to the other host; a socket exchanges the parameters.
static struct connection connect_by(int fd, struct ibv_pd *pd, uint32_t rkey, struct address *peer) {
  struct connection made = {.cq = ibv_create_cq(pd->context, 2 * kDepth, NULL, NULL, 0)};
  struct ibv_qp_init_attr wanted = {.send_cq = made.cq, .recv_cq = made.cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  check(made.cq && (made.qp = ibv_create_qp(pd, &wanted)), "queues");
  struct address own = {.qpn = made.qp->qp_num, .rkey = rkey};
  check(ibv_query_gid(pd->context, 1, 1, &own.gid) == 0, "gid");
  put(fd, &own, sizeof own);
  get(fd, peer, sizeof *peer);
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
  check(ibv_modify_qp(made.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qpn,
      .max_dest_rd_atomic = kDepth, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(made.qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3,
      .max_rd_atomic = kDepth};
  check(ibv_modify_qp(made.qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
  tell(fd);
  hear(fd);
  return made;
}

// --- The peer.
static void post(const struct connection *of, enum ibv_wr_opcode opcode, struct ibv_sge sge, struct address peer,
                 uint64_t to, uint64_t operand, uint64_t swap) {
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
  if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE) {
    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = peer.rkey;
  } else {
    wr.wr.atomic.remote_addr = to;
    wr.wr.atomic.rkey = peer.rkey;
    wr.wr.atomic.compare_add = operand;
    wr.wr.atomic.swap = swap;
  }
  check(ibv_post_send(of->qp, &wr, &bad) == 0, "post");
}
static enum ibv_wc_status completion(const struct connection *of) {
  struct ibv_wc wc;
  while (ibv_poll_cq(of->cq, 1, &wc) == 0) continue;
  return wc.status;
}

static int peer(const char *host) {
  who = "peer";
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(kTcpPort)};
  inet_pton(AF_INET, host, &to.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  while (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
    close(fd);
    usleep(1000);
    fd = socket(AF_INET, SOCK_STREAM, 0);
  }
  struct ibv_pd *pd = ibv_alloc_pd(open_device());
  static char buffer[4096];
  struct ibv_mr *mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  check(mr != NULL, "reg_mr");
  struct address there;
  const struct connection its = connect_by(fd, pd, 0, &there);
  struct ibv_sge sge = {(uintptr_t)buffer, 32, mr->lkey};
  post(&its, IBV_WR_RDMA_READ, sge, there, 0, 0, 0);
  check(completion(&its) == IBV_WC_SUCCESS, "read");
  printf("peer: reads %s\n", buffer);
  sge.length = 8;
  for (int sent = 0, done = 0; done < kAdds; ++done) {
    for (; sent < kAdds && sent - done < kDepth; ++sent)
      post(&its, IBV_WR_ATOMIC_FETCH_AND_ADD, sge, there, kCounter, 3, 0);
    check(completion(&its) == IBV_WC_SUCCESS, "fetch and add");
  }
  printf("peer: the last found %lu\n", *(uint64_t *)buffer);
  for (uint64_t compare = 1; compare < 3; ++compare) {
    post(&its, IBV_WR_ATOMIC_CMP_AND_SWP, sge, there, kSwapped, compare - 1, kNext);
    check(completion(&its) == IBV_WC_SUCCESS, "compare and swap");
  }
  printf("peer: the second found %lx\n", *(uint64_t *)buffer);
  strcpy(buffer, "hello from afar");
  sge.length = 32;
  post(&its, IBV_WR_RDMA_WRITE, sge, there, kText, 0, 0);
  check(completion(&its) == IBV_WC_SUCCESS, "write");
  post(&its, IBV_WR_RDMA_READ, sge, there, kBytes - 31, 0, 0);
  printf("peer: behind its end: %s\n", ibv_wc_status_str(completion(&its)));
  tell(fd);
  check(has_ended(fd), "the importer's end");
  return 0;
}

// --- The importer.
static void show(const char *what, struct ibv_dm *dm, uint64_t at) {
  char text[32] = {0};
  check(ibv_memcpy_from_dm(text, dm, at, sizeof text) == 0, "memcpy_from_dm");
  printf("importer: %s %s\n", what, text);
}
static uint64_t word(struct ibv_dm *dm, uint64_t at) {
  uint64_t value = 0;
  check(ibv_memcpy_from_dm(&value, dm, at, sizeof value) == 0, "memcpy_from_dm");
  return value;
}

// Allocates the whole device memory, which succeeds only if no object of the device uses any.
static void try_all(struct ibv_context *context) {
  struct ibv_device_attr_ex device;
  check(ibv_query_device_ex(context, NULL, &device) == 0, "query");
  struct ibv_alloc_dm_attr all = {.length = device.max_dm_size};
  struct ibv_dm *dm = ibv_alloc_dm(context, &all);
  say("all of the device's", error_of(dm));
  if (dm) check(ibv_free_dm(dm) == 0, "free_dm");
}

static int listener(void) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(kTcpPort)};
  check(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0, "listen");
  return fd;
}

static void importer(const char *mode, int owner) {
  who = "importer";
  struct shared what;
  const int fd = receive_shared(owner, &what);
  struct ibv_context *context = ibv_import_device(fd);
  check(context != NULL, "import_device");
  struct ibv_dm *dm = ibv_import_dm(context, what.dm);
  struct ibv_pd *pd = ibv_import_pd(context, what.pd);
  check(dm && pd, "import");
  say("import_dm of none", error_of(ibv_import_dm(context, what.dm + 4096)));
  show("finds", dm, 0);
  struct ibv_mr *theirs = ibv_import_mr(pd, what.mr);
  say("import_mr", error_of(theirs));
  struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, kBytes, kAll);
  say("reg_dm_mr", error_of(mr));
  tell(owner);
  check(has_ended(owner), "the owner's end");
  usleep(1000);
  show("still finds", dm, 0);
  say("the owner's region", error_of(ibv_import_mr(pd, what.mr)));
  try_all(context);

  const int listening = listener();
  const int socket = accept(listening, NULL, NULL);
  check(socket >= 0, "accept");
  struct address there;
  const struct connection its = connect_by(socket, pd, mr->rkey, &there);
  hear(socket);
  printf("importer: counts %lu, %lx\n", word(dm, kCounter), word(dm, kSwapped));
  show("is told", dm, kText);
  close(socket);
  if (strcmp(mode, "leaves") == 0) exit(0);
  say("destroy_qp", ibv_destroy_qp(its.qp));
  say("destroy_cq", ibv_destroy_cq(its.cq));
  say("free_dm", ibv_free_dm(dm));
  say("dereg_mr", ibv_dereg_mr(mr));
  if (strcmp(mode, "unimports") == 0) {
    ibv_unimport_dm(dm);
  } else {
    say("free_dm", ibv_free_dm(dm));
    try_all(context);
  }
  say("close_device", ibv_close_device(context));
  exit(0);
}

// --- The owner.
static void owner(const char *mode) {
  who = "owner";
  int ends[2];
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  if (fork() == 0) {
    close(ends[1]);
    importer(mode, ends[0]);
  }
  close(ends[0]);
  struct ibv_context *context = open_device();
  struct ibv_pd *pd = ibv_alloc_pd(context);
  struct ibv_alloc_dm_attr wanted = {.length = kBytes};
  struct ibv_dm *dm = ibv_alloc_dm(context, &wanted);
  check(pd && dm, "alloc_dm");
  struct ibv_mr *mr = ibv_reg_dm_mr(pd, dm, 0, kBytes, kAll);
  check(mr != NULL, "reg_dm_mr");
  check(ibv_memcpy_to_dm(dm, 0, "hello from the owner\0\0\0", 24) == 0, "memcpy_to_dm");
  check(ibv_memcpy_to_dm(dm, kCounter, &kFirst, sizeof kFirst) == 0, "memcpy_to_dm");
  send_shared(ends[1], (struct shared){pd->handle, dm->handle, mr->handle}, context->cmd_fd);
  hear(ends[1]);
  say("dereg_mr", ibv_dereg_mr(mr));
  say("free_dm", ibv_free_dm(dm));
  if (strcmp(mode, "dies") == 0) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  _exit(0);
}

// The parent waits for both processes: the run ends with it.
int main(int argc, char **argv) {
  if (argc < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(argv[1], "peer") == 0) return peer(argv[2]);
  int ends[2], status = 0;
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    owner(argv[1]);
  }
  close(ends[1]);
  check(waitpid(child, &status, 0) == child, "wait");
  check(has_ended(ends[0]), "the importer's end");
  usleep(1000);
  try_all(open_device());
  return 0;
}
