// SPDX-License-Identifier: Apache-2.0
/* The C library's streams on pipes and sockets: a stream without data or without room waits in simulated time. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double began;
static double milliseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6 - began;
}

static void read_a_command(void) {
  char line[100];
  FILE *stream = popen("sleep 1; echo one; sleep 1; echo two", "r");
  while (fgets(line, sizeof line, stream) != NULL) printf("%.0f ms: %s", milliseconds(), line);
  printf("closed %d\n", pclose(stream));
}

/* More data than a pipe holds, to a command that reads later; the rest is written at the end of the program. */
static void write_to_a_command(void) {
  FILE *stream = popen("sleep 1; md5sum", "w");
  for (int i = 0; i < 30000; ++i) fprintf(stream, "%d\n", i);
  printf("written at %.0f ms, closed %d\n", milliseconds(), pclose(stream));
}

static void *answer(void *end) {
  int number;
  FILE *in = fdopen(*(int *)end, "r"), *out = fdopen(dup(*(int *)end), "w");
  while (fscanf(in, "%d", &number) == 1) {
    usleep(1000);
    fprintf(out, "%d\n", number + 1);
    fflush(out);
  }
  fclose(in);
  fclose(out);
  return NULL;
}
static void talk_to_a_thread(void) {
  int ends[2], number = 0;
  pthread_t thread;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
  pthread_create(&thread, NULL, answer, &ends[1]);
  FILE *in = fdopen(ends[0], "r"), *out = fdopen(dup(ends[0]), "w");
  for (int i = 0; i < 3; ++i) {
    fprintf(out, "%d\n", number);
    fflush(out);
    if (fscanf(in, "%d", &number) != 1) abort();
    printf("%d at %.0f ms\n", number, milliseconds());
  }
  shutdown(ends[0], SHUT_WR);
  pthread_join(thread, NULL);
  printf("end: %d\n", fgetc(in) == '\n' && fgetc(in) == EOF && feof(in));
}

/* A pipe without reader: an error, and no signal. */
static void write_to_nobody(void) {
  int ends[2];
  signal(SIGPIPE, SIG_IGN);
  if (pipe(ends) != 0) abort();
  close(ends[0]);
  FILE *stream = fdopen(ends[1], "w");
  fputs("text", stream);
  const int flushed = fflush(stream);
  printf("to nobody: %d, error %d\n", flushed, ferror(stream) != 0);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  began = milliseconds();
  read_a_command();
  began += milliseconds();
  write_to_a_command();
  began += milliseconds();
  talk_to_a_thread();
  write_to_nobody();
  return 0;
}
