// SPDX-License-Identifier: Apache-2.0
// An event descriptor (eventfd) that the simulator signals and a program reads or polls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "sim/os/descriptor.h"

namespace rnicsim::sim {

class EventCounter {
 public:
  EventCounter() = default;
  explicit EventCounter(Descriptor fd) : fd_(std::move(fd)) {}
  explicit operator bool() const { return bool(fd_); }
  // The program shares the open file: it may have made the descriptor blocking, filled or emptied it. add() and
  // clear() never block.
  void add() const;
  void clear() const;
  // The same number for all descriptors of one eventfd. 0: not an eventfd.
  std::uint64_t id() const { return id_of(fd_.get()); }

  static std::uint64_t id_of(int fd);
  // Numbers of all eventfds that a process has open.
  static std::set<std::uint64_t> ids_of(pid_t process);

 private:
  bool is_ready(short events) const;

  Descriptor fd_;
};

}  // namespace rnicsim::sim
