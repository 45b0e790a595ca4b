// SPDX-License-Identifier: Apache-2.0
/* MPI: a token around the ring, sums over all ranks, and a broadcast of some megabytes; each rank checks its
 * results. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRounds = 20, kLargeWords = 1 << 20 };

static int failures = 0;

static void expect(long got, long wanted, const char *what) {
  if (got == wanted) return;
  ++failures;
  fprintf(stderr, "%s: %ld instead of %ld\n", what, got, wanted);
}

static void ring(int rank, int size) {
  long token = 0;
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int round = 0; round < kRounds; ++round) {
    if (rank == 0) {
      ++token;
      MPI_Send(&token, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
      MPI_Recv(&token, 1, MPI_LONG, before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(&token, 1, MPI_LONG, before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ++token;
      MPI_Send(&token, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
    }
  }
  expect(token, (long)(kRounds - 1) * size + (rank == 0 ? size : rank + 1), "ring");
}

static void sums(int rank, int size) {
  for (long words = 1; words <= 16384; words *= 16) {
    long *mine = malloc(words * sizeof *mine), *sum = malloc(words * sizeof *sum);
    for (long i = 0; i < words; ++i) mine[i] = i * (rank + 1);
    MPI_Allreduce(mine, sum, (int)words, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (long i = 0; i < words && failures == 0; ++i) expect(sum[i], i * size * (size + 1) / 2, "sum");
    free(mine);
    free(sum);
  }
}

static void broadcast(int rank, int size) {
  long *words = calloc(kLargeWords, sizeof *words);
  const int root = size - 1;
  for (long i = 0; i < kLargeWords && rank == root; ++i) words[i] = 3 * i + 1;
  MPI_Bcast(words, kLargeWords, MPI_LONG, root, MPI_COMM_WORLD);
  for (long i = 0; i < kLargeWords && failures == 0; ++i) expect(words[i], 3 * i + 1, "broadcast");
  free(words);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size, length;
  char name[MPI_MAX_PROCESSOR_NAME];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Get_processor_name(name, &length);
  ring(rank, size);
  sums(rank, size);
  broadcast(rank, size);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d on %s: %s\n", rank, size, name, failures == 0 ? "right" : "WRONG");
  MPI_Finalize();
  return failures != 0;
}
