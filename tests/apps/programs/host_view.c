// SPDX-License-Identifier: Apache-2.0
/* Prints a program's view of its simulated host, with every call that the C library has. The mode selects the subject.
 * With -DCONSTRUCTOR: a library whose constructor does the same before any code of the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static void look(const char *who) {
  char name[64];
  struct utsname system;
  gethostname(name, sizeof name);
  uname(&system);
  printf("%s: host %s %s pid %d time %ld\n", who, name, system.nodename, getpid(), (long)time(NULL));
  fflush(stdout);
}

#ifdef CONSTRUCTOR
__attribute__((constructor)) static void before_main(void) { look("constructor"); }
int linked(void) { return 0; }
#else

static void fail(const char *what) {
  printf("%s: %s\n", what, strerror(errno));
  exit(1);
}

static double seconds_on(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double uptime_of_file(void) {
  double seconds = 0;
  FILE *file = fopen("/proc/uptime", "r");
  if (file == NULL || fscanf(file, "%lf", &seconds) != 1) fail("/proc/uptime");
  fclose(file);
  return seconds;
}

static long boot_of_file(void) {
  char line[4096];
  long boot = 0;
  FILE *file = fopen("/proc/stat", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "btime %ld", &boot);
  if (file != NULL) fclose(file);
  return boot;
}

/* All clocks that count from the boot agree, by name and by number; the boot was some hours ago. */
static void clocks(void) {
  struct timespec raw;
  struct sysinfo info;
  struct tms spent;
  const double monotonic = seconds_on(CLOCK_MONOTONIC);
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &raw);
  sysinfo(&info);
  const double ticks = (double)times(&spent) / (double)sysconf(_SC_CLK_TCK);
  const double file = uptime_of_file();
  const double counter = (double)__builtin_ia32_rdtsc() / 1e9;
  const long epoch = (long)seconds_on(CLOCK_REALTIME) - (long)monotonic;
  printf("hours %d\n", (int)(monotonic / 3600));
  printf("apart %d %d %d %d %d\n", (int)(raw.tv_sec - (long)monotonic), (int)(info.uptime - (long)monotonic),
         (int)(file - monotonic), (int)(ticks - monotonic), (int)(counter - monotonic));
  printf("boot %s\n", epoch - boot_of_file() <= 1 && boot_of_file() - epoch <= 1 ? "right" : "wrong");
  struct timespec until = {(time_t)monotonic, 0};
  until.tv_sec += 2;
  const double before = seconds_on(CLOCK_MONOTONIC);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  printf("slept %d\n", (int)(seconds_on(CLOCK_MONOTONIC) - before + 0.5));
}

/* Half of the machine's memory is free, and the load is 0. */
static void idle(void) {
  char line[256];
  unsigned long long all = 0, free = 0, available = 0, used = 1;
  FILE *file = fopen("/proc/meminfo", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    sscanf(line, "MemTotal: %llu kB", &all);
    sscanf(line, "MemFree: %llu kB", &free);
    sscanf(line, "MemAvailable: %llu kB", &available);
    sscanf(line, "Active: %llu kB", &used);
  }
  if (file != NULL) fclose(file);
  struct sysinfo info;
  sysinfo(&info);
  printf("memory %d %d %llu, of sysinfo %d %d\n", all != 0 && free == all / 2, available == free, used,
         info.totalram / 1024 == all / info.mem_unit, info.freeram == info.totalram / 2);
  double load[3] = {1, 1, 1};
  getloadavg(load, 3);
  printf("load %g %g %g, of sysinfo %lu\n", load[0], load[1], load[2], info.loads[0]);
}

static void print_bytes(const char *what, const void *bytes, size_t count) {
  printf("%s ", what);
  for (size_t i = 0; i < count; ++i) printf("%02x", ((const unsigned char *)bytes)[i]);
  putchar('\n');
}

