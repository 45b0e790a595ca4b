// SPDX-License-Identifier: Apache-2.0
// A server scans mailboxes and waits for them by spinning; two boxes are filled at once, repeatedly. Prints the order
// in which the server found them.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
enum { kBoxes = 8, kRounds = 40 };
static volatile int boxes[kBoxes], served;
static void *serve(void *order) {
  for (int i = 0; served < 2 * kRounds; i = (i + 1) % kBoxes) {
    if (!boxes[i]) continue;
    boxes[i] = 0;
    ((char *)order)[served++] = (char)('0' + i);
  }
  return NULL;
}
int main(void) {
  static char order[2 * kRounds + 1];
  pthread_t server;
  pthread_create(&server, NULL, serve, order);
  for (int round = 0; round < kRounds; ++round) {
    usleep(500 + 37 * round);
    boxes[1] = boxes[5] = 1;
  }
  pthread_join(server, NULL);
  puts(order);
}
