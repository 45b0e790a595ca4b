// SPDX-License-Identifier: Apache-2.0
/* The simulator's descriptors in a process: for the connection, and for the libraries of the next image. Whatever a
 * program does to all of its descriptors, its children stay on the host. The mode selects the operation. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLibraries = 900, kSimulator = 1000, kMost = 1024 };
static char *const child[] = {"sh", "-c", "sleep 1; hostname", NULL};

static void each(void (*change)(int fd)) {
  for (int fd = 3; fd < kMost; ++fd) change(fd);
}
static void by_fcntl(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }
static void by_ioctl(int fd) { ioctl(fd, FIOCLEX); }
static void by_close(int fd) { close(fd); }

static void spawn(const posix_spawn_file_actions_t *actions) {
  pid_t pid;
  const int error = posix_spawn(&pid, "/bin/sh", actions, NULL, child, environ);
  if (error != 0) printf("posix_spawn: %s\n", strerror(error));
}

static void run(const char *mode) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (strcmp(mode, "range") == 0) close_range(3, ~0u, 0);
  if (strcmp(mode, "range_at_exec") == 0) close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
  if (strcmp(mode, "close") == 0) each(by_close);
  if (strcmp(mode, "fcntl") == 0) each(by_fcntl);
  if (strcmp(mode, "ioctl") == 0) each(by_ioctl);
  if (strcmp(mode, "spawn_closefrom") == 0) posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (strcmp(mode, "spawn_closefrom_few") == 0) {
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  }
  if (strcmp(mode, "spawn_close") == 0)
    for (int fd = 3; fd < kMost; ++fd) posix_spawn_file_actions_addclose(&actions, fd);
  if (strncmp(mode, "spawn", 5) == 0) {
    spawn(&actions);
  } else if (fork() == 0) {
    execv("/bin/sh", child);
    _exit(1);
  }
  wait(NULL);
}

/* Calls on such a descriptor answer as if it were not open. */
static void ask(int fd) {
  const int answers[] = {dup2(fd, 50), dup2(1, fd), dup3(1, fd, O_CLOEXEC), fcntl(fd, F_GETFD), close(fd),
                         (int)write(fd, "x", 1), (int)read(fd, &(char){0}, 1), shutdown(fd, SHUT_RDWR)};
  printf("%d:", fd);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; ++i) printf(" %d", answers[i]);
  printf(", %s\n", strerrorname_np(errno));
}

int main(int count, char **arguments) {
  if (count > 1) {
    run(arguments[1]);
  } else {
    ask(kLibraries);
    ask(kSimulator);
  }
  return 0;
}
