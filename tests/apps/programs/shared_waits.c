// SPDX-License-Identifier: Apache-2.0
// Waits that other processes or ending threads end. Each output line shows after how many milliseconds a wait ended.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec start;
static int now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}
static void begin(void) { clock_gettime(CLOCK_MONOTONIC, &start); }

// A child holds a file lock for 5 ms.
static int by_flock(int fd) { return flock(fd, LOCK_EX); }
static int by_fcntl(int fd) {
  struct flock whole = {.l_type = F_WRLCK};
  return fcntl(fd, F_SETLKW, &whole);
}
static int by_lockf(int fd) { return lockf(fd, F_LOCK, 0); }
static void file_lock(const char* name, int (*lock)(int fd)) {
  char path[] = "/tmp/lock-XXXXXX", none;
  const int ours = mkstemp(path);
  int locked[2];
  if (ours < 0 || pipe(locked) != 0) exit(1);
  begin();
  if (fork() == 0) {
    if (lock(open(path, O_RDWR)) != 0 || write(locked[1], "", 1) != 1) _exit(1);
    usleep(5000);
    _exit(0);
  }
  if (read(locked[0], &none, 1) != 1) exit(1);
  const int result = lock(ours);
  int status;
  wait(&status);
  printf("%s %d %d at %d\n", name, result, status, now_ms());
}

static void barrier_of_processes(void) {
  pthread_barrier_t* barrier = mmap(NULL, sizeof *barrier, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t shared;
  pthread_barrierattr_init(&shared);
  pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(barrier, &shared, 2);
  begin();
  if (fork() == 0) {
    usleep(3000);
    _exit(pthread_barrier_wait(barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
  }
  const int first = pthread_barrier_wait(barrier);
  int status;
  wait(&status);
  printf("barrier %d %d at %d\n", first, WEXITSTATUS(status), now_ms());
}

static pthread_mutex_t robust;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static void make_robust(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust, &attributes);
}
static void* end_with_it(void* milliseconds) {
  pthread_mutex_lock(&robust);
  pthread_cond_signal(&condition);
  usleep((useconds_t)(size_t)milliseconds * 1000);
  return NULL;
}
static void* ask_for_it(void* unused) {
  (void)unused;
  const int error = pthread_mutex_lock(&robust);
  if (error == EOWNERDEAD) usleep(1000);
  if (error != ENOTRECOVERABLE) pthread_mutex_unlock(&robust);
  return (void*)(size_t)error;
}

// The owner of a robust mutex ends while three threads wait; no thread calls pthread_mutex_consistent().
static void lost_mutex(void) {
  pthread_t owner, others[2];
  void *own, *told[2];
  make_robust();
  begin();
  pthread_create(&owner, NULL, end_with_it, (void*)4);
  usleep(1000);
  for (int i = 0; i < 2; ++i) pthread_create(&others[i], NULL, ask_for_it, NULL);
  own = ask_for_it(NULL);
  const int when = now_ms();
  for (int i = 0; i < 2; ++i) pthread_join(others[i], &told[i]);
  pthread_join(owner, NULL);
  int of_each[3] = {(int)(size_t)own, (int)(size_t)told[0], (int)(size_t)told[1]}, dead = 0, lost = 0;
  for (int i = 0; i < 3; ++i) {
    dead += of_each[i] == EOWNERDEAD;
    lost += of_each[i] == ENOTRECOVERABLE;
  }
  printf("mutex %d dead, %d lost at %d\n", dead, lost, when);
}

// The woken thread gets EOWNERDEAD from pthread_cond_wait().
static void condition_of_a_dead_owner(void) {
  pthread_t owner;
  make_robust();
  pthread_mutex_lock(&robust);
  begin();
  pthread_create(&owner, NULL, end_with_it, (void*)2);
  const int error = pthread_cond_wait(&condition, &robust);
  printf("condition %d at %d\n", error == EOWNERDEAD, now_ms());
  pthread_join(owner, NULL);
}

// The reader's clock is never behind the time in the message.
static void* write_times(void* fd) {
  for (int i = 0; i < 200; ++i) {
    struct timespec now;
    for (int look = 0; look < i % 23; ++look) clock_gettime(CLOCK_MONOTONIC, &now);
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (write((int)(size_t)fd, &now, sizeof now) != sizeof now) exit(1);
  }
  return NULL;
}
static void read_times(void) {
  int ends[2], early = 0;
  pthread_t writer;
  if (pipe(ends) != 0) exit(1);
  pthread_create(&writer, NULL, write_times, (void*)(size_t)ends[1]);
  for (int i = 0; i < 200; ++i) {
    struct timespec written, now;
    if (read(ends[0], &written, sizeof written) != sizeof written) exit(1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    early += now.tv_sec < written.tv_sec || (now.tv_sec == written.tv_sec && now.tv_nsec < written.tv_nsec);
  }
  pthread_join(writer, NULL);
  printf("read too early %d\n", early);
}

int main(void) {
  setvbuf(stdout, NULL, _IONBF, 0);  // no buffer: forked children must not print its content again
  file_lock("flock", by_flock);
  file_lock("fcntl", by_fcntl);
  file_lock("lockf", by_lockf);
  barrier_of_processes();
  lost_mutex();
  condition_of_a_dead_owner();
  read_times();
  return 0;
}
