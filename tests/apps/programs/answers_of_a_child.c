// SPDX-License-Identifier: Apache-2.0
// Measures the time, in ns, from an action of a process until its child has answered in a polled word of shared memory.
//   write: the child waits for bytes in a pipe;  read: for room in a pipe;  store: it spins on another word
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPipe = 4096 };
struct Words {
  volatile int request, answer;
};
static int ends[2];
static char bytes[kPipe];

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000 + now.tv_nsec;
}
static void check(int holds, const char* what) {
  if (holds) return;
  perror(what);
  _exit(1);
}

static void answer(const char* how, struct Words* words) {
  if (strcmp(how, "write") == 0) check(read(ends[0], bytes, 1) == 1, "read");
  if (strcmp(how, "read") == 0) check(write(ends[1], bytes, kPipe) == kPipe, "write");
  if (strcmp(how, "store") == 0)
    while (words->request == 0) continue;
  words->answer = 1;
  sleep(1);  // the end of a process is an action, too; delay it
  _exit(0);
}
static void act(const char* how, struct Words* words) {
  if (strcmp(how, "write") == 0) check(write(ends[1], bytes, 1) == 1, "write");
  if (strcmp(how, "read") == 0) check(read(ends[0], bytes, kPipe) == kPipe, "read");
  if (strcmp(how, "store") == 0) words->request = 1;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "write";
  struct Words* words = mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(words != MAP_FAILED, "mmap");
  check(pipe(ends) == 0, "pipe");
  check(fcntl(ends[1], F_SETPIPE_SZ, kPipe) == kPipe, "F_SETPIPE_SZ");
  if (strcmp(how, "read") == 0) check(write(ends[1], bytes, kPipe) == kPipe, "write");
  const pid_t child = fork();
  if (child == 0) answer(how, words);
  usleep(2000);  // until the child waits
  act(how, words);
  const long began = now_ns();
  while (words->answer == 0) sched_yield();
  printf("%ld\n", now_ns() - began);
  check(wait(NULL) == child, "wait");
  return 0;
}
