// SPDX-License-Identifier: Apache-2.0
// Random bytes from every kind of stream that reads /dev/urandom, of C and of C++.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>

namespace {

using Bytes = std::array<unsigned char, 8>;

void print(const char* what, const Bytes& bytes) {
  std::printf("%s ", what);
  for (const unsigned byte : bytes) std::printf("%02x", byte);
  std::puts("");
}

void from(const char* what, std::FILE* stream) {
  Bytes bytes{};
  if (stream == nullptr || std::fread(bytes.data(), 1, bytes.size(), stream) != bytes.size()) what = "nothing";
  print(what, bytes);
  if (stream == nullptr || ::read(::fileno(stream), bytes.data(), bytes.size()) != ssize_t(bytes.size())) what = "none";
  print(what, bytes);
}

}  // namespace

int main() {
  Bytes bytes{};
  std::ifstream file("/dev/urandom", std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) std::puts("ifstream fails");
  print("ifstream", bytes);
  std::FILE* opened = std::fopen("/dev/random", "re");
  from("fopen", opened);
  std::printf("closed on exec: %d\n", ::fcntl(::fileno(opened), F_GETFD));
  from("fdopen", ::fdopen(::open("/dev/urandom", O_RDONLY), "r"));
  from("standard input", stdin);
  std::cin.read(reinterpret_cast<char*>(bytes.data()), bytes.size());
  print("cin", bytes);
  // More bytes than any buffer holds.
  unsigned different = 0;
  for (int i = 0, last = 0; i < 100'000; ++i) {
    const int next = std::getc(opened);
    if (next != last) ++different;
    last = next;
  }
  std::printf("different %u\n", different);
  std::random_device device("/dev/urandom");
  std::printf("random_device %08x\n", device());
  std::random_device default_device;
  std::printf("default device %08x\n", default_device());
  const int number = ::fileno(opened);
  const int closed = std::fclose(opened);
  std::printf("closed %d, then %d\n", closed, ::fcntl(number, F_GETFD));
}
