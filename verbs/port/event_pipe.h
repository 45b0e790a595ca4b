// A pipe into which the kernel writes event records. Its read end is what a program polls: a completion channel's fd
// or a context's async_fd. Records that find it full wait in the kernel, which is asked for them before the pipe can
// have been read empty: while any wait, the read end is readable.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "model/abi/attach.h"
#include "verbs/port/os_services.h"

namespace rnicsim {

class EventPipe {
 public:
  explicit EventPipe(OsServices& system) : system_(system) {}
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  int open();  // 0 or errno
  int close();

  int fd() const { return read_fd_; }
  std::uint32_t number() const { return number_; }

  // The next record: 0, EAGAIN on a non-blocking fd, EINTR, or EBADF where the program has closed the fd.
  int next(abi::EventRecord& record);
  // Takes out the records nobody read yet for which `stale` holds: their object is gone, its number may live on.
  void purge(const std::function<bool(const abi::EventRecord&)>& stale);

 private:
  void take_own_end();
  bool has_record() const;
  int read_record(abi::EventRecord& record);
  bool write_record(const abi::EventRecord& record);
  // 0, EAGAIN when there is none, or EIO.
  int take_record(abi::EventRecord& record);
  void refill(std::unique_lock<std::mutex>& guard);

  OsServices& system_;
  std::mutex reading_;
  std::deque<abi::EventRecord> put_back_;  // ahead of those in the pipe, which is full
  std::uint32_t taken_ = 0;                // since the kernel was last asked for more
  std::uint32_t refill_after_ = 1;
  int read_fd_ = -1;
  int write_fd_ = -1;
  bool reads_at_own_end_ = false;          // write_fd_
  std::uint32_t number_ = 0;
  bool opened_ = false;
};

}  // namespace rnicsim
