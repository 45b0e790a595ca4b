// SPDX-License-Identifier: Apache-2.0
// Messages from one guest to another with RDS, which Linux carries over RDMA.
//
//   rds_messages receive OWN_ADDRESS COUNT
//   rds_messages send OWN_ADDRESS PEER_ADDRESS COUNT
//
// Both print the number of bytes and their checksum.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 4000, MOST_BYTES = 60000, TRIES = 50, TRY_MICROSECONDS = 200000, CLOSING_SECONDS = 2 };

static unsigned char buffer[MOST_BYTES];
static uint64_t checksum = 14695981039346656037u;  // FNV-1a
static uint64_t total;

static void add(size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) checksum = (checksum ^ buffer[i]) * 1099511628211u;
  total += bytes;
}

static void fail(const char* what) {
  perror(what);
  exit(1);
}

static struct sockaddr_in address_of(const char* text, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  if (inet_pton(AF_INET, text, &address.sin_addr) != 1) fail(text);
  return address;
}

static int open_socket(const char* own, int port) {
  const struct sockaddr_in address = address_of(own, port);
  const int number = socket(AF_RDS, SOCK_SEQPACKET, 0);
  if (number < 0) fail("socket");
  if (bind(number, (const struct sockaddr*)&address, sizeof address) != 0) fail("bind");
  return number;
}

static void receive(int number, int count) {
  for (int i = 0; i < count; ++i) {
    const ssize_t got = recv(number, buffer, sizeof buffer, 0);
    if (got < 0) fail("recv");
    add((size_t)got);
  }
}

// Message lengths from one byte to a dozen packets.
static void send_messages(int number, const struct sockaddr_in* to, int count) {
  for (int i = 0; i < count; ++i) {
    const size_t bytes = 1 + (size_t)i * 7919 % MOST_BYTES;
    for (size_t k = 0; k < bytes; ++k) buffer[k] = (unsigned char)(k * 31 + (size_t)i);
    add(bytes);
    int tries = 0;  // the send buffer may be full
    while (sendto(number, buffer, bytes, 0, (const struct sockaddr*)to, sizeof *to) < 0) {
      if (++tries == TRIES) fail("sendto");
      usleep(TRY_MICROSECONDS);
    }
  }
}

int main(int count, char** words) {
  if (count == 4 && strcmp(words[1], "receive") == 0) {
    receive(open_socket(words[2], PORT), atoi(words[3]));
  } else if (count == 5 && strcmp(words[1], "send") == 0) {
    const struct sockaddr_in peer = address_of(words[3], PORT);
    send_messages(open_socket(words[2], PORT + 1), &peer, atoi(words[4]));
    sleep(CLOSING_SECONDS);  // unsent data are dropped when the socket is closed
  } else {
    fprintf(stderr, "usage: rds_messages receive OWN COUNT\n       rds_messages send OWN PEER COUNT\n");
    return 2;
  }
  printf("%llu bytes, checksum %016llx\n", (unsigned long long)total, (unsigned long long)checksum);
  return 0;
}
