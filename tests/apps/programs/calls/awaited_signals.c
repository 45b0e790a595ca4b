// SPDX-License-Identifier: Apache-2.0
// Waits for a user's signals with sigwait and with a signalfd, while other programs of the host run.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  const pid_t other = fork();
  if (other == 0)
    for (;;) usleep(1000);
  puts("waits");
  int signal;
  sigwait(&set, &signal);
  printf("heard %d\n", signal);
  struct pollfd wanted = {signalfd(-1, &set, SFD_NONBLOCK), POLLIN, 0};
  const int ready = poll(&wanted, 1, -1);
  struct signalfd_siginfo info;
  const int got = read(wanted.fd, &info, sizeof info) == sizeof info;
  printf("polled %d read %d\n", ready, got ? (int)info.ssi_signo : 0);
  printf("nothing left %d\n", poll(&wanted, 1, 1));
  kill(other, SIGKILL);
  return 0;
}
