// A pipe into which the kernel writes event records. Its read end is what a program polls: a completion channel's fd
// or a context's async_fd.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "model/abi/attach.h"
#include "verbs/port/device_port.h"

namespace rnicsim::verbs {

class EventPipe {
 public:
  explicit EventPipe(DevicePort& port) : port_(port) {}
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  int open();  // 0 or errno
  int close();

  int fd() const { return read_fd_; }
  std::uint32_t number() const { return number_; }

  // The next record: 0, EAGAIN on a non-blocking fd, or EINTR.
  int next(abi::EventRecord& record);
  // Takes out the records nobody read yet for which `stale` holds: their object is gone, its number may live on.
  void purge(const std::function<bool(const abi::EventRecord&)>& stale);

 private:
  bool non_blocking() const;
  bool has_record() const;
  bool read_record(abi::EventRecord& record);

  DevicePort& port_;
  std::mutex reading_;
  int read_fd_ = -1;
  int write_fd_ = -1;
  std::uint32_t number_ = 0;
  bool opened_ = false;
};

}  // namespace rnicsim::verbs
