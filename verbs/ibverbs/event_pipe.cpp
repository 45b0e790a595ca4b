#include "verbs/ibverbs/event_pipe.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "verbs/port/raw_call.h"

namespace rnicsim::verbs {

EventPipe::~EventPipe() { close(); }

int EventPipe::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  const int error = port_.open_channel(write_fd_, number_);
  opened_ = error == 0;
  return error;
}

int EventPipe::close() {
  const int error = std::exchange(opened_, false) ? port_.close_channel(number_) : 0;
  for (int* fd : {&read_fd_, &write_fd_}) {
    if (*fd >= 0) ::close(std::exchange(*fd, -1));
  }
  return error;
}

int EventPipe::next(abi::EventRecord& record) {
  for (;;) {
    const bool waits = !non_blocking();
    if (waits && !port_.wait_readable(read_fd_)) return EINTR;
    std::lock_guard guard(reading_);
    if (has_record()) return read_record(record) ? 0 : EIO;
    if (!waits) return EAGAIN;
  }
}

void EventPipe::purge(const std::function<bool(const abi::EventRecord&)>& stale) {
  std::lock_guard guard(reading_);
  std::vector<abi::EventRecord> kept;
  abi::EventRecord record;
  while (has_record() && read_record(record)) {
    if (!stale(record)) kept.push_back(record);
  }
  // What was read a moment ago fits back in.
  for (const abi::EventRecord& back : kept) {
    if (checked_call(SYS_write, write_fd_, &back, sizeof back) != sizeof back) return;
  }
}

// By instruction: the preloaded clock would take a read for one of the program's, and the waiting was the port's.
bool EventPipe::read_record(abi::EventRecord& record) {
  return checked_call(SYS_read, read_fd_, &record, sizeof record) == sizeof record;
}

bool EventPipe::non_blocking() const { return ::fcntl(read_fd_, F_GETFL) & O_NONBLOCK; }

// Asked instead of read: the other thread that woke may have taken the record, and a read would sleep.
bool EventPipe::has_record() const {
  int available = 0;
  return ::ioctl(read_fd_, FIONREAD, &available) == 0 && available >= int(sizeof(abi::EventRecord));
}

}  // namespace rnicsim::verbs
