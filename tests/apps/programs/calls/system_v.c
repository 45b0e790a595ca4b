// SPDX-License-Identifier: Apache-2.0
// System V semaphores and message queues between processes of a host. Each output line shows a result and the time in
// milliseconds.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kKey = 0x5eed };

static struct timespec start;
static void* hole;

static int now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000);
}
static void tell(const char* what, long number) {
  printf("%s: %ld%s%s at %d\n", what, number, number < 0 ? " " : "", number < 0 ? strerrorname_np(errno) : "",
         now_ms());
  fflush(stdout);
}

static int change(int set, int which, int by, int flags) {
  struct sembuf operation = {(unsigned short)which, (short)by, (short)flags};
  return semop(set, &operation, 1);
}
static int change_within(int set, int by, int milliseconds) {
  struct sembuf operation = {0, (short)by, 0};
  const struct timespec limit = {0, milliseconds * 1000000};
  return semtimedop(set, &operation, 1, &limit);
}
static int value(int set, int which) { return semctl(set, which, GETVAL); }

static void nothing(int signal) { (void)signal; }
static void alarm_in_3_ms(void) {
  // SA_RESTART does not restart these calls
  const struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  ualarm(3000, 0);
}

static void of_semaphores(void) {
  tell("no key yet", semget(kKey, 2, 0));
  const int set = semget(kKey, 3, IPC_CREAT | IPC_EXCL | 0600);
  tell("made", set >= 0);
  tell("again", semget(kKey, 3, IPC_CREAT | IPC_EXCL | 0600));
  tell("too many", semget(kKey, 4, 0));
  tell("same", semget(kKey, 0, 0) == set);
  unsigned short values[3] = {1, 2, 3};
  tell("set all", semctl(set, 0, SETALL, values));
  memset(values, 0, sizeof values);
  tell("get all", semctl(set, 0, GETALL, values));
  tell("third", values[2]);
  tell("not now", change(set, 0, -2, IPC_NOWAIT));
  tell("in time", change_within(set, -2, 4));
  tell("no such one", change(set, 3, 1, 0));
  tell("beyond", change(set, 2, 32767, 0));
  tell("set beyond", semctl(set, 0, SETVAL, 32768));

  // Waiters are served in order, and an operation on several semaphores is atomic.
  const pid_t both = fork();
  if (both == 0) {
    struct sembuf operations[2] = {{0, -2, 0}, {1, -3, 0}};
    semop(set, operations, 2);
    tell("got both", value(set, 0) * 10 + value(set, 1));
    _exit(0);
  }
  usleep(2000);
  const pid_t zero = fork();
  if (zero == 0) {
    change(set, 0, 0, 0);
    tell("saw zero", 0);
    _exit(0);
  }
  usleep(2000);
  tell("wait for more", semctl(set, 0, GETNCNT));
  tell("wait for zero", semctl(set, 0, GETZCNT));
  change(set, 0, 1, 0);
  usleep(2000);
  tell("not the other yet", semctl(set, 1, GETNCNT));
  change(set, 1, 1, 0);
  waitpid(both, NULL, 0);
  waitpid(zero, NULL, 0);
  tell("last was the child", semctl(set, 0, GETPID) != getpid());

  // SEM_UNDO: the end of a process reverses its operations.
  semctl(set, 0, SETVAL, 1);
  const pid_t holder = fork();
  if (holder == 0) {
    change(set, 0, -1, SEM_UNDO);
    pause();
  }
  usleep(3000);
  const pid_t next = fork();
  if (next == 0) {
    change(set, 0, -1, SEM_UNDO);
    tell("got it from the dead", 0);
    _exit(0);
  }
  const pid_t killed = fork();
  if (killed == 0) change(set, 0, -5, 0);
  usleep(3000);
  tell("wait", semctl(set, 0, GETNCNT));
  kill(killed, SIGKILL);
  waitpid(killed, NULL, 0);
  tell("wait", semctl(set, 0, GETNCNT));
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  waitpid(next, NULL, 0);
  tell("given back", value(set, 0));

  alarm_in_3_ms();
  tell("interrupted", change(set, 0, -7, 0));
  const pid_t waiter = fork();
  if (waiter == 0) {
    const int result = change(set, 0, -7, 0);
    tell("removed under it", result);
    _exit(0);
  }
  usleep(2000);
  struct semid_ds told;
  tell("looked at", semctl(set, 0, IPC_STAT, &told));
  tell("semaphores", (long)told.sem_nsems);
  tell("mode", told.sem_perm.mode & 0777);
  told.sem_perm.mode = 0640;
  tell("changed", semctl(set, 0, IPC_SET, &told));
  tell("removed", semctl(set, 0, IPC_RMID));
  waitpid(waiter, NULL, 0);
  tell("no more", value(set, 0));
}

