// SPDX-License-Identifier: Apache-2.0
// A PCI function without a model, for guest_access.py: the protocol x-pci-proxy of QEMU 7.2 and nothing else. BAR0 has
// 8 MiB that read as zeros; a store to the offset of the NIC's command doorbell raises the interrupt of vector 0.
// usage: bare_device SOCKET QTEST_SOCKET
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { kSyncMemory, kAnswer, kConfigWrite, kConfigRead, kBarWrite, kBarRead, kSetIrqfd, kReset };
enum { kConfigBytes = 256, kBar0 = 0x10, kBarBytes = 8 << 20, kDoorbell = 0x88 };

struct header {
  int32_t command;
  uint32_t reserved;
  uint64_t bytes;
};
struct config_access {
  uint32_t offset, value;
  int32_t bytes;
};
struct bar_access {
  uint64_t address, value;
  uint32_t bytes;
  uint8_t memory;
};

static uint8_t config[kConfigBytes];

static int whole(int file, void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = read(file, (char*)data + done, bytes - done);
    if (now <= 0) return 0;
    done += (size_t)now;
  }
  return 1;
}

static int open_socket(const char* path, int listens) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const int file = socket(AF_UNIX, SOCK_STREAM, 0);
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  if (listens ? bind(file, (struct sockaddr*)&address, sizeof address) || listen(file, 1)
              : connect(file, (struct sockaddr*)&address, sizeof address)) {
    perror(path);
    exit(1);
  }
  return file;
}

// BAR0 has 64 bits and is prefetchable; the low bits of its address are 0.
static void write_config(const struct config_access* access) {
  uint32_t bar;
  memcpy(config + access->offset, &access->value, (size_t)access->bytes);
  memcpy(&bar, config + kBar0, sizeof bar);
  bar = (bar & ~(kBarBytes - 1u)) | 0xc;
  memcpy(config + kBar0, &bar, sizeof bar);
}

static void make_config(void) {
  const uint32_t identity[] = {0x00021234, 0, 0xff000001};
  memcpy(config, identity, sizeof identity);
  write_config(&(struct config_access){.offset = kBar0, .value = 0, .bytes = 4});
}

static uint64_t access_config(const struct config_access* access, int writes) {
  uint64_t value = 0;
  if (access->bytes < 1 || access->bytes > 4 || access->offset > kConfigBytes - (uint32_t)access->bytes) return ~0ull;
  if (writes)
    write_config(access);
  else
    memcpy(&value, config + access->offset, (size_t)access->bytes);
  return value;
}

static void raise_interrupt(const char* path) {
  static int qtest;
  static const char message[] = "writel 0xfee00000 0x0\n";
  char answers[256];
  if (!qtest) qtest = open_socket(path, 0);
  if (write(qtest, message, sizeof message - 1) < 0) perror("qtest");
  recv(qtest, answers, sizeof answers, MSG_DONTWAIT);
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  make_config();
  const int listener = open_socket(arguments[1], 1);
  puts("listening");
  fflush(stdout);
  const int client = accept(listener, NULL, NULL);
  struct header header;
  char body[4096];
  while (whole(client, &header, sizeof header) && header.bytes <= sizeof body && whole(client, body, header.bytes)) {
    struct {
      struct header header;
      uint64_t value;
    } answer = {{kAnswer, 0, 8}, 0};
    const struct bar_access* access = (const struct bar_access*)body;
    if (header.command == kSyncMemory || header.command == kSetIrqfd) continue;
    if (header.command == kConfigRead || header.command == kConfigWrite)
      answer.value = access_config((const struct config_access*)body, header.command == kConfigWrite);
    if (write(client, &answer, sizeof answer) != sizeof answer) break;
    if (header.command == kBarWrite && access->address % kBarBytes == kDoorbell) raise_interrupt(arguments[2]);
  }
  return 0;
}
