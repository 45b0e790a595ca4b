// SPDX-License-Identifier: Apache-2.0
// Waits in a loop of a library that is then unloaded. The next library has other code at the same addresses. Compiled
// with LIBRARY 1 and 2, this file is the libraries.
#if defined LIBRARY
#if LIBRARY == 2
static volatile int sums[64];
int add(int value) {
  for (int i = 0; i < 9; ++i) sums[i] += value;
  return sums[3];
}
#endif
void wait_for(volatile int *flag) {
  while (*flag == 0) {}
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { kWaits = 40, kRounds = 6 };
static volatile int flag;

static void *raise_flags(void *unused) {
  for (int i = 0; i < kWaits; ++i) {
    usleep(10);
    flag = 1;
    while (flag != 0) {}
  }
  return unused;
}

int main(int count, char **names) {
  if (count < 3) return 2;
  for (int round = 0; round < kRounds; ++round) {
    void *library = dlopen(names[1 + round % 2], RTLD_NOW);
    void (*wait_for)(volatile int *) = (void (*)(volatile int *))dlsym(library, "wait_for");
    pthread_t other;
    pthread_create(&other, NULL, raise_flags, NULL);
    for (int i = 0; i < kWaits; ++i) {
      wait_for(&flag);
      flag = 0;
    }
    pthread_join(other, NULL);
    dlclose(library);
  }
  puts("waited");
}
#endif
