// SPDX-License-Identifier: Apache-2.0
// Writes of the device to the programs of one host. They are kept and done when the next turn on the host begins,
// whichever process gets that turn: a program may read another's memory by process_vm_readv(2).
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
  // add() when `memory` keeps its first write; remove() when `memory` keeps none.
  void add(KeptWrites& memory) { keeping_.push_back(&memory); }
  void remove(const KeptWrites& memory) { std::erase(keeping_, &memory); }

 private:
  std::vector<KeptWrites*> keeping_;
};

}  // namespace rnicsim::sim
