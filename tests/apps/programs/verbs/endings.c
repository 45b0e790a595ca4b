// SPDX-License-Identifier: Apache-2.0
// Calls that end in an unusual way: endings MODE [ARGUMENT]. Prints the result of each.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void say_error(const char *what) { printf("%s: %s\n", what, strerrorname_np(errno)); }
static void check(int good, const char *what) {
  if (good) return;
  say_error(what);
  exit(9);
}

// --- An image or script that the simulator cannot run.
static void execute(const char *path) {
  char *const arguments[] = {"image", NULL};
  const char *file = strrchr(path, '/') + 1;
  execve(path, arguments, environ);
  say_error("execve");
  execvp(file, arguments);
  say_error("execvp");
  execl(path, "image", NULL);
  say_error("execl");
  fexecve(open(path, O_RDONLY), arguments, environ);
  say_error("fexecve");
  execveat(AT_FDCWD, path, arguments, environ, 0);
  say_error("execveat");
  pid_t pid;
  errno = posix_spawn(&pid, path, NULL, NULL, arguments, environ);
  say_error("posix_spawn");
  errno = posix_spawnp(&pid, file, NULL, NULL, arguments, environ);
  say_error("posix_spawnp");
  const pid_t child = fork();
  if (child == 0) _exit(execve(path, arguments, environ) < 0 && errno == ENOEXEC ? 7 : 1);
  int status = 0;
  check(waitpid(child, &status, 0) == child, "waitpid");
  printf("a child: %d\n", WEXITSTATUS(status));
  // Errors of the system itself stay as they are.
  execve("/no/such", arguments, environ);
  say_error("no such file");
  execve("/etc/passwd", arguments, environ);
  say_error("no program");
}

// --- Children that do not attach.
static void die_before_attaching(void) { syscall(SYS_exit_group, 7); }
static void stay_away(void) {
  for (;;) syscall(SYS_pause);
}
static void fork_with(void (*in_child)(void)) {
  pthread_atfork(NULL, NULL, in_child);
  const pid_t child = fork();
  int status = 0;
  const pid_t reaped = waitpid(child, &status, 0);
  printf("the child %s with %d\n", reaped == child ? "ended" : "was lost", WEXITSTATUS(status));
}
static void spawn_what_cannot_be_loaded(const char *path) {
  char *const arguments[] = {"image", NULL};
  pid_t child;
  int status = 0;
  check(posix_spawn(&child, path, NULL, NULL, arguments, environ) == 0, "posix_spawn");
  check(wait(&status) == child, "wait");
  printf("the child ended with %d\n", WEXITSTATUS(status));
}

// Every child is kept until its parent waits for it.
static void many_children(int count) {
  pid_t *children = calloc((size_t)count, sizeof *children);
  for (int i = 0; i < count; ++i) {
    children[i] = fork();
    check(children[i] >= 0, "fork");
    if (children[i] == 0) _exit(i % 100);
  }
  int known = 0, right = 0;
  for (int i = 0; i < count; ++i) known += kill(children[i], 0) == 0;
  for (int i = 0; i < count; ++i) {
    int status = 0;
    right += waitpid(children[i], &status, 0) == children[i] && WEXITSTATUS(status) == i % 100;
  }
  printf("%d known, %d waited for\n", known, right);
}

static void pipe_to_a_shell(void) {
  char line[64] = "";
  FILE *in = popen("sleep 1; echo from the shell; exit 3", "r");
  // The C library fills its buffers with reads in the real kernel.
  check(in != NULL && read(fileno(in), line, sizeof line - 1) > 0, "popen");
  printf("%s", line);
  FILE *out = popen("cat; exit 4", "w");
  check(out != NULL && fputs("to the shell\n", out) >= 0, "popen");
  const int first = pclose(in), second = pclose(out);
  printf("they ended with %d and %d\n", WEXITSTATUS(first), WEXITSTATUS(second));
}

