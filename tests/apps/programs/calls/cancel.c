// SPDX-License-Identifier: Apache-2.0
/* pthread_cancel() of a thread that waits in a cancellation point: the thread ends at once, after its clean-up. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int nothing[2]; /* a pipe that stays empty */
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_t sleeper;
static pid_t child;
static mqd_t queue;
static struct ibv_context *device;
static struct ibv_comp_channel *channel;
static struct rdma_event_channel *connections;

static void by_nanosleep(void) {
  const struct timespec length = {100, 0};
  nanosleep(&length, NULL);
}
static void by_sleep(void) { sleep(100); }
static void by_pause(void) { pause(); }
static void by_read(void) {
  char byte;
  if (read(nothing[0], &byte, 1) == 1) abort();
}
static void by_poll(void) {
  struct pollfd wanted = {nothing[0], POLLIN, 0};
  poll(&wanted, 1, -1);
}
static void by_select(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(nothing[0], &set);
  select(nothing[0] + 1, &set, NULL, NULL, NULL);
}
static void by_epoll(void) {
  struct epoll_event event;
  epoll_wait(epoll_create1(0), &event, 1, -1);
}
static void by_accept(void) {
  const struct sockaddr_in address = {.sin_family = AF_INET};
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0) abort();
  accept(listener, NULL, NULL);
}
static void by_recv(void) {
  char byte;
  if (recv(socket(AF_INET, SOCK_DGRAM, 0), &byte, 1, 0) == 1) abort();
}
static void by_semaphore(void) { sem_wait(&semaphore); }
static void by_condition(void) {
  pthread_mutex_lock(&mutex);
  for (;;) pthread_cond_wait(&condition, &mutex);
}
static void by_join(void) { pthread_join(sleeper, NULL); }
static void by_wait(void) { waitpid(child, NULL, 0); }
static void by_signal(void) {
  sigset_t set;
  int signal;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigwait(&set, &signal);
}
static void by_suspension(void) {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
}
static void by_message(void) {
  struct {
    long type;
    char text[8];
  } message;
  msgrcv(msgget(IPC_PRIVATE, 0600), &message, sizeof message.text, 0, 0);
}
static void by_queue(void) {
  char message[8];
  mq_receive(queue, message, sizeof message, NULL);
}
static void by_record(void) {
  const int file = open("/tmp/cancel.lock", O_RDWR);
  struct flock record = {.l_type = F_WRLCK};
  fcntl(file, F_SETLKW, &record);
}
static void by_event(void) {
  struct ibv_cq *cq;
  void *context;
  ibv_get_cq_event(channel, &cq, &context);
}
static void by_async_event(void) {
  struct ibv_async_event event;
  ibv_get_async_event(device, &event);
}
static void by_cm_event(void) {
  struct rdma_cm_event *event;
  rdma_get_cm_event(connections, &event);
}
static const struct {
  const char *name;
  void (*wait)(void);
} ways[] = {
    {"nanosleep", by_nanosleep}, {"sleep", by_sleep},     {"pause", by_pause},
    {"read", by_read},           {"poll", by_poll},       {"select", by_select},
    {"epoll_wait", by_epoll},    {"accept", by_accept},   {"recv", by_recv},
    {"sem_wait", by_semaphore},  {"cond", by_condition},  {"join", by_join},
    {"waitpid", by_wait},        {"sigwait", by_signal},  {"sigsuspend", by_suspension},
    {"msgrcv", by_message},      {"mq", by_queue},        {"F_SETLKW", by_record},
    {"cq event", by_event},      {"async event", by_async_event},
    {"cm event", by_cm_event},
};

enum { at_once, later }; /* later: cancellation is disabled for the first 3 ms */
static struct {
  void (*wait)(void);
  int willing;
  int cleaned;
} now;

