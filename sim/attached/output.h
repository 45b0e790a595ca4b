// What the programs print: relayed line by line, each line labelled with its host, in the order of simulated time.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/descriptor.h"

namespace rnicsim::sim {

class OutputRelay {
 public:
  OutputRelay();
  // Takes the read end of a program's standard output or error.
  void add(Descriptor from, std::string label, std::FILE* to);
  // Relays what is there now. Whole lines; what is left at the end of a stream is a line too, and so is what has come
  // of one that is longer than kMostLine. True: there was something.
  bool drain();
  // Asked while a program prints as fast as we relay it, which may have no end: whether to go on with what has come
  // meanwhile.
  std::function<bool()> goes_on;
  // Bytes, of all programs.
  std::uint64_t relayed() const { return relayed_; }

  static constexpr std::size_t kMostLine = 1u << 20;  // bytes

 private:
  struct Source {
    Descriptor from;
    std::string label;
    std::FILE* to;
    std::string partial;
  };
  static void print(Source& source, std::string_view text);
  static void print_line(const Source& source, std::string_view line);
  bool drain(Source& source);
  void take(Source& source, std::size_t bytes);
  void end(Source& source);

  Descriptor epoll_;
  std::vector<Source> sources_;
  std::vector<epoll_event> events_;  // one a source: at the end of a run nobody comes back for the rest
  std::uint64_t relayed_ = 0;
};

}  // namespace rnicsim::sim
