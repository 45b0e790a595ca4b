// SPDX-License-Identifier: Apache-2.0
/* accept() on a Unix socket waits in simulated time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const struct sockaddr_un place = {AF_UNIX, "/tmp/unix_sockets"};
static double began;
static double milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 - began;
}

static void *serve(void *listener) {
  for (int i = 0; i < 3; ++i) {
    char byte = 0;
    const int connection = accept(*(int *)listener, NULL, NULL);
    printf("accepted after %.0f ms\n", milliseconds());
    if (read(connection, &byte, 1) != 1 || write(connection, &byte, 1) != 1) abort();
    close(connection);
  }
  return NULL;
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  unlink(place.sun_path);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (const struct sockaddr *)&place, sizeof place) != 0 || listen(listener, 5) != 0) return 1;
  began = milliseconds();
  pthread_t server;
  pthread_create(&server, NULL, serve, &listener);
  for (int i = 0; i < 3; ++i) {
    char byte = (char)('a' + i);
    usleep(5000);
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, (const struct sockaddr *)&place, sizeof place) != 0) abort();
    usleep(1000);
    if (write(connection, &byte, 1) != 1 || read(connection, &byte, 1) != 1) abort();
    printf("answered %c after %.0f ms\n", byte, milliseconds());
    close(connection);
  }
  pthread_join(server, NULL);
  return 0;
}
