// SPDX-License-Identifier: Apache-2.0
// Streams read and write by calls inside the C library, which cannot be interposed by name and would block in the real
// kernel. The C library has a table of functions for each kind of stream: its read and write functions are replaced
// there.

#include "sim/host/kernel/sockets/streams.h"

#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/host/kernel/files/descriptors.h"
#include "sim/host/kernel/files/port_counters.h"
#include "sim/host/shim/cancellation.h"
#include "sim/host/shim/next.h"
#include "sim/host/shim/protected_data.h"
#include "sim/host/time/turn.h"

namespace rnicsim::clock {
namespace {

const Next<ssize_t(FILE*, void*, ssize_t)> next_read_file{"_IO_file_read"};
const Next<ssize_t(FILE*, const void*, ssize_t)> next_write_file{"_IO_file_write"};

bool may_wait(int fd) { return simulated_slot() != nullptr && is_pipe_or_socket(fd); }

// True: reads and writes are no cancellation points (fopen() with "c"), as above all in streams of the C library
// itself.
bool is_uncancelled(const FILE& stream) {
  constexpr int kNotCancelled = 2;
  return (stream._flags2 & kNotCancelled) != 0;
}

ssize_t read_file(FILE* stream, void* buffer, ssize_t bytes) {
  const int fd = ::fileno_unlocked(stream);
  if (!may_wait(fd)) {
    refresh_port_counter(fd);
    return next_read_file(stream, buffer, bytes);
  }
  std::optional<Uncancelled> uncancelled;
  if (is_uncancelled(*stream)) uncancelled.emplace();
  return ::read(fd, buffer, size_t(bytes));
}

// Writes all bytes, as the C library's function does.
ssize_t write_file(FILE* stream, const void* bytes, ssize_t count) {
  const int fd = ::fileno_unlocked(stream);
  if (!may_wait(fd)) return next_write_file(stream, bytes, count);
  std::optional<Uncancelled> uncancelled;
  if (is_uncancelled(*stream)) uncancelled.emplace();
  ssize_t done = 0;
  while (done < count) {
    const ssize_t part = ::write(fd, static_cast<const char*>(bytes) + done, size_t(count - done));
    if (part < 0) {
      stream->_flags |= _IO_ERR_SEEN;
      break;
    }
    done += part;
  }
  if (stream->_offset >= 0) stream->_offset += done;
  return done;
}

}  // namespace

void take_streams() {
  if (next_read_file.get() == nullptr || next_write_file.get() == nullptr) return;  // another C library
  const auto address_of = [](auto* function) { return reinterpret_cast<std::uintptr_t>(function); };
  const ProtectedData tables(address_of(::dlsym(RTLD_DEFAULT, "_IO_file_jumps")));
  std::ranges::replace(tables.words(), address_of(next_read_file.get()), address_of(read_file));
  std::ranges::replace(tables.words(), address_of(next_write_file.get()), address_of(write_file));
}

}  // namespace rnicsim::clock
