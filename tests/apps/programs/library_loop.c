// SPDX-License-Identifier: Apache-2.0
// A loop of a library that waits in the C library: the simulator sets a breakpoint in memset(), which the simulator's
// own code calls, too, while it follows the loop.
#ifdef LIBRARY
#include <string.h>

void await(volatile int *flag, char *scratch) {
  while (!*flag) memset(scratch, 0, 200);
}
#else
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void await(volatile int *flag, char *scratch);

static volatile int flag;
static char scratch[200];

static void *set_flag(void *unused) {
  usleep(300);
  flag = 1;
  return unused;
}

int main(void) {
  for (int i = 0; i < 50; ++i) {
    pthread_t setter;
    flag = 0;
    if (pthread_create(&setter, NULL, set_flag, NULL) != 0) return 1;
    await(&flag, scratch);
    pthread_join(setter, NULL);
  }
  puts("waited");
}
#endif
