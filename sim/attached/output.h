// What the programs print: relayed line by line, each line labelled with its host, in the order of simulated time.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "sim/descriptor.h"
#include "sim/labelled_lines.h"

namespace rnicsim::sim {

class OutputRelay {
 public:
  OutputRelay();
  // Takes the read end of a program's standard output or error.
  void add(Descriptor from, std::string label, std::FILE* to);
  // Relays what is there now. True: there was something.
  bool drain();
  // Asked while a program prints as fast as we relay it, which may have no end: whether to go on with what has come
  // meanwhile.
  std::function<bool()> goes_on;
  // Bytes, of all programs.
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
  std::vector<epoll_event> events_;  // one a source: at the end of a run nobody comes back for the rest
  std::uint64_t relayed_ = 0;
};

}  // namespace rnicsim::sim
