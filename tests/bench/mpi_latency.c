// SPDX-License-Identifier: Apache-2.0
// Latency of MPI between two ranks, in us: messages by size (half a round trip), and one-sided operations with their
// flush.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kWarmUp = 20, kRounds = 200, kMost = 65536 };

static char *buffer;

static double ping_pong(int rank, int bytes) {
  double began = 0;
  for (int i = 0; i < kWarmUp + kRounds; ++i) {
    if (i == kWarmUp) began = MPI_Wtime();
    if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - began) / kRounds / 2 * 1e6;
}

static double one_sided(MPI_Win window, int gets) {
  double began = 0;
  for (int i = 0; i < kWarmUp + kRounds; ++i) {
    if (i == kWarmUp) began = MPI_Wtime();
    if (gets)
      MPI_Get(buffer, 8, MPI_CHAR, 1, 0, 8, MPI_CHAR, window);
    else
      MPI_Put(buffer, 8, MPI_CHAR, 1, 0, 8, MPI_CHAR, window);
    MPI_Win_flush(1, window);
  }
  return (MPI_Wtime() - began) / kRounds * 1e6;
}

int main(int count, char **arguments) {
  MPI_Init(&count, &arguments);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  buffer = calloc(1, kMost);
  if (count > 1 && strcmp(arguments[1], "one-sided") == 0) {
    char *exposed;
    MPI_Win window;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed, &window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
      const double put = one_sided(window, 0), get = one_sided(window, 1);
      MPI_Win_unlock(1, window);
      printf("put %.2f get %.2f\n", put, get);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
  } else {
    for (int bytes = 1; bytes <= kMost; bytes *= 4) {
      const double half = ping_pong(rank, bytes);
      if (rank == 0) printf("%d %.2f\n", bytes, half);
    }
  }
  MPI_Finalize();
  return 0;
}
