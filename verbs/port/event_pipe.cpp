// SPDX-License-Identifier: Apache-2.0
#include "verbs/port/event_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

// The C library's own functions: the interposed read() would count as a wait of the program, but the port has already
// waited.
extern "C" ssize_t __read(int, void*, size_t);
extern "C" ssize_t __write(int, const void*, size_t);

namespace rnicsim {

namespace {

// Half of the records that a pipe is sure to hold. The last page may count as full with a single record in it.
std::uint32_t half_of(int pipe) {
  constexpr int kPage = 4096;
  const int pages = std::max(::fcntl(pipe, F_GETPIPE_SZ) / kPage, 1);
  return std::max(std::uint32_t((pages - 1) * kPage / int(2 * sizeof(abi::EventRecord))), 1u);
}

}  // namespace

EventPipe::~EventPipe() { close(); }

int EventPipe::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  take_own_end();
  refill_after_ = half_of(write_fd_);
  const int error = system_.open_channel(write_fd_, number_);
  opened_ = error == 0;
  return error;
}

// The program may set O_NONBLOCK at the read end. Therefore the library opens the pipe once more, with flags of its
// own, in place of the write end. Without /proc this fails.
void EventPipe::take_own_end() {
  const std::string pipe = "/proc/self/fd/" + std::to_string(read_fd_);
  const int own = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  reads_at_own_end_ = own >= 0 && ::dup3(own, write_fd_, O_CLOEXEC) == write_fd_;
  if (own >= 0) ::close(own);
  if (!reads_at_own_end_) ::fcntl(write_fd_, F_SETFL, O_NONBLOCK);
}

int EventPipe::close() {
  const int error = std::exchange(opened_, false) ? system_.close_channel(number_) : 0;
  for (int* fd : {&read_fd_, &write_fd_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
  return error;
}

int EventPipe::next(abi::EventRecord& record) {
  const int before = errno;
  const int flags = ::fcntl(read_fd_, F_GETFL);
  if (flags < 0) return errno;
  const bool waits = (flags & O_NONBLOCK) == 0;
  for (bool found_nothing = false;; found_nothing = true) {
    if (waits && !system_.wait_for_event(number_, read_fd_, found_nothing)) return EINTR;
    std::unique_lock guard(reading_);
    const int error = take_record(record);
    if (error == 0) refill(guard);
    if (error == 0) errno = before;
    if (error != EAGAIN || !waits) return error;
  }
}

int EventPipe::take_record(abi::EventRecord& record) {
  if (put_back_.empty()) return read_record(record);
  record = put_back_.front();
  put_back_.pop_front();
  return 0;
}

// Without the lock, since other threads may get turns in the port's call.
void EventPipe::refill(std::unique_lock<std::mutex>& guard) {
  if (taken_ < refill_after_) return;
  taken_ = 0;
  guard.unlock();
  system_.refill_channel(number_);
}

void EventPipe::purge(const std::function<bool(const abi::EventRecord&)>& stale) {
  std::unique_lock guard(reading_);
  std::vector<abi::EventRecord> kept;
  abi::EventRecord record;
  while (take_record(record) == 0) {
    if (!stale(record)) kept.push_back(record);
  }
  auto back = kept.begin();
  while (back != kept.end() && write_record(*back)) ++back;
  taken_ -= std::min(taken_, std::uint32_t(back - kept.begin()));
  // In real time the kernel may have filled the pipe in the meantime.
  put_back_.assign(back, kept.end());
  refill(guard);
}

int EventPipe::read_record(abi::EventRecord& record) {
  if (!reads_at_own_end_ && !has_record()) return EAGAIN;
  const ssize_t got = __read(reads_at_own_end_ ? write_fd_ : read_fd_, &record, sizeof record);
  if (got < 0) return errno;
  ++taken_;
  return got == sizeof record ? 0 : EIO;
}

bool EventPipe::write_record(const abi::EventRecord& record) {
  return __write(write_fd_, &record, sizeof record) == sizeof record;
}

// Another thread may have taken the record; a blocking read would then sleep.
bool EventPipe::has_record() const {
  int available = 0;
  return ::ioctl(read_fd_, FIONREAD, &available) == 0 && available >= int(sizeof(abi::EventRecord));
}

}  // namespace rnicsim
