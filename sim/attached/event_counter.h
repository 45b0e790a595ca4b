// An event descriptor (eventfd) that a program reads or waits for, and the simulator counts up.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "sim/descriptor.h"

namespace rnicsim::sim {

class EventCounter {
 public:
  EventCounter() = default;
  explicit EventCounter(Descriptor fd) : fd_(std::move(fd)) {}
  explicit operator bool() const { return bool(fd_); }
  // The descriptor is the program's, too, which may have made it one that blocks, and have filled or emptied it.
  void add() const;
  void clear() const;
  // The same for all descriptors of one counter; 0: it is none.
  std::uint64_t id() const { return id_of(fd_.get()); }

  static std::uint64_t id_of(int fd);
  // Of all that a process has.
  static std::set<std::uint64_t> ids_of(pid_t process);

 private:
  bool is_ready(short events) const;

  Descriptor fd_;
};

}  // namespace rnicsim::sim
