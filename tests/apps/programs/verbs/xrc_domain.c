// SPDX-License-Identifier: Apache-2.0
// Two processes of a host and an XRC domain named by a file: the maker creates the receive QP, the user opens it and
// keeps it when the maker dies.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *who = "maker";

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

static struct ibv_xrcd *open_domain(struct ibv_context *context, const char *path, int flags) {
  const int fd = open(path, O_RDONLY | O_CREAT, 0600);
  check(fd >= 0, path);
  struct ibv_xrcd_init_attr wanted = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = flags};
  struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &wanted);
  const int error = errno;
  close(fd);
  errno = error;
  return xrcd;
}

static struct ibv_qp *open_receiver(struct ibv_context *context, struct ibv_xrcd *xrcd, uint32_t number) {
  struct ibv_qp_open_attr wanted = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = number, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV};
  return ibv_open_qp(context, &wanted);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp) {
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr initial;
  return ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial) == 0 ? attributes.qp_state : IBV_QPS_UNKNOWN;
}

static void user(const char *path, int from_maker) {
  who = "user";
  struct ibv_context *context = open_device();
  uint32_t number = 0;
  check(read(from_maker, &number, sizeof number) == sizeof number, "read");
  say("a domain that is to be new", error_of(open_domain(context, path, O_CREAT | O_EXCL)));
  struct ibv_xrcd *xrcd = open_domain(context, path, 0);
  say("open_xrcd", error_of(xrcd));
  say("a number that is none", error_of(open_receiver(context, xrcd, number + 1)));
  struct ibv_qp *qp = open_receiver(context, xrcd, number);
  say("open_qp", error_of(qp));
  check(qp != NULL, "open_qp");
  say("INIT", state_of(qp) == IBV_QPS_INIT ? 0 : EINVAL);
  say("close_xrcd", ibv_close_xrcd(xrcd));
  // Waits until the maker has died.
  char end;
  check(read(from_maker, &end, 1) == 0, "the maker's end");
  usleep(1000);
  say("INIT", state_of(qp) == IBV_QPS_INIT ? 0 : EINVAL);
  struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
  say("modify_qp", ibv_modify_qp(qp, &to_error, IBV_QP_STATE));
  struct ibv_async_event event;
  check(ibv_get_async_event(context, &event) == 0, "event");
  say(ibv_event_type_str(event.event_type), event.element.qp == qp ? 0 : EINVAL);
  ibv_ack_async_event(&event);
  say("destroy_qp", ibv_destroy_qp(qp));
  say("it is gone", error_of(open_receiver(context, xrcd, number)));
  say("close_xrcd", ibv_close_xrcd(xrcd));
  say("the domain, too", error_of(open_domain(context, path, 0)));
  say("close_device", ibv_close_device(context));
}

int main(int argc, char **argv) {
  (void)argc;
  const char *path = argv[1];
  int ends[2];
  check(pipe(ends) == 0, "pipe");
  const pid_t maker = fork();
  if (maker != 0) {
    close(ends[1]);
    user(path, ends[0]);
    int status = 0;
    return waitpid(maker, &status, 0) == maker ? 0 : 1;
  }
  close(ends[0]);
  struct ibv_context *context = open_device();
  struct ibv_xrcd *xrcd = open_domain(context, path, O_CREAT);
  check(xrcd != NULL, "open_xrcd");
  struct ibv_qp_init_attr_ex wanted = {
      .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
  struct ibv_qp *qp = ibv_create_qp_ex(context, &wanted);
  check(qp != NULL, "create_qp");
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  check(ibv_modify_qp(qp, &init, mask) == 0, "modify_qp");
  check(write(ends[1], &qp->qp_num, sizeof qp->qp_num) == sizeof qp->qp_num, "write");
  usleep(20000);
  _exit(0);
}
