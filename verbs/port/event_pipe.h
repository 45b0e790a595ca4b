// SPDX-License-Identifier: Apache-2.0
// A pipe into which the simulated kernel writes event records. Programs poll the read end: the fd of a completion
// channel or the async_fd of a context. While the pipe is full, the kernel keeps further records. It is asked for them
// before the pipe can be empty, so the read end stays readable as long as records are pending.
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

  int open();  // returns 0 or an errno
  int close();

  int fd() const { return read_fd_; }
  std::uint32_t number() const { return number_; }

  // Takes the next record. Returns 0; EAGAIN: empty, and the fd is non-blocking; EINTR; EBADF: the program closed the
  // fd.
  int next(abi::EventRecord& record);
  // Removes unread records for which `stale` is true: their object is destroyed, and a new object may get its number.
  void purge(const std::function<bool(const abi::EventRecord&)>& stale);

 private:
  void take_own_end();
  bool has_record() const;
  int read_record(abi::EventRecord& record);
  bool write_record(const abi::EventRecord& record);
  // Returns 0, EAGAIN (no record) or EIO.
  int take_record(abi::EventRecord& record);
  void refill(std::unique_lock<std::mutex>& guard);

  OsServices& system_;
  std::mutex reading_;
  std::deque<abi::EventRecord> put_back_;  // older than the records in the pipe, which had no room for these
  std::uint32_t taken_ = 0;                // records taken since the kernel was last asked for more
  std::uint32_t refill_after_ = 1;
  int read_fd_ = -1;
  int write_fd_ = -1;
  bool reads_at_own_end_ = false;  // records are read from write_fd_, opened by the library itself
  std::uint32_t number_ = 0;
  bool opened_ = false;
};

}  // namespace rnicsim
