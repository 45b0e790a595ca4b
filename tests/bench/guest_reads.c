// SPDX-License-Identifier: Apache-2.0
// In a guest: the time of a load from BAR0 of a PCI function, in us, for guest_access.py.
// usage: guest_reads BUS:DEVICE.FUNCTION
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { kReads = 2000 };

static double microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static int compare(const void* one, const void* other) {
  const double difference = *(const double*)one - *(const double*)other;
  return (difference > 0) - (difference < 0);
}

static int open_file(const char* function, const char* name, int flags) {
  char path[128];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/0000:%s/%s", function, name);
  const int file = open(path, flags);
  if (file < 0) perror(path);
  return file;
}

int main(int count, char** arguments) {
  static double taken[kReads];
  if (count != 2) return 2;
  const int enable = open_file(arguments[1], "enable", O_WRONLY), bar = open_file(arguments[1], "resource0", O_RDWR);
  if (enable < 0 || bar < 0 || write(enable, "1", 1) != 1) return 1;
  volatile const uint32_t* registers = mmap(NULL, 4096, PROT_READ, MAP_SHARED, bar, 0);
  if (registers == MAP_FAILED) return 1;
  for (int i = 0; i < kReads; ++i) {
    const double began = microseconds();
    (void)registers[0];
    taken[i] = microseconds() - began;
  }
  qsort(taken, kReads, sizeof *taken, compare);
  printf("least %.1f median %.1f\n", taken[0], taken[kReads / 2]);
  return 0;
}