struct text {
  long type;
  char text[8192];
};
static long receive(int queue, size_t most, long type, int flags) {
  struct text got;
  const long bytes = msgrcv(queue, &got, most, type, flags);
  if (bytes < 0) return bytes;
  return got.type * 1000 + (bytes > 0 ? got.text[0] : 0);
}
static int send(int queue, long type, size_t bytes, char first, int flags) {
  static struct text sent;
  sent.type = type;
  memset(sent.text, first, sizeof sent.text);
  return msgsnd(queue, &sent, bytes, flags);
}

static void of_messages(void) {
  tell("no queue yet", msgget(kKey, 0));
  const int queue = msgget(kKey, IPC_CREAT | IPC_EXCL | 0600);
  tell("made", queue >= 0);
  tell("nothing there", receive(queue, 10, 0, IPC_NOWAIT));
  for (int i = 5; i > 0; --i) send(queue, i, (size_t)i, (char)i, 0);
  tell("first", receive(queue, 10, 0, 0));
  tell("second kind", receive(queue, 10, 2, 0));
  tell("least up to 3", receive(queue, 10, -3, 0));
  tell("not the third", receive(queue, 10, 3, MSG_EXCEPT));
  tell("too long", receive(queue, 2, 3, 0));
  tell("cut off", receive(queue, 2, 3, MSG_NOERROR));
  tell("no type", send(queue, 0, 1, 0, 0));
  tell("too long", send(queue, 1, 8193, 0, 0));

  // A receiver that waits, a receiver of another type, and a killed receiver.
  const pid_t other = fork();
  if (other == 0) {
    tell("got the seventh kind", receive(queue, 10, 7, 0));
    _exit(0);
  }
  const pid_t killed = fork();
  if (killed == 0) {
    receive(queue, 10, 8, 0);
    _exit(0);
  }
  usleep(3000);
  kill(killed, SIGKILL);
  waitpid(killed, NULL, 0);
  send(queue, 8, 1, 1, 0);
  send(queue, 7, 1, 2, 0);
  waitpid(other, NULL, 0);
  tell("the dead left it", receive(queue, 10, 8, IPC_NOWAIT));

  // A full queue blocks its writers.
  tell("one", send(queue, 1, 8192, 1, 0));
  tell("two", send(queue, 2, 8192, 2, 0));
  tell("full", send(queue, 3, 1, 3, IPC_NOWAIT));
  const pid_t writer = fork();
  if (writer == 0) {
    tell("written", send(queue, 3, 8192, 3, 0));
    _exit(0);
  }
  usleep(3000);
  struct msqid_ds told;
  tell("looked at", msgctl(queue, IPC_STAT, &told));
  tell("messages", (long)told.msg_qnum);
  tell("took", receive(queue, 8192, 0, 0));
  waitpid(writer, NULL, 0);
  tell("took", receive(queue, 8192, 0, 0));
  tell("took", receive(queue, 8192, 0, 0));

  alarm_in_3_ms();
  tell("interrupted", receive(queue, 10, 0, 0));
  const pid_t waiter = fork();
  if (waiter == 0) {
    const long result = receive(queue, 10, 0, 0);
    tell("removed under it", result);
    _exit(0);
  }
  usleep(2000);
  tell("removed", msgctl(queue, IPC_RMID, NULL));
  waitpid(waiter, NULL, 0);
  tell("no more", send(queue, 1, 1, 1, 0));
}

static void* add_later(void* set) {
  usleep(3000);
  change(*(int*)set, 0, 1, 0);
  return NULL;
}
static void misused(void) {
  int set = semget(IPC_PRIVATE, 1, 0600);
  const int queue = msgget(IPC_PRIVATE, 0600);
  tell("no set", semget(IPC_PRIVATE, 0, 0600));
  tell("no operations", semop(set, hole, 1));
  tell("none at all", semop(set, NULL, 0));
  static struct sembuf many[600];
  tell("too many", semop(set, many, 600));
  tell("nowhere", semctl(set, 0, IPC_STAT, hole));
  tell("nowhere", semctl(set, 0, GETALL, hole));
  tell("nowhere", semctl(set, 0, SETALL, hole));
  tell("no time", semtimedop(set, many, 1, hole));
  tell("no such operation", semctl(set, 0, 77));
  tell("nobody's", semop(471100, many, 1));
  tell("no message", msgsnd(queue, hole, 1, 0));
  send(queue, 1, 1, 1, 0);
  tell("no room", msgrcv(queue, hole, 1, 0, 0));
  tell("by number", syscall(SYS_semctl, set, 0, SETVAL, 5));
  const long by_number = syscall(SYS_semget, IPC_PRIVATE, 1, 0600);
  tell("by number", by_number >= 0);
  semctl((int)by_number, 0, IPC_RMID);
  tell("by number", value(set, 0));
  tell("to zero", change(set, 0, -5, 0));
  pthread_t thread;
  pthread_create(&thread, NULL, add_later, &set);
  tell("from a thread", change(set, 0, -1, 0));
  pthread_join(thread, NULL);
  semctl(set, 0, IPC_RMID);
  msgctl(queue, IPC_RMID, NULL);
}

int main(void) {
  clock_gettime(CLOCK_MONOTONIC, &start);
  hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  of_semaphores();
  of_messages();
  misused();
  return 0;
}
