// SPDX-License-Identifier: Apache-2.0
// A thread that waits in a loop of looks: empty polls of a queue, or yields. The loop was proved to return to the same
// state, so the times of all later looks are known while nothing changes that the loop reads. The thread is parked and
// its looks are not executed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/abi/attach.h"
#include "model/base/units.h"

namespace rnicsim::sim {

class ParkedLoop {
 public:
  // From the thread's slot (Call::spin). nullopt: the description is invalid.
  static std::optional<ParkedLoop> from(const abi::ThreadSlot& slot);

  // True: the loop reads memory in [address, address + bytes).
  bool sees(std::uint64_t address, std::uint64_t bytes) const;

  struct Look {
    std::uint32_t index;  // in its round of the loop
    Duration begins, ends;
  };
  // The first look that ends at `visible` or later.
  Look first_look(Duration visible) const;

  bool only_stores = true;  // the wait so far ended only because other threads may have stored something

 private:
  Duration begins_;  // first look of the first round
  Duration period_;
  std::vector<abi::LoopLook> looks_;
  std::vector<std::uint64_t> pages_;  // sorted
  bool reads_any_page_ = false;       // the loop reads more pages than can be listed
};

}  // namespace rnicsim::sim
