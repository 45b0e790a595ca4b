// SPDX-License-Identifier: Apache-2.0
// A verbs program and its child: processes MODE. Prints the end of each. The queue pairs are connected to each other in
// one process.
#define _GNU_SOURCE
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

enum { kBytes = 8192, kDepth = 16 };

struct objects {
  struct ibv_context *context;
  struct ibv_pd *pd;
  struct ibv_mr *mr;
  struct ibv_cq *cq;
  struct ibv_qp *qp, *target;
  char *buffer;
};

// Handles that a process gives the other.
struct shared {
  uint32_t pd, mr;
  uint64_t buffer;
};

static const char *who = "parent";

static void check(int good, const char *what) {
  if (good) return;
  printf("%s: failed: %s: %s\n", who, what, strerror(errno));
  fflush(stdout);
  _exit(9);
}
static void say(const char *text) {
  printf("%s: %s\n", who, text);
  fflush(stdout);
}
static void say_error(const char *what, int error) {
  printf("%s: %s: %s\n", who, what, error ? strerrorname_np(error) : "ok");
  fflush(stdout);
}
static void say_end(const char *whose, int status) {
  printf("the %s %s %d\n", whose, WIFSIGNALED(status) ? "died of" : "ended with",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}
static int error_of(const void *object) { return object ? 0 : errno; }

static void open_device(struct objects *of) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  of->context = ibv_open_device(list[0]);
  check(of->context != NULL, "open");
  ibv_free_device_list(list);
}

static void connect_to(struct ibv_qp *qp, struct ibv_qp *peer) {
  union ibv_gid gid;
  check(ibv_query_gid(qp->context, 1, 1, &gid) == 0, "gid");
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer->qp_num,
      .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = 1, .hop_limit = 64}}};
  check(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0, "RTR");
  struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 3, .rnr_retry = 3, .max_rd_atomic = 1};
  check(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                      IBV_QP_MAX_QP_RD_ATOMIC) == 0, "RTS");
}

// Creates MR, CQ and QPs in the PD of `of`.
static void make_queues(struct objects *of) {
  of->buffer = aligned_alloc(4096, kBytes);
  memset(of->buffer, 0, kBytes);
  of->mr = ibv_reg_mr(of->pd, of->buffer, kBytes,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND);
  of->cq = ibv_create_cq(of->context, 2 * kDepth, NULL, NULL, 0);
  check(of->mr && of->cq, "region, CQ");
  struct ibv_qp_init_attr wanted = {.send_cq = of->cq, .recv_cq = of->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1}};
  of->qp = ibv_create_qp(of->pd, &wanted);
  of->target = ibv_create_qp(of->pd, &wanted);
  check(of->qp && of->target, "queue pairs");
  connect_to(of->qp, of->target);
  connect_to(of->target, of->qp);
}

static void make_objects(struct objects *of) {
  open_device(of);
  of->pd = ibv_alloc_pd(of->context);
  check(of->pd != NULL, "PD");
  make_queues(of);
}

static int post(struct objects *of, uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey) {
  struct ibv_sge sge = {.addr = from, .length = 64, .lkey = lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
      .wr = {.rdma = {.remote_addr = to, .rkey = rkey}}}, *bad;
  return ibv_post_send(of->qp, &wr, &bad);
}
static enum ibv_wc_status write_from(struct objects *of, uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey) {
  struct ibv_wc wc;
  check(post(of, from, lkey, to, rkey) == 0, "post");
  while (ibv_poll_cq(of->cq, 1, &wc) == 0) continue;
  return wc.status;
}

// Some WRITEs from the buffer's first half to its second, with checks.
static void traffic(struct objects *of) {
  for (int i = 0; i < 40; ++i) {
    memset(of->buffer, 'a' + i % 26, 64);
    const uint64_t at = (uintptr_t)of->buffer;
    check(write_from(of, at, of->mr->lkey, at + 4096, of->mr->rkey) == IBV_WC_SUCCESS, "write");
    check(memcmp(of->buffer, of->buffer + 4096, 64) == 0, "the bytes written");
  }
  say("traffic ok");
}

static void destroy_queues(struct objects *of) {
  say_error("destroy_qp", ibv_destroy_qp(of->qp) | ibv_destroy_qp(of->target));
  say_error("destroy_cq", ibv_destroy_cq(of->cq));
  say_error("dereg_mr", ibv_dereg_mr(of->mr));
}
static void destroy(struct objects *of) {
  destroy_queues(of);
  say_error("dealloc_pd", ibv_dealloc_pd(of->pd));
  say_error("close_device", ibv_close_device(of->context));
}

