// SPDX-License-Identifier: Apache-2.0
// System calls made with the syscall instruction, as Go programs and some libraries make them. The results equal those
// of the C library's functions, and structures have the kernel's own layout.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long by_instruction(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#define CALL(number, a, b, c) by_instruction(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)

static long since(const struct timespec* begin) {
  struct timespec now;
  CALL(SYS_clock_gettime, CLOCK_MONOTONIC, &now, 0);
  return (now.tv_sec - begin->tv_sec) * 1000000000L + now.tv_nsec - begin->tv_nsec;
}

static void numbers(void) {
  printf("pid %d, parent %d, thread %d\n", CALL(SYS_getpid, 0, 0, 0) == getpid(),
         CALL(SYS_getppid, 0, 0, 0) == getppid(), CALL(SYS_gettid, 0, 0, 0) == gettid());
}

static void clocks(void) {
  struct timespec by_name, by_call;
  clock_gettime(CLOCK_REALTIME, &by_name);
  CALL(SYS_clock_gettime, CLOCK_REALTIME, &by_call, 0);
  printf("wall %ld.%09ld, %ld ns later\n", by_name.tv_sec, by_name.tv_nsec, by_call.tv_nsec - by_name.tv_nsec);
  struct timespec begin, length = {5, 0};
  CALL(SYS_clock_gettime, CLOCK_MONOTONIC, &begin, 0);
  CALL(SYS_nanosleep, &length, 0, 0);
  printf("slept %ld ns\n", since(&begin));
}

static void chance(void) {
  uint64_t drawn = 0;
  printf("drew %ld bytes", CALL(SYS_getrandom, &drawn, sizeof drawn, 0));
  printf(": %016lx\n", drawn);
  const long fd = CALL(SYS_open, "/sys/class/infiniband/rnic0/node_type", O_RDONLY, 0);
  char text[64] = "";
  CALL(SYS_read, fd, text, sizeof text - 1);
  CALL(SYS_close, fd, 0, 0);
  printf("a host's file: %s", text);
  printf("errors: %ld %ld\n", CALL(SYS_close, 12345, 0, 0), CALL(SYS_open, "/none", O_RDONLY, 0));
}

static uint32_t word;
static void* waker(void* none) {
  (void)none;
  usleep(3000);
  word = 1;
  CALL(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
  return NULL;
}
static void futexes(void) {
  struct timespec begin;
  pthread_t thread;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  pthread_create(&thread, NULL, waker, NULL);
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0) CALL(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0);
  printf("woken after 3 ms: %d\n", since(&begin) / 1000000 == 3);
  pthread_join(thread, NULL);
}

static void* reader(void* fd) {
  char byte = '-';
  const long got = CALL(SYS_read, *(int*)fd, &byte, 1);
  printf("read %ld byte: %c\n", got, byte);
  return NULL;
}
static void pipes(void) {
  int ends[2];
  pthread_t thread;
  CALL(SYS_pipe2, ends, 0, 0);
  pthread_create(&thread, NULL, reader, &ends[0]);
  usleep(1000);
  CALL(SYS_write, ends[1], "x", 1);
  pthread_join(thread, NULL);
  close(ends[0]);
  close(ends[1]);
}

struct kernel_action {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*restorer)(void);
  uint64_t mask;
};
__attribute__((naked)) static void restore(void) { __asm__("mov $15, %eax\n\tsyscall"); }

static volatile int heard;
static void hear(int signal, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  heard = signal;
}
static void signals(void) {
  const struct kernel_action action = {hear, SA_SIGINFO | 0x04000000, restore, ~0ull};
  struct kernel_action now;
  by_instruction(SYS_rt_sigaction, SIGUSR1, (long)&action, 0, 8, 0, 0);
  by_instruction(SYS_rt_sigaction, SIGUSR1, 0, (long)&now, 8, 0, 0);
  printf("its action: %d\n", now.handler == hear);
  uint64_t all = ~0ull, before = 0;
  by_instruction(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, 8, 0, 0);
  CALL(SYS_tgkill, getpid(), gettid(), SIGUSR1);
  const int while_blocked = heard;
  const long pid = CALL(SYS_getpid, 0, 0, 0);  // works although all signals are blocked
  by_instruction(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, 8, 0, 0);
  printf("blocked %d, then heard %d; pid %d\n", while_blocked, heard == SIGUSR1, pid == getpid());
  static char stack[16384];
  const stack_t wanted = {stack, 0, sizeof stack};
  stack_t old = {0}, again = {0};
  const long set = CALL(SYS_sigaltstack, &wanted, &old, 0);
  CALL(SYS_sigaltstack, 0, &again, 0);
  printf("stack %ld: %d %d\n", set, old.ss_flags == SS_DISABLE, again.ss_sp == stack);
}

static void children(void) {
  fflush(stdout);
  const long child = CALL(SYS_fork, 0, 0, 0);
  if (child == 0) {
    printf("the child's pid: %d\n", CALL(SYS_getpid, 0, 0, 0) == getpid());
    fflush(stdout);
    CALL(SYS_exit_group, 7, 0, 0);
  }
  int status = 0;
  printf("its end: %d", by_instruction(SYS_wait4, child, (long)&status, 0, 0, 0, 0) == child);
  printf(", %d\n", WEXITSTATUS(status));
}

static void refused(void) {
  static char stack[65536];
  printf("a thread: %ld\n", CALL(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
                                 stack + sizeof stack, 0));
}

int main(int count, char** arguments) {
  numbers();
  clocks();
  chance();
  futexes();
  pipes();
  signals();
  children();
  if (count > 1 && strcmp(arguments[1], "thread") == 0) refused();
  return 0;
}