static void random_bytes(void) {
  unsigned char bytes[8];
  char name[] = "/tmp/host_viewXXXXXX";
  getrandom(bytes, sizeof bytes, 0);
  print_bytes("getrandom", bytes, sizeof bytes);
  syscall(SYS_getrandom, bytes, sizeof bytes, 0);
  print_bytes("by number", bytes, sizeof bytes);
  const int fd = open("/dev/urandom", O_RDONLY), copy = dup(fd);
  if (read(copy, bytes, sizeof bytes) != sizeof bytes) fail("/dev/urandom");
  print_bytes("urandom", bytes, sizeof bytes);
  close(fd);
  FILE *stream = fopen("/dev/random", "r");
  if (stream == NULL || fread(bytes, 1, sizeof bytes, stream) != sizeof bytes) fail("/dev/random");
  print_bytes("random", bytes, sizeof bytes);
  print_bytes("AT_RANDOM", (const void *)getauxval(AT_RANDOM), 16);
  const uint32_t word = arc4random();
  print_bytes("arc4random", &word, sizeof word);
  close(mkstemp(name));
  printf("name %s\n", name);
  printf("numbers %d %ld %d %ld\n", getpid(), syscall(SYS_getpid), gettid(), syscall(SYS_gettid));
  char maps[64];
  snprintf(maps, sizeof maps, "/proc/%d/maps", getpid());
  printf("own maps %s\n", access(maps, R_OK) == 0 ? "readable" : strerror(errno));
}

/* `tag` is written to files that have the same name on each host. */
static void files(const char *tag) {
  char text[64] = "", path[4096], long_path[200], there[4096];
  FILE *file = fopen("/tmp/host_view.txt", "wx");
  if (file == NULL) fail("/tmp/host_view.txt");
  fputs(tag, file);
  fclose(file);
  const int fd = shm_open("/host_view", O_CREAT | O_EXCL | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, 4096) != 0) fail("shm_open");
  usleep(1000);
  file = fopen("/./tmp//host_view.txt", "r");
  if (file == NULL || fgets(text, sizeof text, file) == NULL) fail("read");
  fclose(file);
  printf("holds %s\n", text);
  if (realpath("/tmp/host_view.txt", path) == NULL) fail("realpath");
  printf("realpath %s\n", path);
  snprintf(there, sizeof there, "/proc/self/fd/%d", fd);
  path[readlink(there, path, sizeof path - 1)] = 0;
  printf("memory %s\n", path);
  if (mkdir("/tmp/deep", 0700) != 0 || chdir("/tmp/deep") != 0 || getcwd(path, sizeof path) == NULL) fail("chdir");
  printf("stands in %s\n", path);
  if (rename("/tmp/host_view.txt", "/tmp/deep/renamed") != 0 || access("renamed", R_OK) != 0) fail("rename");
  memset(long_path, 'a', 99);
  long_path[0] = '/';
  memcpy(long_path, "/tmp/deep/", 10);
  long_path[99] = 0;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, long_path);
  const int s = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(s, (void *)&address, sizeof address) != 0 || listen(s, 1) != 0) fail("bind");
  if (connect(c, (void *)&address, sizeof address) != 0) fail("connect");
  puts("connected");
}

/* Every host can bind the same abstract name. */
static void abstract_name(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0host_view"};
  const socklen_t length = offsetof(struct sockaddr_un, sun_path) + 10;
  socklen_t told = sizeof address;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(fd, (void *)&address, length) != 0) fail("bind");
  memset(&address, 0, sizeof address);
  getsockname(fd, (void *)&address, &told);
  printf("bound %s %d\n", address.sun_path + 1, (int)(told - length));
  usleep(1000);
}

/* --- Threads. */

static atomic_uint word;

static int wait_word(unsigned value, const struct timespec *timeout) {
  return syscall(SYS_futex, &word, FUTEX_WAIT, value, timeout, NULL, 0) == 0 ? 0 : errno;
}
static void *wake_later(void *unused) {
  usleep(5000);
  word = 1;
  printf("woke %ld\n", syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0));
  return unused;
}