// --- Empty reads and writes on a stream.
static int connected(const char *server) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(18700)};
  const int stream = socket(AF_INET, SOCK_STREAM, 0);
  if (server) {
    inet_pton(AF_INET, server, &at.sin_addr);
    check(connect(stream, (struct sockaddr *)&at, sizeof at) == 0, "connect");
    return stream;
  }
  check(bind(stream, (struct sockaddr *)&at, sizeof at) == 0 && listen(stream, 1) == 0, "listen");
  return accept(stream, NULL, NULL);
}
static void nothing(const char *server) {
  const int stream = connected(server);
  char byte = 'x';
  struct iovec none[2] = {{&byte, 0}, {&byte, 0}};
  struct msghdr message = {.msg_iov = none, .msg_iovlen = 2};
  if (server) {
    usleep(1000);
    printf("write %zd, writev %zd, send %zd\n", write(stream, &byte, 0), writev(stream, none, 2),
           send(stream, &byte, 0, 0));
    check(write(stream, &byte, 1) == 1, "write");
    return;
  }
  printf("read %zd, readv %zd\n", read(stream, &byte, 0), readv(stream, none, 2));
  // As on Linux, these calls wait for data and leave the data in the socket.
  printf("recv %zd, recvfrom %zd, recvmsg %zd, all %zd\n", recv(stream, &byte, 0, 0),
         recvfrom(stream, &byte, 0, 0, NULL, NULL), recvmsg(stream, &message, 0), recv(stream, &byte, 0, MSG_WAITALL));
  printf("then %zd\n", read(stream, &byte, 1));
}

// --- Repeated waits.
static void tick(int milliseconds) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(18701)};
  struct pollfd waits = {socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0};
  check(bind(waits.fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(waits.fd, 1) == 0, "listen");
  for (;;) poll(&waits, 1, milliseconds);
}

static struct ibv_context *opened(void) {
  struct ibv_device **list = ibv_get_device_list(NULL);
  check(list && list[0], "no device");
  struct ibv_context *context = ibv_open_device(list[0]);
  check(context != NULL, "open");
  return context;
}

// --- A program that waits for ever, and a program that works for ever. Both have printed a line one second after the
// start, and the first then sleeps.
static void wait_for_ever(void) {
  printf("waits\n");
  for (;;) pause();
}
static void work_for_ever(void) {
  struct ibv_context *context = opened();
  for (int round = 0;; ++round) {
    struct ibv_port_attr port;
    check(ibv_query_port(context, 1, &port) == 0, "query");
    if (round == 100) printf("works\n");
    usleep(10000);
  }
}

// --- Descriptors.
static void open_channels(int count) {
  struct ibv_context *context = opened();
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  printf("limit %lu\n", (unsigned long)limit.rlim_cur);
  int i = 0;
  while (i < count && ibv_create_comp_channel(context)) ++i;
  if (i < count) say_error("channels");
  printf("%s\n", i == count ? "all channels" : "some channels");
  sleep(2);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  const char *mode = argv[1], *argument = argc > 2 ? argv[2] : NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(mode, "execute") == 0) execute(argument);
  if (strcmp(mode, "child-dies") == 0) fork_with(die_before_attaching);
  if (strcmp(mode, "child-stays-away") == 0) fork_with(stay_away);
  if (strcmp(mode, "child-cannot-be-loaded") == 0) spawn_what_cannot_be_loaded(argument);
  if (strcmp(mode, "children") == 0) many_children(atoi(argument));
  if (strcmp(mode, "popen") == 0) pipe_to_a_shell();
  if (strcmp(mode, "nothing") == 0) nothing(argument);
  if (strcmp(mode, "tick") == 0) tick(atoi(argument));
  if (strcmp(mode, "waits") == 0) wait_for_ever();
  if (strcmp(mode, "works") == 0) work_for_ever();
  if (strcmp(mode, "channels") == 0) open_channels(atoi(argument));
  return 0;
}
