// SPDX-License-Identifier: Apache-2.0
// Ends of threads and processes, as others see them, and shared locks: ends HOW. Prints events and their times.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t told;
static volatile pid_t told_of;
static volatile int told_status;
static double told_at;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}
static double begun;
static double since(void) { return now() - begun; }

static void hear(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)context;
  ++told;
  told_of = info->si_pid;
  told_status = info->si_status;
  told_at = since();
}
static void reap_all(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) ++told;
}

static void listen_with(int flags) {
  struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO | flags};
  sigaction(SIGCHLD, &action, NULL);
}

static pid_t child_of(int milliseconds, int status) {
  const pid_t child = fork();
  if (child != 0) return child;
  usleep(milliseconds * 1000);
  _exit(status);
}

// SIGCHLD ends a sleep; with SA_RESTART a restartable wait continues.
static void sleeps(void) {
  listen_with(SA_RESTART);
  const pid_t first = child_of(5, 3);
  struct timespec second = {1, 0};
  const int error = nanosleep(&second, &second) < 0 ? errno : 0;
  printf("sleep %s at %.0f ms, told of %d with %d at %.0f ms\n", error == EINTR ? "EINTR" : "whole", since(),
         told_of == first, told_status, told_at);
  const pid_t late = child_of(20, 0), early = child_of(10, 4);
  int status;
  const pid_t waited = waitpid(late, &status, 0);
  printf("late %d at %.0f ms, told %d times, ", waited == late, since(), told);
  printf("early %d\n", waitpid(early, &status, 0) == early && WEXITSTATUS(status) == 4);
}

// One child ends before its parent calls usleep().
static void ends_at_once(void) {
  listen_with(0);
  child_of(3, 0);
  child_of(0, 0);
  for (int i = 0; i < 2; ++i) {
    const int error = usleep(900000) < 0 ? errno : 0;
    printf("%s at %.0f ms, ", error == EINTR ? "EINTR" : "whole", since());
  }
  printf("told %d times\n", told);
}

// The handler runs when the child can be waited for.
static void waits(void) {
  signal(SIGCHLD, reap_all);
  child_of(5, 0);
  int status;
  const pid_t waited = wait(&status);
  printf("wait got one %d at %.0f ms, its handler %d\n", waited > 0, since(), told);
  for (int i = 0; i < 3; ++i) child_of(5 + i, 0);
  while (told < 3) pause();
  printf("the handler got %d by %.0f ms, then %s\n", told, since(),
         wait(&status) < 0 && errno == ECHILD ? "none was left" : "one was left");
}

static void blocked(void) {
  listen_with(0);
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, &before);
  child_of(1, 0);
  usleep(10000);
  const int early = told;
  sigprocmask(SIG_SETMASK, &before, NULL);
  printf("%d while blocked, then %d at %.0f ms\n", early, told, told_at);
  sigprocmask(SIG_BLOCK, &set, NULL);
  child_of(1, 0);
  struct timespec second = {1, 0};
  int error = ppoll(NULL, 0, &second, &before) < 0 ? errno : 0;
  printf("%s at %.0f ms, ", error == EINTR ? "EINTR" : "whole", since());
  child_of(1, 0);
  usleep(5000);
  error = sigsuspend(&before) < 0 ? errno : 0;
  printf("%s at %.0f ms, ", error == EINTR ? "EINTR" : "whole", since());
  child_of(1, 0);
  sigsuspend(&before);
  printf("told %d by %.0f ms\n", told, since());
  sigprocmask(SIG_SETMASK, &before, NULL);
  const int said = system("exit 7");
  printf("system %d, told %d\n", WEXITSTATUS(said), told);
  signal(SIGCHLD, SIG_DFL);
  child_of(1, 0);
  printf("undisturbed: %d\n", usleep(5000));
}

// A mutex and a semaphore in shared memory of two processes.
static void shares(void) {
  struct {
    pthread_mutex_t mutex;
    sem_t semaphore;
  } *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &attributes);
  sem_init(&shared->semaphore, 1, 0);
  if (fork() == 0) {
    pthread_mutex_lock(&shared->mutex);
    sem_post(&shared->semaphore);
    usleep(7000);
    pthread_mutex_unlock(&shared->mutex);
    _exit(0);
  }
  sem_wait(&shared->semaphore);
  printf("posted by %.0f ms, ", since());
  pthread_mutex_lock(&shared->mutex);
  printf("unlocked by %.0f ms\n", since());
  wait(NULL);
}

// The first thread may end before the others.
static pthread_key_t key;
static void leave(void *name) { printf("%s left at %.0f ms\n", (const char *)name, since()); }
static void *stay(void *first) {
  pthread_setspecific(key, "other");
  pthread_join(*(pthread_t *)first, NULL);
  printf("joined at %.0f ms\n", since());
  usleep(5000);
  return NULL;
}
static void leaves(void) {
  static pthread_t first, other;
  first = pthread_self();
  pthread_key_create(&key, leave);
  pthread_setspecific(key, "first");
  pthread_create(&other, NULL, stay, &first);
  usleep(2000);
  printf("tryjoin %d\n", pthread_tryjoin_np(other, NULL) == EBUSY);
  pthread_exit(NULL);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  setvbuf(stdout, NULL, _IONBF, 0);
  begun = now();
  if (strcmp(how, "sleeps") == 0) sleeps();
  if (strcmp(how, "ends_at_once") == 0) ends_at_once();
  if (strcmp(how, "waits") == 0) waits();
  if (strcmp(how, "blocked") == 0) blocked();
  if (strcmp(how, "shares") == 0) shares();
  if (strcmp(how, "leaves") == 0) leaves();
  return 0;
}