static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int times_done;
static void do_once(void) {
  usleep(2000);
  ++times_done;
}
static void *meet(void *unused) {
  pthread_once(&once, do_once);
  usleep(1000);
  pthread_barrier_wait(&barrier);
  return unused;
}

static mtx_t mutex;
static int hold(void *unused) {
  (void)unused;
  mtx_lock(&mutex);
  usleep(4000);
  mtx_unlock(&mutex);
  return 7;
}

static long since(double start) { return (long)((seconds_on(CLOCK_MONOTONIC) - start) * 1000 + 0.5); }

static void waits(void) {
  pthread_t thread, others[3];
  double start = seconds_on(CLOCK_MONOTONIC);
  pthread_create(&thread, NULL, wake_later, NULL);
  printf("futex %d", wait_word(0, NULL));
  printf(" after %ld ms\n", since(start));
  pthread_join(thread, NULL);
  const struct timespec ms = {0, 3000000};
  start = seconds_on(CLOCK_MONOTONIC);
  const int timed_out = wait_word(1, &ms);
  printf("timeout %d after %ld ms; other value %d\n", timed_out == ETIMEDOUT, since(start),
         wait_word(0, NULL) == EAGAIN);

  pthread_barrier_init(&barrier, NULL, 4);
  start = seconds_on(CLOCK_MONOTONIC);
  for (int i = 0; i < 3; ++i) pthread_create(&others[i], NULL, meet, NULL);
  meet(NULL);
  printf("barrier after %ld ms, once %d\n", since(start), times_done);
  for (int i = 0; i < 3; ++i) pthread_join(others[i], NULL);

  thrd_t holder;
  int result = 0;
  mtx_init(&mutex, mtx_timed);
  start = seconds_on(CLOCK_MONOTONIC);
  thrd_create(&holder, hold, NULL);
  thrd_sleep(&(struct timespec){0, 1000000}, NULL);
  struct timespec soon;
  timespec_get(&soon, TIME_UTC);
  soon.tv_nsec += 1000000;
  const int busy = mtx_timedlock(&mutex, &soon);
  mtx_lock(&mutex);
  printf("mutex %d after %ld ms", busy == thrd_timedout, since(start));
  thrd_join(holder, &result);
  printf(", thread said %d\n", result);

  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  start = seconds_on(CLOCK_MONOTONIC);
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += 1;
  pthread_mutex_lock(&lock);
  const int error = pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &until);
  printf("condition %d after %ld ms\n", error == ETIMEDOUT, since(start));
}

// Waits that would never end, and invalid deadlines: the call fails at once.
static void refused_waits(void) {
  pthread_mutexattr_t checked;
  pthread_mutexattr_init(&checked);
  pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_t lock;
  pthread_mutex_init(&lock, &checked);
  pthread_mutex_lock(&lock);
  pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
  pthread_rwlock_wrlock(&written);
  printf("own mutex %d, own rwlock %d %d\n", pthread_mutex_lock(&lock) == EDEADLK,
         pthread_rwlock_rdlock(&written) == EDEADLK, pthread_rwlock_wrlock(&written) == EDEADLK);

  const struct timespec no_time = {1, 1000000000};
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sem_t empty;
  sem_init(&empty, 0, 0);
  const int waited = sem_timedwait(&empty, &no_time);
  printf("semaphore %d, condition %d", waited < 0 && errno == EINVAL,
         pthread_cond_timedwait(&condition, &lock, &no_time) == EINVAL);
  pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&held);
  printf(", mutex %d\n", pthread_mutex_timedlock(&held, &no_time) == EINVAL);
}

/* Waits in a call that is not simulated until a child has slept. */
static void real_wait(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(1);
  if (fork() == 0) {
    usleep(5000);
    _exit(write(ends[1], "x", 1) != 1);
  }
  char got = 0;
  int other[2], status;
  if (pipe(other) != 0 || tee(ends[0], other[1], 1, 0) != 1 || read(other[0], &got, 1) != 1) exit(1);
  wait(&status);
  printf("read %c %d\n", got, status);
}

