// The turns of a host's programs. What the device wrote to their memory since the last one is there when the next
// begins, whosever memory and turn it is: by process_vm_readv(2) one looks into another's.
#pragma once

#include <vector>

namespace rnicsim::sim {

class ProcessMemory;

class HostTurns {
 public:
  void begin();
  // It keeps writes; it keeps none any more.
  void add(ProcessMemory& memory) { keeping_.push_back(&memory); }
  void remove(const ProcessMemory& memory) { std::erase(keeping_, &memory); }

 private:
  std::vector<ProcessMemory*> keeping_;
};

}  // namespace rnicsim::sim
