// SPDX-License-Identifier: Apache-2.0
/* One file of a host, reached by every spelling of its path: a file created with one spelling exists with all
 * others, and a removed file is missing with all. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define NAME "host_paths_file"
enum { kMost = 32 };
struct spelling {
  int folder;
  char path[PATH_MAX];
};
static struct spelling all[kMost];
static int count;

static void fail(const char *what, const char *path) {
  printf("%s %s: %s\n", what, path, strerror(errno));
  exit(1);
}
static void add(int folder, const char *format, const char *below) {
  all[count].folder = folder;
  snprintf(all[count++].path, PATH_MAX, format, below);
}
static int opened(const char *path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) fail("open", path);
  return fd;
}

/* Spellings of a file in `folder` (absolute); the current directory is /usr. */
static void spell(const char *folder) {
  char file[PATH_MAX], format[PATH_MAX];
  snprintf(file, sizeof file, "%s/" NAME, folder);
  const int root = opened("/"), usr = opened("/usr"), own = opened(folder);
  count = 0;
  add(AT_FDCWD, "%s", file);
  add(AT_FDCWD, "/usr/..%s", file);
  add(AT_FDCWD, "//.%s", file);
  add(AT_FDCWD, "/../..%s", file);
  add(AT_FDCWD, "..%s", file);
  add(AT_FDCWD, "./.././.%s", file);
  add(AT_FDCWD, "/proc/self/root%s", file);
  add(AT_FDCWD, "/proc/thread-self/root%s", file);
  add(AT_FDCWD, "/proc/self/cwd/..%s", file);
  snprintf(format, sizeof format, "/proc/%d/root%%s", getpid());
  add(AT_FDCWD, format, file);
  snprintf(format, sizeof format, "/proc/%d/cwd/..%%s", getpid());
  add(AT_FDCWD, format, file);
  snprintf(format, sizeof format, "/proc/self/fd/%d/..%%s", usr);
  add(AT_FDCWD, format, file);
  snprintf(format, sizeof format, "/dev/fd/%d/%%s", own);
  add(AT_FDCWD, format, NAME);
  add(root, "%s", file + 1);
  add(root, "usr/..%s", file);
  add(usr, "../%s", file + 1);
  add(own, "%s", NAME);
  add(own, "../.././../%s", file + 1);
  snprintf(format, sizeof format, "%s/host_paths_link", folder);
  if (symlink("/usr/..", format) != 0) fail("symlink", format);
  strcat(format, "%s");
  add(AT_FDCWD, format, file);
  snprintf(format, sizeof format, "%s/host_paths_loop", folder);
  if (symlink("../.././../../../..", format) != 0) fail("symlink", format);
  strcat(format, "%s");
  add(AT_FDCWD, format, file);
}