static void clean_up(void *opaque) {
  (void)opaque;
  if (now.wait == by_condition && pthread_mutex_unlock(&mutex) != 0) abort();
  now.cleaned = 1;
}
static void *wait_long(void *opaque) {
  pthread_cleanup_push(clean_up, NULL);
  if (now.willing == later) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    usleep(3000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
  }
  now.wait();
  pthread_cleanup_pop(0);
  return opaque;
}

static double milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void cancel(const char *name) {
  const double began = milliseconds();
  pthread_t thread;
  void *result;
  now.cleaned = 0;
  pthread_create(&thread, NULL, wait_long, NULL);
  usleep(1000);
  const int error = pthread_cancel(thread);
  if (pthread_join(thread, &result) != 0 || error != 0) abort();
  printf("%s %s: %s, cleaned %d, ms %.0f\n", name, now.willing == later ? "later" : "at once",
         result == PTHREAD_CANCELED ? "cancelled" : "not cancelled", now.cleaned, milliseconds() - began);
}

static void *sleep_long(void *opaque) {
  sleep(1000);
  return opaque;
}

/* A thread with cancellation disabled is not cancelled; its waits keep their length. */
static void *refuse(void *opaque) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
  struct pollfd wanted = {nothing[0], POLLIN, 0};
  if (usleep(2000) != 0 || poll(&wanted, 1, 2) != 0) abort();
  return opaque;
}

/* If the thread that a signal woke is cancelled, the other waiting thread gets the signal. */
static int goods;
static void unlock(void *opaque) { pthread_mutex_unlock(opaque); }
static void *take(void *by_semaphore) {
  if (by_semaphore != NULL) {
    while (sem_wait(&semaphore) != 0) continue;
    return "took";
  }
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, &mutex);
  while (goods == 0) pthread_cond_wait(&condition, &mutex);
  --goods;
  pthread_cleanup_pop(1);
  return "took";
}
static void give(void *by_semaphore) {
  if (by_semaphore != NULL) {
    sem_post(&semaphore);
    return;
  }
  pthread_mutex_lock(&mutex);
  ++goods;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
}
static void give_and_cancel(const char *name, void *by_semaphore) {
  pthread_t first, second;
  void *results[2];
  pthread_create(&first, NULL, take, by_semaphore);
  usleep(1000);
  pthread_create(&second, NULL, take, by_semaphore);
  usleep(1000);
  give(by_semaphore);
  pthread_cancel(first);
  pthread_join(first, &results[0]);
  if (results[0] != PTHREAD_CANCELED) give(by_semaphore);
  pthread_join(second, &results[1]);
  printf("%s: the other %s\n", name, (char *)results[1]);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct ibv_device **devices = ibv_get_device_list(NULL);
  device = ibv_open_device(devices[0]);
  channel = ibv_create_comp_channel(device);
  connections = rdma_create_event_channel();
  if (pipe(nothing) != 0 || channel == NULL || connections == NULL) return 1;
  sem_init(&semaphore, 0, 0);
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
  queue = mq_open("/cancel", O_RDONLY | O_CREAT, 0600, &attributes);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_create(&sleeper, NULL, sleep_long, NULL);
  const int file = open("/tmp/cancel.lock", O_RDWR | O_CREAT, 0600);
  child = fork();
  if (child == 0) {
    struct flock record = {.l_type = F_WRLCK};
    fcntl(file, F_SETLK, &record);
    for (;;) pause();
  }
  usleep(1000);
  for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
    now.wait = ways[i].wait;
    for (now.willing = at_once; now.willing <= later; ++now.willing) cancel(ways[i].name);
  }
  give_and_cancel("condition", NULL);
  give_and_cancel("semaphore", "");
  kill(child, SIGKILL);
  pthread_t thread;
  void *result = NULL;
  const double began = milliseconds();
  pthread_create(&thread, NULL, refuse, "whole");
  usleep(1000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  printf("unwilling: %s, ms %.0f\n", result == PTHREAD_CANCELED ? "cancelled" : (char *)result,
         milliseconds() - began);
  return 0;
}
