// SPDX-License-Identifier: Apache-2.0
// Waits for the events of a completion channel while signals, threads and a child interfere. A flushed receive makes an
// event.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;

static void check(int good, const char *what) {
  if (good) return;
  printf("failed: %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(9);
}

static void open_device(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  struct ibv_context *context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
  check(pd && (channel = ibv_create_comp_channel(context)) && (cq = ibv_create_cq(context, 4, NULL, channel, 0)),
        "objects");
  struct ibv_qp_init_attr wanted = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  check((qp = ibv_create_qp(pd, &wanted)) != NULL, "QP");
}

static void make_event(void) {
  struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, error = {.qp_state = IBV_QPS_ERR};
  struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  struct ibv_recv_wr receive = {.num_sge = 0}, *bad;
  struct ibv_wc completions[4];
  check(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == 0 && ibv_poll_cq(cq, 4, completions) >= 0 &&
        ibv_req_notify_cq(cq, 0) == 0, "RESET");
  check(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  check(ibv_post_recv(qp, &receive, &bad) == 0 && ibv_modify_qp(qp, &error, IBV_QP_STATE) == 0, "ERR");
}

// Returns 0 or errno.
static int take_event(void) {
  struct ibv_cq *of;
  void *its_context;
  if (ibv_get_cq_event(channel, &of, &its_context) != 0) return errno;
  check(of == cq, "another CQ's");
  ibv_ack_cq_events(of, 1);
  return 0;
}

static void only_tell(int signal) { (void)signal; }
// The event arrives while the handler sleeps and so has returned its turn.
static void make_event_and_sleep(int signal) {
  (void)signal;
  make_event();
  usleep(100);
}

static void interrupt_later(void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  struct itimerval soon = {.it_value = {.tv_usec = 100}};
  check(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0, "alarm");
}

static void *take_one(void *taken) {
  check(take_event() == 0, "a thread's event");
  ++*(int *)taken;
  return NULL;
}

static void of_two_threads(void) {
  pthread_t threads[2];
  volatile int taken = 0;
  for (int i = 0; i < 2; ++i) check(pthread_create(&threads[i], NULL, take_one, (void *)&taken) == 0, "thread");
  usleep(100);
  make_event();
  usleep(100);
  printf("after one event %d of two threads went on\n", taken);
  make_event();
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("after another %d\n", taken);
}

static void of_a_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(take_event() == 0 ? 7 : 8);
  usleep(100);
  make_event();
  int status;
  check(waitpid(child, &status, 0) == child, "child");
  printf("a child that inherited the channel took %s\n", WEXITSTATUS(status) == 7 ? "it" : "none");
}

int main(void) {
  open_device();
  interrupt_later(only_tell, 0);
  printf("interrupted: %s\n", strerror(take_event()));
  interrupt_later(make_event_and_sleep, 0);
  printf("interrupted by what makes the event: %s\n", strerror(take_event()));
  printf("then: %s\n", strerror(take_event()));
  interrupt_later(make_event_and_sleep, SA_RESTART);
  printf("the same, restarted: %s\n", strerror(take_event()));
  of_two_threads();
  of_a_child();

  struct pollfd readable = {.fd = channel->fd, .events = POLLIN};
  check(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0, "O_NONBLOCK");
  printf("not blocking: %s", strerror(take_event()));
  make_event();
  printf(", polled: %d", poll(&readable, 1, -1));
  printf(", %s", strerror(take_event()));
  printf(", %s\n", strerror(take_event()));
  return 0;
}
