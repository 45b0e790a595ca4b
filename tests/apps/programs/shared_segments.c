// SPDX-License-Identifier: Apache-2.0
// System V shared memory between processes of a host: identifiers start from 0, and each host has its own keys.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kKey = 0x5eed, kBytes = 8192 };

static void tell(const char* what, int number) {
  printf("%s: %d%s%s\n", what, number, number < 0 ? " " : "", number < 0 ? strerrorname_np(errno) : "");
  fflush(stdout);
}

int main(void) {
  tell("no key yet", shmget(kKey, kBytes, 0));
  const int own = shmget(IPC_PRIVATE, kBytes, IPC_CREAT | 0600);
  tell("private", own);
  char* memory = shmat(own, NULL, 0);
  if (fork() == 0) {
    char* same = shmat(own, NULL, 0);
    strcpy(same, "from the child");
    const int keyed = shmget(kKey, kBytes, IPC_CREAT | IPC_EXCL | 0600);
    tell("made by the child", keyed);
    _exit(0);
  }
  wait(NULL);
  puts(memory);
  tell("again", shmget(kKey, kBytes, IPC_CREAT | IPC_EXCL | 0600));
  tell("too large", shmget(kKey, 2 * kBytes, 0));
  const int keyed = shmget(kKey, kBytes, 0);
  tell("found", keyed);
  struct shmid_ds segment;
  tell("looked at", shmctl(keyed, IPC_STAT, &segment));
  tell("attached by", (int)segment.shm_nattch);
  tell("removed", shmctl(keyed, IPC_RMID, NULL));
  tell("no key any more", shmget(kKey, kBytes, 0));
  tell("removed", shmctl(own, IPC_RMID, NULL));
  tell("still attached", memory[0] == 'f');
  tell("detached", shmdt(memory));
  tell("nobody's", shmctl(4711, IPC_RMID, NULL));
  return 0;
}
