// The turns of a host's programs. What the device wrote to their memory since the last one is there when the next
// begins, whosever memory and turn it is: by process_vm_readv(2) one looks into another's.
#pragma once

#include <vector>

namespace rnicsim::sim {

// A memory that keeps writes of the device until the next turn.
class KeptWrites {
 public:
  virtual void flush() = 0;

 protected:
  ~KeptWrites() = default;
};

class HostTurns {
 public:
  void begin();
  // The memory keeps writes, or keeps none any more.
  void add(KeptWrites& memory) { keeping_.push_back(&memory); }
  void remove(const KeptWrites& memory) { std::erase(keeping_, &memory); }

 private:
  std::vector<KeptWrites*> keeping_;
};

}  // namespace rnicsim::sim