/* --- Thread and process numbers, in every call that takes one. */

static volatile sig_atomic_t told_thread;
static void on_told(int signal) { told_thread = signal == SIGUSR2 ? gettid() : 0; }

static void *look_at_own(void *unused) {
  const pid_t own = gettid();
  cpu_set_t set;
  struct sched_param parameters = {0};
  struct timespec interval;
  struct {
    uint32_t size, policy;
    uint64_t more[6];
  } attributes = {0};
  const int got = sched_getaffinity(own, sizeof set, &set), set_same = sched_setaffinity(own, sizeof set, &set);
  const long bytes = syscall(SYS_sched_getaffinity, own, sizeof set, &set);
  printf("affinity %d %d %d %d\n", got, set_same, bytes > 0, (int)syscall(SYS_sched_setaffinity, own, bytes, &set));
  const int before = sched_getscheduler(own), set_batch = sched_setscheduler(own, SCHED_BATCH, &parameters);
  const int told_attributes = (int)syscall(SYS_sched_getattr, own, &attributes, 56, 0);
  printf("scheduler %d %d %d %d %d\n", before, set_batch, (int)syscall(SYS_sched_getscheduler, own), told_attributes,
         attributes.policy == SCHED_BATCH);
  printf("parameters %d %d %d\n", sched_getparam(own, &parameters), sched_setparam(own, &parameters),
         sched_rr_get_interval(own, &interval));
  const int usual = getpriority(PRIO_PROCESS, (id_t)own), set_priority = setpriority(PRIO_PROCESS, (id_t)own, 19);
  printf("priority %d %d %d %d, main's %d\n", set_priority, getpriority(PRIO_PROCESS, (id_t)own),
         getpriority(PRIO_PROCESS, 0), (int)syscall(SYS_getpriority, PRIO_PROCESS, own),
         getpriority(PRIO_PROCESS, (id_t)getpid()) == usual);
  signal(SIGUSR2, on_told);
  const int told = tgkill(getpid(), own, SIGUSR2);
  printf("told %d %d\n", told, told_thread == own);
  return unused;
}

static void look_at_stranger(pid_t stranger) {
  cpu_set_t set = {0};
  struct sched_param parameters = {0};
  struct rlimit limit;
  siginfo_t info;
  int found = 0;
#define LOOK(call) found += (call) != -1 || errno != ESRCH
  LOOK(sched_getaffinity(stranger, sizeof set, &set));
  LOOK(sched_setaffinity(stranger, sizeof set, &set));
  LOOK(sched_getscheduler(stranger));
  LOOK(sched_getparam(stranger, &parameters));
  LOOK(getpriority(PRIO_PROCESS, (id_t)stranger));
  LOOK(syscall(SYS_getpriority, PRIO_PROCESS, stranger));
  LOOK(syscall(SYS_sched_getaffinity, stranger, sizeof set, &set));
  LOOK(prlimit(stranger, RLIMIT_CORE, NULL, &limit));
  LOOK(getpgid(stranger));
  LOOK(getsid(stranger));
  LOOK(tgkill(stranger, stranger, 0));
  LOOK(syscall(SYS_process_vm_readv, stranger, NULL, 0, NULL, 0, 0));
  printf("stranger found %d times, waited for %d\n", found,
         waitid(P_PID, (id_t)stranger, &info, WEXITED) == 0 || errno != ECHILD);
}

/* Prints the owner of a file lock. */
static void look_at_lock(void) {
  FILE *file = tmpfile();
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (file == NULL || fcntl(fileno(file), F_SETLK, &lock) != 0) fail("F_SETLK");
  if (fork() == 0) {
    if (fcntl(fileno(file), F_GETLK, &lock) != 0) fail("F_GETLK");
    printf("lock of %d\n", lock.l_pid);
    _exit(0);
  }
  wait(NULL);
  fclose(file);
}

