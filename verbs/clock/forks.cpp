// Functions for which the C library uses a fork of its own. They are built on the interposed fork() instead.

#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utmp.h>

#include "verbs/clock/next.h"
#include "verbs/clock/session.h"

RNICSIM_NEXT(daemon);
RNICSIM_NEXT(forkpty);

using namespace rnicsim::clock;

namespace {

bool use_null_device() {
  const int null = ::open("/dev/null", O_RDWR);
  struct stat file {};
  const bool is_device = null >= 0 && ::fstat(null, &file) == 0 && S_ISCHR(file.st_mode);
  for (int fd = STDIN_FILENO; is_device && fd <= STDERR_FILENO; ++fd) ::dup2(null, fd);
  if (null > STDERR_FILENO) ::close(null);
  return is_device;
}

}  // namespace

RNICSIM_EXPORT int daemon(int stays, int keeps_descriptors) noexcept {
  if (session() == nullptr) return next_daemon(stays, keeps_descriptors);
  const pid_t child = ::fork();
  if (child > 0) ::_exit(0);
  if (child < 0 || ::setsid() < 0) return -1;
  if (stays == 0 && ::chdir("/") != 0) return -1;
  return keeps_descriptors != 0 || use_null_device() ? 0 : -1;
}

RNICSIM_EXPORT int forkpty(int* master, char* name, const termios* terminal, const winsize* size) noexcept {
  if (session() == nullptr) return next_forkpty(master, name, terminal, size);
  int terminal_end = -1;
  if (::openpty(master, &terminal_end, name, terminal, size) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(*master);
    if (::login_tty(terminal_end) != 0) ::_exit(1);
    return 0;
  }
  ::close(terminal_end);
  if (child < 0) ::close(*master);
  return child;
}
