// SPDX-License-Identifier: Apache-2.0
// Output of the programs: relayed line by line, each line labelled with its host, in the order of simulated time.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "sim/os/descriptor.h"
#include "sim/os/labelled_lines.h"

namespace rnicsim::sim {

class OutputRelay {
 public:
  OutputRelay();
  // Takes the read end of a program's standard output or error.
  void add(Descriptor from, std::string label, std::FILE* to);
  // Relays the bytes that are there. True: there were some.
  bool drain();
  // Called while a program prints as fast as the simulator relays, which may never end. False: stop relaying for now.
  std::function<bool()> goes_on;
  // Bytes relayed, of all programs.
  std::uint64_t relayed() const { return relayed_; }

 private:
  struct Source {
    Descriptor from;
    LabelledLines lines;
  };
  bool drain(Source& source);
  void take(Source& source, std::size_t bytes);
  void end(Source& source);

  Descriptor epoll_;
  std::vector<Source> sources_;
  std::vector<epoll_event> events_;  // room for all sources: the last drain() of a run must see every source
  std::uint64_t relayed_ = 0;
};

}  // namespace rnicsim::sim
