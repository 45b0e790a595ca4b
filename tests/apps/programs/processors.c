// SPDX-License-Identifier: Apache-2.0
/* Processors that a program may use, as calls report them: the set that the program requested, wherever its threads
 * really run. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t all, one;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int ball;

/* Two threads alternate. The simulator notices, and runs all threads on one processor. */
static void *play(void *opaque) {
  const int side = opaque != NULL;
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < 400; ++i) {
    while (ball % 2 != side) pthread_cond_wait(&moved, &mutex);
    ++ball;
    pthread_cond_signal(&moved);
  }
  pthread_mutex_unlock(&mutex);
  return opaque;
}

static cpu_set_t of_caller(void) {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return set;
}
static void *tell(void *set) {
  *(cpu_set_t *)set = of_caller();
  return NULL;
}
static int told_in_thread(const pthread_attr_t *attributes, const cpu_set_t *expected) {
  cpu_set_t set;
  pthread_t thread;
  pthread_create(&thread, attributes, tell, &set);
  pthread_join(thread, NULL);
  return CPU_EQUAL(&set, expected);
}

/* "Cpus_allowed:\t00000003": the first 32 processors stand behind the last comma. */
static int told_by_status(const cpu_set_t *expected) {
  static const char label[] = "Cpus_allowed:";
  char line[512];
  unsigned long low = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, label, strlen(label)) != 0) continue;
    const char *comma = strrchr(line, ',');
    sscanf(comma != NULL ? comma + 1 : line + strlen(label), "%lx", &low);
  }
  fclose(file);
  return low == (expected->__bits[0] & 0xffffffff);
}

/* CPUID's number of the executing processor: unique, and the same at each visit. */
static int each_is_itself(void) {
  unsigned numbers[CPU_SETSIZE] = {0};
  for (int visit = 0; visit < 20; ++visit) {
    for (int n = 0; n < CPU_SETSIZE; ++n) {
      if (!CPU_ISSET(n, &all)) continue;
      cpu_set_t there = {0};
      CPU_SET(n, &there);
      sched_setaffinity(0, sizeof there, &there);
      unsigned a, b, c, d;
      __cpuid_count(1, 0, a, b, c, d);
      const unsigned number = (b >> 24) + 1;
      if (visit != 0 && numbers[n] != number) return 0;
      for (int other = 0; other < n; ++other)
        if (numbers[other] == number) return 0;
      numbers[n] = number;
    }
  }
  return 1;
}

int main(int count, char **arguments) {
  if (count > 1) {
    one = of_caller();
    printf("executed with %d\n", CPU_COUNT(&one));
    return 0;
  }
  all = of_caller();
  for (int n = 0; CPU_COUNT(&one) == 0; ++n)
    if (CPU_ISSET(n, &all)) CPU_SET(n, &one);

  pthread_t other;
  pthread_create(&other, NULL, play, "");
  play(NULL);
  pthread_join(other, NULL);
  cpu_set_t now = of_caller(), of_self;
  pthread_getaffinity_np(pthread_self(), sizeof of_self, &of_self);
  printf("after %d moves the same %d %d %d\n", ball, CPU_EQUAL(&now, &all), CPU_EQUAL(&of_self, &all),
         told_by_status(&all));

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
  printf("threads have all %d, their own %d\n", told_in_thread(NULL, &all), told_in_thread(&attributes, &one));

  printf("set %d", pthread_setaffinity_np(pthread_self(), sizeof one, &one));
  now = of_caller();
  printf(", told %d %d, inherited %d\n", CPU_EQUAL(&now, &one), told_by_status(&one), told_in_thread(NULL, &one));
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", arguments[0], "executed", NULL);
    return 1;
  }
  waitpid(child, NULL, 0);

  cpu_set_t none = {0};
  const int bad_set = sched_setaffinity(0, sizeof none, &none) == -1 && errno == EINVAL;
  const int bad_size = sched_getaffinity(0, 4, &none) == -1 && errno == EINVAL;
  const int no_set = syscall(SYS_sched_setaffinity, 0, sizeof all, NULL) == -1 && errno == EFAULT;
  const int no_room = syscall(SYS_sched_getaffinity, 0, sizeof all, NULL) == -1 && errno == EFAULT;
  /* Null in a variable: <pthread.h> declares the sets as never null. */
  cpu_set_t *volatile null = NULL;
  const int no_pthread_set = pthread_setaffinity_np(pthread_self(), sizeof all, null) == EFAULT;
  const int no_pthread_room = pthread_getaffinity_np(pthread_self(), sizeof all, null) == EFAULT;
  printf("refused %d %d %d %d %d %d, bytes %d\n", bad_set, bad_size, no_set, no_room, no_pthread_set, no_pthread_room,
         (int)syscall(SYS_sched_getaffinity, 0, sizeof all, &now) % 8);
  printf("each processor is itself %d\n", each_is_itself());
  printf("all again %d\n", sched_setaffinity(getpid(), sizeof all, &all) == 0 && told_in_thread(NULL, &all));
}