// --- Descriptors and words between the two processes, over a stream of the real machine.
static void send_shared(int to, struct shared what, int fd) {
  struct iovec part = {&what, sizeof what};
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = {{0}};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  check(sendmsg(to, &message, 0) == (ssize_t)sizeof what, "sendmsg");
}
static int receive_shared(int from, struct shared *what) {
  struct iovec part = {what, sizeof *what};
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control = {{0}};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  check(recvmsg(from, &message, 0) == (ssize_t)sizeof *what, "recvmsg");
  int fd = -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  check(header != NULL, "a descriptor");
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}
static void tell(int to) { check(write(to, "x", 1) == 1, "tell"); }
// False: the other process has ended.
static int hear(int from) {
  char byte;
  return read(from, &byte, 1) == 1;
}

static int is(const char *mode, const char *name) { return strcmp(mode, name) == 0; }

// --- fork: the child has copies of the parent's objects, and no objects of its own.
static void child_uses(struct objects *of) {
  const uint64_t at = (uintptr_t)of->buffer;
  struct ibv_wc wc;
  say_error("post_send", post(of, at, of->mr->lkey, at + 4096, of->mr->rkey));
  struct ibv_sge sge = {.addr = at, .length = 64, .lkey = of->mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  say_error("post_recv", ibv_post_recv(of->qp, &wr, &bad));
  say_error("poll_cq", ibv_poll_cq(of->cq, 1, &wc) < 0 ? errno : 0);
  struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
  say_error("modify_qp", ibv_modify_qp(of->qp, &error, IBV_QP_STATE));
  say_error("reg_mr", error_of(ibv_reg_mr(of->pd, of->buffer, 64, 0)));
  say_error("alloc_pd", error_of(ibv_alloc_pd(of->context)));
}

static void forked(const char *mode, struct objects *of) {
  struct objects own = {0};
  if (is(mode, "child-uses")) child_uses(of);
  if (is(mode, "child-opens") || is(mode, "child-opens-and-uses")) {
    make_objects(&own);
    traffic(&own);
    if (is(mode, "child-opens-and-uses")) {
      child_uses(of);
      say_error("close_device", ibv_close_device(of->context));
      traffic(&own);
    }
    destroy(&own);
  }
  if (is(mode, "child-closes")) destroy(of);
  if (is(mode, "child-exits")) exit(0);
  if (is(mode, "child-dies")) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  _exit(0);
}

static void parent_of_fork(const char *mode) {
  struct objects mine = {0};
  make_objects(&mine);
  traffic(&mine);
  const pid_t child = fork();
  if (child == 0) {
    who = "child";
    forked(mode, &mine);
  }
  traffic(&mine);
  int status = 0;
  check(waitpid(child, &status, 0) == child, "wait");
  say_end("child", status);
  traffic(&mine);
  destroy(&mine);
}

// --- Imports: the child started before the parent created its objects.
static void import(struct objects *of, struct ibv_mr **theirs, struct shared what, int fd) {
  of->context = ibv_import_device(fd);
  check(of->context != NULL, "import_device");
  of->pd = ibv_import_pd(of->context, what.pd);
  check(of->pd != NULL, "import_pd");
  *theirs = ibv_import_mr(of->pd, what.mr);
  check(*theirs != NULL, "import_mr");
}

// Uses the parent's region and the child's region with the child's queue pairs.
static void use_both(struct objects *of, const struct ibv_mr *theirs, struct shared what) {
  const uint64_t at = (uintptr_t)of->buffer;
  check(write_from(of, what.buffer, theirs->lkey, at, of->mr->rkey) == IBV_WC_SUCCESS, "from the parent's memory");
  printf("child: the parent's memory says %s\n", of->buffer);
  strcpy(of->buffer, "hello, parent");
  check(write_from(of, at, of->mr->lkey, what.buffer, theirs->rkey) == IBV_WC_SUCCESS, "to the parent's memory");
}

static void guess(struct shared what, int fd) {
  int ends[2];
  struct objects of = {0};
  check(pipe(ends) == 0, "pipe");
  say_error("import of a pipe", error_of(ibv_import_device(ends[0])));
  say_error("import of no descriptor", error_of(ibv_import_device(999)));
  open_device(&of);
  say_error("import of an event descriptor", error_of(ibv_import_device(of.context->async_fd)));
  for (uint32_t pd = 0; pd < 8; ++pd) check(!ibv_import_pd(of.context, pd) && errno == ENOENT, "a guessed PD");
  of.pd = ibv_alloc_pd(of.context);
  for (uint32_t mr = 0; mr < 8; ++mr) check(!ibv_import_mr(of.pd, mr) && errno == ENOENT, "a guessed region");
  make_queues(&of);
  // A key is of no use to a QP in another PD.
  const uint32_t lkey = what.mr << 8 | 1;
  for (uint32_t tag = 0; tag < 2; ++tag) {
    const enum ibv_wc_status status =
        write_from(&of, what.buffer, lkey + tag, (uintptr_t)of.buffer, of.mr->rkey);
    check(status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_WR_FLUSH_ERR, "a guessed key");
  }
  say("guessed nothing");
  close(fd);
}

static void importer(const char *mode, int parent) {
  struct shared what;
  struct objects of = {0};
  struct ibv_mr *theirs = NULL;
  const int fd = receive_shared(parent, &what);
  if (is(mode, "guess")) {
    guess(what, fd);
    tell(parent);
    return;
  }
  import(&of, &theirs, what, fd);
  make_queues(&of);
  use_both(&of, theirs, what);
  if (is(mode, "importer-dies")) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  if (is(mode, "owner-dies") || is(mode, "owner-ends")) {
    struct ibv_mw *window = ibv_alloc_mw(of.pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {.bind_info = {.mr = theirs, .addr = what.buffer, .length = 64}};
    struct ibv_wc wc;
    check(window && ibv_bind_mw(of.qp, window, &bind) == 0, "bind");
    while (ibv_poll_cq(of.cq, 1, &wc) == 0) continue;
    printf("child: window: %s\n", ibv_wc_status_str(wc.status));
    tell(parent);
    check(!hear(parent), "the parent's end");
    usleep(1000);
    traffic(&of);
    printf("child: the dead parent's memory: %s\n",
           ibv_wc_status_str(write_from(&of, what.buffer, theirs->lkey, (uintptr_t)of.buffer, of.mr->rkey)));
    say_error("import_mr", error_of(ibv_import_mr(of.pd, what.mr)));
    say_error("import_pd", error_of(ibv_import_pd(of.context, what.pd)));
    say_error("dealloc_mw", ibv_dealloc_mw(window));
    destroy(&of);
    return;
  }
  if (is(mode, "importer-destroys")) {
    say_error("dereg_mr of the parent's", ibv_dereg_mr(theirs));
    destroy_queues(&of);
    say_error("dealloc_pd of the parent's", ibv_dealloc_pd(of.pd));
  } else {
    ibv_unimport_mr(theirs);
    destroy_queues(&of);
    ibv_unimport_pd(of.pd);
  }
  say_error("close_device", ibv_close_device(of.context));
  tell(parent);
}

static void owner(const char *mode) {
  int ends[2];
  struct objects mine = {0};
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t child = fork();
  if (child == 0) {
    who = "child";
    close(ends[1]);
    importer(mode, ends[0]);
    exit(0);
  }
  close(ends[0]);
  make_objects(&mine);
  strcpy(mine.buffer, "hello, child");
  send_shared(ends[1], (struct shared){mine.pd->handle, mine.mr->handle, (uintptr_t)mine.buffer}, mine.context->cmd_fd);
  hear(ends[1]);
  if (is(mode, "owner-dies")) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  if (is(mode, "owner-ends")) _exit(0);
  check(waitpid(child, NULL, 0) == child, "wait");
  printf("parent: the child left %s\n", mine.buffer);
  if (!is(mode, "importer-destroys")) {
    traffic(&mine);
    destroy(&mine);
    return;
  }
  ibv_unimport_mr(mine.mr);
  say_error("destroy_qp", ibv_destroy_qp(mine.qp) | ibv_destroy_qp(mine.target));
  say_error("dealloc_pd", ibv_dealloc_pd(mine.pd));
  say_error("close_device", ibv_close_device(mine.context));
}

// The parent waits for both processes: the run ends with it.
static void watch(const char *mode) {
  int ends[2], status = 0;
  check(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    owner(mode);
    exit(0);
  }
  close(ends[1]);
  check(waitpid(child, &status, 0) == child, "wait");
  say_end("owner", status);
  check(!hear(ends[0]), "the importer's end");
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strncmp(argv[1], "child-", 6) == 0) parent_of_fork(argv[1]);
  else watch(argv[1]);
  return 0;
}
