// What the programs print: relayed line by line, each line labelled with its host, in the order of simulated time.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "sim/attached/descriptor.h"

namespace rnicsim::sim {

class OutputRelay {
 public:
  OutputRelay();
  // Takes the read end of a program's standard output or error.
  void add(Descriptor from, std::string label, std::FILE* to);
  // Relays what is there now. Whole lines; what is left at the end of a stream is a line too.
  // True: there was something.
  bool drain();

 private:
  struct Source {
    Descriptor from;
    std::string label;
    std::FILE* to;
    std::string partial;
  };
  static void print(Source& source, std::string_view text);
  bool drain(Source& source);

  Descriptor epoll_;
  std::vector<Source> sources_;
};

}  // namespace rnicsim::sim