static void identities(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, look_at_own, NULL);
  pthread_join(thread, NULL);
  struct rlimit limit, same;
  prlimit(getpid(), RLIMIT_NOFILE, NULL, &limit);
  getrlimit(RLIMIT_NOFILE, &same);
  setpgid(0, 0);
  printf("limit %d, group %d %d %d\n", limit.rlim_cur == same.rlim_cur, getpgid(getpid()), getpgrp(),
         (int)syscall(SYS_getpgid, 0));
  const pid_t child = fork();
  if (child == 0) {
    printf("child's session %d\n", setsid());
    usleep(2000);
    _exit(3);
  }
  const double start = seconds_on(CLOCK_MONOTONIC);
  siginfo_t info = {0};
  usleep(1000);
  printf("child %d, session %d, ", child, getsid(child));
  const int set = setpriority(PRIO_PROCESS, (id_t)child, 19), lives = waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0;
  printf("priority %d %d, lives %d\n", set, getpriority(PRIO_PROCESS, (id_t)child), lives && info.si_pid == 0);
  if (waitid(P_PID, (id_t)child, &info, WEXITED) != 0) fail("waitid");
  printf("ended %d, %d %d after %ld ms\n", info.si_pid, info.si_code == CLD_EXITED, info.si_status, since(start));
  look_at_stranger(1);
  look_at_stranger(child);
  look_at_lock();
}

/* --- A small signal stack, and a program that computes between calls, so that the simulator interrupts it. */

static volatile sig_atomic_t handled;
static void on_usr1(int signal) {
  char text[2048];
  memset(text, signal, sizeof text);
  handled += text[1000] == SIGUSR1;
}

static void small_stack(void) {
  stack_t stack = {.ss_size = 8192, .ss_sp = malloc(8192)}, told;
  memset(stack.ss_sp, 0x5a, 256);
  struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  volatile double x = 0;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 20000; ++j) x = x + j;
    raise(SIGUSR1);
    seconds_on(CLOCK_MONOTONIC);
  }
  sigaltstack(NULL, &told);
  stack_t tiny = {.ss_size = 100, .ss_sp = stack.ss_sp};
  const int refused = sigaltstack(&tiny, NULL) != 0 ? errno : 0;
  printf("handled %d, the stack is %s, too small %d\n", (int)handled,
         told.ss_sp == stack.ss_sp && told.ss_size == 8192 && told.ss_flags == 0 ? "ours" : "another",
         refused == ENOMEM);
}

/* --- Two processes that pass a turn through memory alone, and spin for it. */

static void hand_over(void) {
  volatile unsigned *turn =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  enum { kRounds = 200 };
  const pid_t child = fork();
  const unsigned mine = child == 0 ? 1 : 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    while (*turn != 2 * round + mine) {
    }
    *turn = 2 * round + mine + 1;
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  printf("handed over %u times\n", *turn);
}

#ifdef LINKED
int linked(void);
#else
static int linked(void) { return 0; }
#endif

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "look";
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(mode, "look") == 0) look("main");
  if (strcmp(mode, "clocks") == 0) clocks();
  if (strcmp(mode, "idle") == 0) idle();
  if (strcmp(mode, "random") == 0) random_bytes();
  if (strcmp(mode, "files") == 0) files(count > 2 ? arguments[2] : "nothing");
  if (strcmp(mode, "sockets") == 0) abstract_name();
  if (strcmp(mode, "waits") == 0) waits();
  if (strcmp(mode, "refused_waits") == 0) refused_waits();
  if (strcmp(mode, "real_wait") == 0) real_wait();
  if (strcmp(mode, "identities") == 0) identities();
  if (strcmp(mode, "stack") == 0) small_stack();
  if (strcmp(mode, "handover") == 0) hand_over();
  if (strcmp(mode, "uname") == 0) syscall(SYS_getcpu, NULL, NULL, NULL);
  return linked();
}
#endif