static long by_instruction(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

/* Number of calls, at most kWays, that find the file with this inode by the spelling. */
static int seen(const struct spelling *by, ino_t inode) {
  struct stat file;
  struct statx more;
  char text[PATH_MAX];
  const int fd = openat(by->folder, by->path, O_RDONLY);
  int ways = fd >= 0 && fstat(fd, &file) == 0 && file.st_ino == inode;
  if (fd >= 0) close(fd);
  ways += fstatat(by->folder, by->path, &file, 0) == 0 && file.st_ino == inode;
  ways += fstatat(by->folder, by->path, &file, AT_SYMLINK_NOFOLLOW) == 0 && file.st_ino == inode;
  ways += statx(by->folder, by->path, AT_SYMLINK_NOFOLLOW, STATX_INO, &more) == 0 && more.stx_ino == inode;
  ways += faccessat(by->folder, by->path, R_OK, 0) == 0;
  ways += readlinkat(by->folder, by->path, text, sizeof text) < 0 && errno == EINVAL;
  ways += syscall(SYS_newfstatat, by->folder, by->path, &file, 0) == 0 && file.st_ino == inode;
  ways += syscall(SYS_faccessat2, by->folder, by->path, R_OK, 0) == 0;
  ways += by_instruction(SYS_newfstatat, by->folder, (long)by->path, (long)&file, 0) == 0 && file.st_ino == inode;
  ways += utimensat(by->folder, by->path, NULL, 0) == 0;
  return ways;
}
enum { kWays = 10 };

static void every_spelling(const char *folder) {
  spell(folder);
  int right = 0;
  for (int i = 0; i < count; ++i) {
    const struct spelling *makes = &all[i], *removes = &all[(i + 7) % count];
    const int fd = openat(makes->folder, makes->path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    struct stat file;
    if (fd < 0 || fstat(fd, &file) != 0) fail("make", makes->path);
    close(fd);
    for (int j = 0; j < count; ++j) {
      const int ways = seen(&all[j], file.st_ino);
      if (ways == kWays) ++right;
      else printf("made as %s, seen in %d ways as %s\n", makes->path, ways, all[j].path);
    }
    if (unlinkat(removes->folder, removes->path, 0) != 0) fail("unlink", removes->path);
    for (int j = 0; j < count; ++j)
      if (seen(&all[j], file.st_ino) != 0) printf("removed as %s, seen as %s\n", removes->path, all[j].path);
  }
  printf("%s: %d of %d\n", folder, right, count * count);
}

static void said(const char *what, int right) { printf("%s %s\n", what, right ? "right" : "WRONG"); }
static int contains(const char *path, const char *text) {
  char read_text[100] = "";
  FILE *file = fopen(path, "r");
  const int right = file != NULL && fgets(read_text, sizeof read_text, file) != NULL && strcmp(read_text, text) == 0;
  if (file != NULL) fclose(file);
  return right;
}

static void other_calls(void) {
  char text[PATH_MAX];
  struct stat file, same;
  const int root = opened("/");
  FILE *made = fopen("/usr/../tmp/one", "w");
  if (made == NULL) fail("fopen", "one");
  fputs("here", made);
  fclose(made);
  said("fopen", contains("/tmp/one", "here"));
  said("rename", renameat2(root, "tmp/one", AT_FDCWD, "/proc/self/root/tmp/two", 0) == 0 &&
                     contains("/tmp/two", "here"));
  said("link", linkat(AT_FDCWD, "../tmp/two", root, "tmp/three", 0) == 0 && stat("/tmp/three", &file) == 0 &&
                   file.st_nlink == 2);
  said("mkdir", mkdir("/usr/../tmp/folder", 0700) == 0 && access("/tmp/folder", X_OK) == 0);
  said("realpath", realpath("/usr/../tmp/./folder/..", text) != NULL && strcmp(text, "/tmp") == 0);
  char *canonical = canonicalize_file_name("/usr/../tmp/two");
  said("canonicalize", canonical != NULL && strcmp(canonical, "/tmp/two") == 0);
  said("stands", chdir("/") == 0 && chdir("tmp/folder") == 0 && getcwd(text, sizeof text) != NULL &&
                     strcmp(text, "/tmp/folder") == 0);
  said("climbs", contains("../two", "here") && access("../../etc/passwd", R_OK) == 0 &&
                     contains("../../../../tmp/folder/../three", "here"));
  glob_t found;
  said("glob", glob("/usr/../tmp/t[wh]*", 0, NULL, &found) == 0 && found.gl_pathc == 2 &&
                   strcmp(found.gl_pathv[1], "/usr/../tmp/two") == 0);
  said("truncate", truncate("../../tmp/two", 2) == 0 && contains("/tmp/three", "he"));
  said("ftok", ftok("/tmp/two", 7) == ftok("/usr/../tmp/three", 7) && ftok("/tmp/none", 7) == -1);
  int (*old_stat)(int, const char *, struct stat *);
  *(void **)&old_stat = dlsym(RTLD_DEFAULT, "__xstat");
  said("old stat", old_stat != NULL && old_stat(1, "/usr/../tmp/two", &same) == 0 && same.st_ino == file.st_ino);
  said("attributes", getxattr("/usr/../tmp/two", "user.none", text, 1) < 0 && errno != ENOENT &&
                         listxattr("../two", text, sizeof text) >= 0);
  said("rmdir", rmdir("/usr/../tmp/folder/.") < 0 && errno == EINVAL && rmdir("/proc/self/cwd/../folder") == 0);
  if (chdir("/") != 0) fail("chdir", "/");
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "tmp/socket"};
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(s, (void *)&address, sizeof address) != 0 || listen(s, 1) != 0) fail("bind", "tmp/socket");
  strcpy(address.sun_path, "/usr/../tmp/socket");
  socklen_t length = sizeof address;
  said("socket", stat("/tmp/socket", &file) == 0 && connect(c, (void *)&address, sizeof address) == 0 &&
                     getpeername(c, (void *)&address, &length) == 0 &&
                     strcmp(address.sun_path, "/tmp/socket") == 0);  /* Linux returns the path as it was bound */
  said("symlink", symlink("../tmp/two", "tmp/link") == 0 && contains("/tmp/link", "he") &&
                      readlink("/usr/../tmp/link", text, sizeof text) == 10 && lstat("tmp/link", &file) == 0 &&
                      S_ISLNK(file.st_mode));
  said("kernel's", contains("/usr/../etc/hostname", "h0\n") && contains("etc/hostname", "h0\n") &&
                       contains("/proc/self/root/etc/hostname", "h0\n") &&
                       access("/proc/../sys/class/infiniband/rnic0", R_OK) == 0);
  const int proc = opened("/proc");
  const int uptime = openat(proc, "uptime", O_RDONLY), again = openat(AT_FDCWD, "proc/../proc/uptime", O_RDONLY);
  char other[PATH_MAX];
  said("made", read(uptime, text, sizeof text) > 0 && read(again, other, sizeof other) > 0 &&
                   strncmp(text, "12345.", 6) == 0 && strncmp(other, text, 6) == 0);
}

/* Programs that lie in the host's folder. */
static void programs(void) {
  char *arguments[] = {"echo", "spawned", NULL}, *executed[] = {"echo", "executed", NULL}, *none[] = {NULL};
  pid_t child;
  fflush(stdout);
  if (system("cp /bin/echo /usr/../tmp/said") != 0) fail("cp", "said");
  if (posix_spawn(&child, "tmp/said", NULL, NULL, arguments, none) != 0 || wait(NULL) != child) fail("spawn", "said");
  if ((child = fork()) == 0) {
    execve("usr/../tmp/said", executed, none);
    _exit(1);
  }
  wait(NULL);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (chdir("/usr") != 0) fail("chdir", "/usr");
  every_spelling("/tmp");
  every_spelling("/var/tmp");
  every_spelling("/dev/shm");
  other_calls();
  programs();
  return 0;
}
